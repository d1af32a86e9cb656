#include "controllers/policy_status.h"

#include <algorithm>

#include "base/url.h"
#include "controllers/policy_type_checker.h"
#include "object/json_text.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io", kAPIVersion = "admissionregistration.k8s.io/v1";
constexpr std::string_view kName = "validatingadmissionpolicy-status";  // of the queue and the field manager
constexpr std::size_t kWorkers = 1;

bool IsUpToDate(Value policy) {
  return policy.Get("metadata", "generation").as_int() <= policy.Get("status", "observedGeneration").as_int();
}

class PolicyStatus final : public Controller, public std::enable_shared_from_this<PolicyStatus> {
 public:
  explicit PolicyStatus(ControllerContext context) : context_(std::move(context)) {}

  void Start() override {
    using registry::Informer;
    queue_ = WorkQueue::New(context_.executor, context_.QueueOptions(std::string(kName), kWorkers),
                            [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); });
    queue_->Open();
    policies_ = context_.informers->Find(kGroup, "validatingadmissionpolicies");
    context_.informers->AddHandler(kGroup, "validatingadmissionpolicies", [weak = weak_from_this()](auto& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const Informer::Change& change : changes) {
        if (!change.deleted && !IsUpToDate(change.value))
          self->queue_->Add(std::string(change.object->attributes().name));
      }
    });
  }

  void Stop() override { queue_->ShutDown(); }

 private:
  static Awaitable<WorkQueue::Result> Sync(std::shared_ptr<PolicyStatus> self, std::string name) {
    if (!self || !self->policies_) co_return WorkQueue::Result::Done();
    auto found = co_await self->policies_->Get("", name, "0");
    if (!found.ok()) co_return WorkQueue::Result::Done();
    base::Arena arena;
    auto policy = self->policies_->Decode(arena, *found);
    if (!policy.ok() || IsUpToDate(*policy)) co_return WorkQueue::Result::Done();
    auto discovered = co_await Discover(self->context_.client);
    if (!discovered.ok()) co_return WorkQueue::Result::Retry();
    const auto kinds = TypesToCheck(*policy, *discovered);
    const auto documents = co_await self->ReadSchemas(arena, *policy, kinds);
    const std::string body = Configuration(arena, *policy, CheckPolicyTypes(*policy, kinds, documents));
    const auto applied = co_await self->context_.client->Do(
        {.method = "PATCH",
         .target = APIPath(kAPIVersion, "", "validatingadmissionpolicies/" + base::PathEscape(name) + "/status") +
                   "?fieldManager=" + std::string(kName) + "&force=true",
         .body = body,
         .content_type = kApplyPatch});
    if (applied.ok() || applied.error().reason() == meta::StatusReason::kNotFound) co_return WorkQueue::Result::Done();
    log::Error("Could not write the status of a policy", "policy", name, "err", applied.error());
    co_return WorkQueue::Result::Retry();
  }

  // Of the group versions that the policy is about. One that is not served is left out.
  Awaitable<std::vector<OpenAPISchemas>> ReadSchemas(base::Arena& arena, Value policy,
                                                     std::vector<meta::GroupVersionKind> kinds) const {
    if (const auto params = ParamKindOf(policy); !params.kind.empty()) kinds.push_back(params);
    std::vector<OpenAPISchemas> documents;
    for (const meta::GroupVersionKind& kind : kinds) {
      const bool known = std::ranges::any_of(documents, [&](const OpenAPISchemas& document) {
        return document.group_version.group == kind.group && document.group_version.version == kind.version;
      });
      if (known) continue;
      std::string path = kind.group.empty() ? "/openapi/v3/api/" : "/openapi/v3/apis/" + kind.group + "/";
      path += kind.version;
      auto answer = co_await context_.client->Do({.method = "GET", .target = std::move(path)});
      if (!answer.ok()) continue;
      const auto parsed = object::ParseJSON(arena, *answer);
      if (parsed) documents.push_back({{kind.group, kind.version}, parsed->Get("components", "schemas")});
    }
    co_return documents;
  }

  static std::string Configuration(base::Arena& arena, Value policy, const std::vector<ExpressionWarning>& warnings) {
    Value config = Value::Map(arena);
    config.Set(arena, "kind", "ValidatingAdmissionPolicy");
    config.Set(arena, "apiVersion", kAPIVersion);
    config.EnsureMap(arena, "metadata").Set(arena, "name", policy.Get("metadata", "name"));
    Value status = config.EnsureMap(arena, "status");
    status.Set(arena, "observedGeneration", policy.Get("metadata", "generation"));
    Value checking = status.EnsureMap(arena, "typeChecking");
    for (const ExpressionWarning& warning : warnings) {
      Value told = Value::Map(arena);
      told.Set(arena, "fieldRef", std::string_view(warning.field_ref));
      told.Set(arena, "warning", std::string_view(warning.warning));
      checking.EnsureList(arena, "expressionWarnings").Append(arena, told);
    }
    return object::ToJSON(config);
  }

  const ControllerContext context_;
  std::shared_ptr<WorkQueue> queue_;
  std::shared_ptr<registry::Store> policies_;
};

}  // namespace

std::shared_ptr<Controller> NewPolicyStatusController(ControllerContext context) {
  return std::make_shared<PolicyStatus>(std::move(context));
}

}  // namespace keelson::controllers
