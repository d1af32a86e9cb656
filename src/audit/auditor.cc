#include "audit/auditor.h"

namespace keelson::audit {
namespace {

constexpr Stages kAllStages = 0xFF;

}  // namespace

std::unique_ptr<RequestAudit> Auditor::Begin(const request::Context& context, std::string_view uri,
                                             std::vector<std::string> source_ips) {
  const request::User* user = context.user ? &*context.user : nullptr;
  const request::RequestInfo& info = context.info;
  if (!active()) return nullptr;
  // Without a policy there is only the tail, which takes every stage by itself.
  Decision decision{.level = Level::kMetadata, .omit_stages = kAllStages};
  if (policy_) {
    decision = policy_->Evaluate(user, info);
    metrics_->levels.With({ToString(decision.level)}).Inc();
  }
  if (decision.level == Level::kNone) return nullptr;
  auto audit = std::make_unique<RequestAudit>(shared_from_this(), decision);
  Event& event = audit->event;
  event.level = decision.level;
  event.omit_managed_fields = decision.omit_managed_fields;
  event.audit_id = context.audit_id;
  event.request_uri = uri;
  event.verb = info.verb;
  if (user != nullptr) event.user = *user;
  event.source_ips = std::move(source_ips);
  event.user_agent = TruncatedUserAgent(context.user_agent);
  event.received =
      clock_.Now() - std::chrono::duration_cast<Event::Time::duration>(clock_.Monotonic() - context.received);
  if (info.is_resource_request) {
    event.object_ref = ObjectReference{.resource = info.resource,
                                       .name_space = info.name_space,
                                       .name = info.name,
                                       .uid = "",
                                       .api_group = info.api_group,
                                       .api_version = info.api_version,
                                       .resource_version = "",
                                       .subresource = info.subresource};
  }
  return audit;
}

void Auditor::Shutdown() {
  for (const auto& backend : backends_) backend->Shutdown();
}

EventPtr RequestAudit::Snapshot(Stage stage, const request::AuditAnnotations& annotations) {
  event.stage = stage;
  event.stage_time = stage == Stage::kRequestReceived ? event.received : auditor_->clock_.Now();
  event.annotations = annotations.entries();
  if (decision_.level >= Level::kRequest) {
    const auto& more = annotations.request_level_entries();
    event.annotations.insert(event.annotations.end(), more.begin(), more.end());
  }
  auditor_->metrics_->events.Inc();
  // Nothing is said about a request after its last event.
  const bool last = stage == Stage::kResponseComplete || stage == Stage::kPanic;
  return last ? std::make_shared<const Event>(std::move(event)) : std::make_shared<const Event>(event);
}

void RequestAudit::AddToTail(Stage stage, const request::AuditAnnotations& annotations) {
  Tail* const tail = auditor_->tail_.get();
  if (tail == nullptr || stage == Stage::kRequestReceived || !tail->followed()) return;
  if (auditor_->policy_ && !decision_.Records(stage)) return;
  Event shown = event;
  shown.stage = stage;
  shown.stage_time = auditor_->clock_.Now();
  shown.annotations = annotations.entries();
  tail->Add(shown);
}

Awaitable<bool> RequestAudit::Process(Stage stage, const request::AuditAnnotations& annotations) {
  AddToTail(stage, annotations);
  if (!decision_.Records(stage)) {
    for (const auto& backend : auditor_->backends_) co_await backend->WaitForRoom();
    co_return true;
  }
  const EventPtr snapshot = Snapshot(stage, annotations);
  const Until until = stage == Stage::kRequestReceived ? Until::kQueued : Until::kWritten;
  bool stored = true;
  for (const auto& backend : auditor_->backends_) {
    const bool kept = co_await backend->ProcessEvent(snapshot, until);
    stored = stored && kept;
  }
  co_return stored;
}

void RequestAudit::Post(Stage stage, const request::AuditAnnotations& annotations) {
  AddToTail(stage, annotations);
  if (!decision_.Records(stage)) return;
  const EventPtr snapshot = Snapshot(stage, annotations);
  for (const auto& backend : auditor_->backends_) backend->Post(snapshot);
}

}  // namespace keelson::audit
