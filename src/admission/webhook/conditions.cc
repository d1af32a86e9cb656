// matchConditions of webhooks.
#include "admission/policy/evaluation.h"
#include "admission/request_interrupt.h"
#include "admission/webhook/dispatch.h"

namespace keelson::admission {

Task<bool> MatchConditionsHold(const WebhookDependencies& dependencies, const Webhook& webhook,
                               request::Context& context, const Attributes& attributes,
                               ObjectInterfaces::Resource matched, std::string type) {
  base::Arena& arena = context.arena;
  CachingAuthorizer authorizer(*dependencies.api, context);
  const RequestInterrupt interrupt(context.cancellation.get());
  cel::AdmissionInputs inputs{.authorizer = &authorizer,
                              .request_resource = RequestResource(attributes),
                              .time_zones = dependencies.time_zones,
                              .interrupt = &interrupt};
  if (!attributes.object.is_null()) {
    KS_CO_TRY(inputs.object, co_await attributes.interfaces->ToDocument(arena, attributes.object, matched.kind));
  }
  if (!attributes.old_object.is_null()) {
    KS_CO_TRY(inputs.old_object,
              co_await attributes.interfaces->ToDocument(arena, attributes.old_object, matched.kind));
  }
  inputs.request = RequestValue(arena, context, attributes, matched);
  WebhookMetrics* const metrics = dependencies.metrics;
  const auto failure_policy = webhook.fail_open ? cel::FailurePolicy::kIgnore : cel::FailurePolicy::kFail;
  const std::function<cel::MatchResult()> match = [&] {
    return cel::EvaluateMatchConditions(arena, webhook.match_conditions, failure_policy, inputs);
  };
  const cel::MatchResult conditions =
      co_await EvaluateConditions(match, authorizer, attributes.operation,
                                  {.metrics = metrics, .name = webhook.name, .kind = "webhook", .type = type});
  if (metrics != nullptr && !conditions.matches && conditions.error.empty())
    metrics->ConditionExcluded(webhook.name, "webhook", type, attributes.operation);
  if (conditions.error.empty()) co_return conditions.matches;
  co_return meta::NewForbidden({attributes.resource.group, attributes.resource.resource}, attributes.name,
                               conditions.error);
}

}  // namespace keelson::admission
