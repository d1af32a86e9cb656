#include "admission/webhook/dispatch.h"

#include "admission/annotation.h"
#include "base/strings.h"

namespace keelson::admission {

WebhookPlugin::WebhookPlugin(const PluginContext& context, std::string_view name, std::string resource)
    : clients_(NewWebhookClients(context, name)),
      dependencies_{.reader = context.reader,
                    .api = context.api,
                    .clients = clients_.get(),
                    .metrics = context.webhook_metrics,
                    .time_zones = context.time_zones,
                    .clock = context.clock,
                    .random = context.random} {
  synced_ =
      context.informers->Follow("admissionregistration.k8s.io", std::move(resource),
                                [configurations = configurations_](auto changes) { configurations->Apply(changes); });
  if (const auto manifests = context.ManifestsOf(name)) {
    manifests->Follow([configurations = configurations_](const LoadedManifests& loaded) {
      configurations->ReplaceStatic(loaded.objects);
    });
  }
}

base::Ref<const WebhookList> WebhookPlugin::WebhooksFor(const Attributes& attributes) const {
  return IsAdmissionConfiguration(attributes) ? configurations_->LoadStatic() : configurations_->Load();
}

bool IsAdmissionConfiguration(const Attributes& attributes) {
  if (attributes.kind.group != "admissionregistration.k8s.io") return false;
  const std::string& kind = attributes.kind.kind;
  return kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration" ||
         kind == "ValidatingAdmissionPolicy" || kind == "ValidatingAdmissionPolicyBinding" ||
         kind == "MutatingAdmissionPolicy" || kind == "MutatingAdmissionPolicyBinding";
}

Task<const EncodedObjects::Texts*> EncodedObjects::In(meta::GroupVersionKind kind) {
  if (const auto found = by_kind_.find(kind); found != by_kind_.end()) co_return &found->second;
  Texts texts;
  const ObjectInterfaces& interfaces = *attributes_.interfaces;
  if (!attributes_.object.is_null()) {
    KS_CO_TRY(texts.object, co_await interfaces.EncodeJSON(arena_, attributes_.object, kind));
  }
  if (!attributes_.old_object.is_null()) {
    KS_CO_TRY(texts.old_object, co_await interfaces.EncodeJSON(arena_, attributes_.old_object, kind));
  }
  co_return &by_kind_.emplace(std::move(kind), std::move(texts)).first->second;
}

base::Clock::SteadyTime ChainDeadline(const base::Clock& clock, const request::Context& context) {
  const auto now = clock.Monotonic();
  auto deadline = std::max(context.received, now - kRequestTimeoutMax) + kRequestTimeoutMax;
  if (context.deadline) deadline = std::min(deadline, *context.deadline);
  return deadline;
}

CallFailed FailedCalling(const Webhook& webhook, std::string_view why, int code) {
  return {.text = "failed calling webhook " + base::GoQuote(webhook.name) + ": " + std::string(why), .code = code};
}

static telemetry::Span StartSpan(const Webhook& webhook, const request::Context& context, const Attributes& attributes,
                                 std::string_view uid, bool mutating) {
  if (!context.span.active()) return context.span;
  const meta::GroupVersionResource& resource = attributes.resource;
  return context.span.Start(mutating ? "Call mutating webhook" : "Call validating webhook",
                            {{"configuration", webhook.configuration},
                             {"webhook", webhook.name},
                             {"resource", resource.group + "/" + resource.version + ", Resource=" + resource.resource},
                             {"subresource", attributes.subresource},
                             {"operation", ToString(attributes.operation)},
                             {"UID", uid}});
}

Awaitable<CallOutcome> CallWebhook(const WebhookDependencies& dependencies, WebhookPtr webhook,
                                   request::Context& context, const Attributes& attributes,
                                   ObjectInterfaces::Resource matched, const EncodedObjects::Texts& texts,
                                   bool mutating, base::Clock::SteadyTime deadline) {
  if (attributes.dry_run && webhook->has_side_effects) {
    co_return CallBroke{
        meta::NewBadRequest("admission webhook " + base::GoQuote(webhook->name) + " does not support dry run")};
  }
  const auto version = ChooseReviewVersion(webhook->review_versions);
  if (!version) {
    co_return FailedCalling(*webhook,
                            "could not create admission objects: webhook does not accept known AdmissionReview "
                            "versions (v1, v1beta1)",
                            400);
  }
  const std::string uid = dependencies.random->UUID();
  static const request::User kNobody;
  std::string body = WriteReview(attributes, {.version = *version,
                                              .uid = uid,
                                              .matched = matched,
                                              .user = context.user ? *context.user : kNobody,
                                              .object = texts.object,
                                              .old_object = texts.old_object});
  const auto own = dependencies.clock->Monotonic() + webhook->timeout;
  const telemetry::ScopedSpan span = StartSpan(*webhook, context, attributes, uid, mutating);
  const auto begun = dependencies.clock->Monotonic();
  auto answer = co_await dependencies.clients->Post(webhook, std::move(body), std::min(own, deadline),
                                                    context.cancellation, *span);
  const auto took = dependencies.clock->Monotonic() - begun;
  if (mutating) {
    context.latencies.Add(telemetry::LatencyTrackers::kMutatingWebhook, took);
  } else {
    context.latencies.AtLeast(telemetry::LatencyTrackers::kValidatingWebhook, took);
  }
  if (answer.ok()) span->AddEvent("Request completed");
  span->End();
  if (!answer.ok()) {
    const std::string prefix = answer.error().no_client ? "could not get REST client: " : "failed to call webhook: ";
    co_return FailedCalling(*webhook, prefix + answer.error().text, answer.error().code);
  }
  auto review = ReadReview(context.arena, answer->body, answer->status, answer->content_type, *version, uid, mutating);
  if (!review.ok()) {
    const std::string prefix =
        review.error().invalid ? "received invalid webhook response: " : "failed to call webhook: ";
    co_return FailedCalling(*webhook, prefix + review.error().text, 503);
  }
  for (const auto& [key, value] : review->audit_annotations) AddAnnotation(context, webhook->name + "/" + key, value);
  for (const std::string& warning : review->warnings) context.warnings.Add(warning);
  if (!review->allowed) co_return CallDenied{DenialOf(webhook->name, std::move(review->status), review->reason)};
  co_return *std::move(review);
}

void Observe(WebhookMetrics* metrics, const Webhook& webhook, std::string_view type, Operation operation,
             std::chrono::nanoseconds took, const CallOutcome& outcome) {
  if (metrics == nullptr) return;
  constexpr int kOK = 200;
  if (std::holds_alternative<ReviewResponse>(outcome)) {
    metrics->Called(webhook.name, type, operation, took, false, kOK);
  } else if (const auto* failed = std::get_if<CallFailed>(&outcome)) {
    if (webhook.fail_open) {
      metrics->FailedOpen(webhook.name, type);
    } else {
      metrics->Rejected(webhook.name, type, operation, "calling_webhook_error", failed->code);
    }
    metrics->Called(webhook.name, type, operation, took, !webhook.fail_open, failed->code);
  } else if (const auto* denied = std::get_if<CallDenied>(&outcome)) {
    metrics->Rejected(webhook.name, type, operation, "no_error", denied->status.code());
    metrics->Called(webhook.name, type, operation, took, true, denied->status.code());
  } else {
    metrics->Rejected(webhook.name, type, operation, "apiserver_internal_error", 0);
    metrics->Called(webhook.name, type, operation, took, true, 0);
  }
}

}  // namespace keelson::admission
