// matchConditions of webhooks.
#include "admission/policy/evaluation.h"
#include "admission/webhook/dispatch.h"

namespace keelson::admission {

Task<bool> MatchConditionsHold(const WebhookDependencies& dependencies, const Webhook& webhook,
                               request::Context& context, const Attributes& attributes,
                               ObjectInterfaces::Resource matched, std::string_view type) {
  const auto began = dependencies.clock->Monotonic();
  base::Arena& arena = context.arena;
  CachingAuthorizer authorizer(*dependencies.api, context);
  cel::AdmissionInputs inputs{.authorizer = &authorizer,
                              .request_resource = RequestResource(attributes),
                              .time_zones = dependencies.time_zones};
  if (!attributes.object.is_null()) {
    KS_CO_TRY(inputs.object, co_await attributes.interfaces->ToDocument(arena, attributes.object, matched.kind));
  }
  if (!attributes.old_object.is_null()) {
    KS_CO_TRY(inputs.old_object, co_await attributes.interfaces->ToDocument(arena, attributes.old_object, matched.kind));
  }
  inputs.request = RequestValue(arena, context, attributes, matched);
  const auto failure_policy = webhook.fail_open ? cel::FailurePolicy::kIgnore : cel::FailurePolicy::kFail;
  auto conditions = cel::EvaluateMatchConditions(arena, webhook.match_conditions, failure_policy, inputs);
  while (conditions.pending && co_await authorizer.Fetch())
    conditions = cel::EvaluateMatchConditions(arena, webhook.match_conditions, failure_policy, inputs);
  if (WebhookMetrics* metrics = dependencies.metrics; metrics != nullptr) {
    metrics->ConditionsEvaluated(webhook.name, "webhook", type, attributes.operation,
                                 dependencies.clock->Monotonic() - began);
    for (std::size_t i = 0; i < conditions.failures; ++i)
      metrics->ConditionError(webhook.name, "webhook", type, attributes.operation);
    if (!conditions.matches && conditions.error.empty())
      metrics->ConditionExcluded(webhook.name, "webhook", type, attributes.operation);
  }
  if (conditions.error.empty()) co_return conditions.matches;
  co_return meta::NewForbidden({attributes.resource.group, attributes.resource.resource}, attributes.name,
                               conditions.error);
}

}  // namespace keelson::admission
