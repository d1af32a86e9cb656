// pods/eviction: deletion that respects disruption budgets.
#include <algorithm>

#include "async/deadlines.h"
#include "async/event.h"
#include "base/random.h"
#include "base/strings.h"
#include "controlplane/bootstrap.h"
#include "controlplane/custom_routes.h"
#include "endpoints/custom.h"
#include "registry/catalog.h"
#include "registry/fields.h"

namespace keelson::controlplane {
namespace {

using registry::Int;
using registry::Task;
using registry::Text;

constexpr int kAttemptsMax = 20;
constexpr std::chrono::milliseconds kRetryAfter{500};
constexpr std::size_t kDisruptedPodsMax = 2000;
constexpr std::string_view kViolates = "Cannot evict pod as it would violate the pod's disruption budget.";

bool Finished(Value pod) {
  const std::string_view phase = Text(pod["status"], "phase");
  return phase == "Succeeded" || phase == "Failed" || pod.Get("metadata", "deletionTimestamp").is_string();
}
bool IgnoresBudgets(Value pod) { return Finished(pod) || Text(pod["status"], "phase") == "Pending"; }

bool Ready(Value pod) {
  return std::ranges::any_of(pod.Get("status", "conditions").items(), [](Value condition) {
    return Text(condition, "type") == "Ready" && Text(condition, "status") == "True";
  });
}

meta::Status BudgetRefuses(std::string message, int retry_after) {
  meta::Status::Fields fields = meta::NewTooManyRequests(kViolates, retry_after).fields();
  if (!fields.details) fields.details.emplace();
  fields.details->causes.push_back({.reason = "DisruptionBudget", .message = std::move(message)});
  return meta::Status(std::move(fields));
}

meta::Status StillProcessed(std::string_view budget) {
  return BudgetRefuses("The disruption budget " + std::string(budget) + " is still being processed by the server.", 10);
}

std::string WhyNone(Value budget) {
  const Value status = budget["status"];
  const std::string name = "The disruption budget " + std::string(budget.Get("metadata", "name").as_string());
  std::string_view reason, message;
  for (const Value condition : status["conditions"].items()) {
    if (Text(condition, "type") != "DisruptionAllowed" || Text(condition, "status") != "False") continue;
    reason = Text(condition, "reason");
    message = Text(condition, "message");
  }
  if (!message.empty() && reason == "SyncFailed") {
    return name + " does not allow evicting pods currently because it failed sync: " + std::string(message);
  }
  if (Int(status, "currentHealthy") <= Int(status, "desiredHealthy")) {
    return name + " needs " + std::to_string(Int(status, "desiredHealthy")) + " healthy pods and has " +
           std::to_string(Int(status, "currentHealthy")) + " currently";
  }
  if (!message.empty())
    return name + " does not allow evicting pods currently (" + std::string(reason) + "): " + std::string(message);
  return name + " does not allow evicting pods currently";
}

void ForbidFurther(base::Arena& arena, Value budget, std::string_view now) {
  Value conditions = budget["status"].EnsureList(arena, "conditions");
  Value found;
  for (const Value condition : conditions.items()) {
    if (Text(condition, "type") == "DisruptionAllowed") found = condition;
  }
  if (found.is_null()) {
    found = Value::Map(arena);
    found.Set(arena, "type", "DisruptionAllowed");
    conditions.Append(arena, found);
  }
  if (Text(found, "status") != "False") found.Set(arena, "lastTransitionTime", now);
  found.Set(arena, "status", "False");
  found.Set(arena, "reason", "InsufficientPods");
  found.Set(arena, "message", "");
  found.Set(arena, "observedGeneration", Value(Int(budget["status"], "observedGeneration")));
}

// Takes one disruption from the budget. Called again with the newer budget after a conflict.
meta::Result<Value> TakeOne(base::Arena& arena, Value current, std::string_view pod) {
  Value budget = current.Clone(arena);
  const std::string_view name = budget.Get("metadata", "name").as_string();
  Value status = budget.EnsureMap(arena, "status");
  const meta::GroupResource resource{"policy", "poddisruptionbudget"};
  if (Int(status, "observedGeneration") < Int(budget["metadata"], "generation")) return StillProcessed(name);
  const std::int64_t allowed = Int(status, "disruptionsAllowed");
  if (allowed < 0) return meta::NewForbidden(resource, name, "pdb disruptions allowed is negative");
  if (status["disruptedPods"].size() > kDisruptedPodsMax) {
    return meta::NewForbidden(resource, name,
                              "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  }
  if (allowed == 0) return BudgetRefuses(WhyNone(budget), 0);
  const std::string_view now = arena.Copy(registry::FormatTime(base::Clock::Real().Now()));
  status.Set(arena, "disruptionsAllowed", Value(allowed - 1));
  if (allowed == 1) ForbidFurther(arena, budget, now);
  status.EnsureMap(arena, "disruptedPods").Set(arena, arena.Copy(pod), now);
  return budget;
}

registry::DeleteOptions OptionsOf(Value sent, bool dry_run) {
  registry::DeleteOptions options;
  if (sent["gracePeriodSeconds"].is_int()) options.grace_period_seconds = sent["gracePeriodSeconds"].as_int();
  if (sent["propagationPolicy"].is_string())
    options.propagation_policy = std::string(sent["propagationPolicy"].as_string());
  if (sent["orphanDependents"].is_bool()) options.orphan_dependents = sent["orphanDependents"].as_bool();
  if (const Value uid = sent.Get("preconditions", "uid"); uid.is_string()) options.uid = std::string(uid.as_string());
  if (const Value version = sent.Get("preconditions", "resourceVersion"); version.is_string()) {
    options.resource_version = std::string(version.as_string());
  }
  options.dry_run = dry_run;
  return options;
}

// The pod with the condition that says why it goes; 409 when a precondition fails.
meta::Result<Value> WithDisruptionTarget(base::Arena& arena, const std::string& name,
                                         const registry::DeleteOptions& options, Value existing) {
  const meta::GroupResource pod_resource{"", "Pod"};
  Value pod = existing.Clone(arena);
  const Value metadata = pod["metadata"];
  const auto differs = [&](std::string_view what, const std::string& wanted, std::string_view is,
                           std::string_view end) {
    return meta::NewConflict(pod_resource, name,
                             "the " + std::string(what) + " in the precondition (" + wanted + ") does not match the " +
                                 std::string(what) + " in record (" + std::string(is) +
                                 "). The object might have been " + std::string(end));
  };
  if (options.uid && *options.uid != Text(metadata, "uid"))
    return differs("UID", *options.uid, Text(metadata, "uid"), "deleted and then recreated");
  if (options.resource_version && *options.resource_version != Text(metadata, "resourceVersion"))
    return differs("ResourceVersion", *options.resource_version, Text(metadata, "resourceVersion"), "modified");
  Value conditions = pod.EnsureMap(arena, "status").EnsureList(arena, "conditions");
  Value target;
  for (const Value condition : conditions.items()) {
    if (Text(condition, "type") == "DisruptionTarget") target = condition;
  }
  if (target.is_null()) {
    target = Value::Map(arena);
    target.Set(arena, "type", "DisruptionTarget");
    conditions.Append(arena, target);
  }
  if (Text(target, "status") != "True")
    target.Set(arena, "lastTransitionTime", Value::String(arena, registry::FormatTime(base::Clock::Real().Now())));
  target.Set(arena, "status", "True");
  target.Set(arena, "reason", "EvictionByEvictionAPI");
  target.Set(arena, "message", "Eviction API: evicting");
  if (Int(pod["status"], "observedGeneration") != 0)
    target.Set(arena, "observedGeneration", Value(Int(metadata, "generation")));
  return pod;
}

meta::Result<Value> TakeFrom(request::Context& own, const registry::Store& budgets, const std::string& pod,
                             Value current) {
  KS_TRY(const Value budget, TakeOne(own.arena, current, pod));
  // Upstream updates the status through its loopback client, whose field manager is kube-apiserver.
  TrackFields(own, budgets, budget, "kube-apiserver", current, "status");
  return budget;
}

Awaitable<void> Pause() {
  async::Event over;
  const auto jitter = std::chrono::milliseconds(base::Random::Real().Below(50));
  const auto entry =
      async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + kRetryAfter + jitter, [&over] { over.Set(); });
  co_await over.Wait();
}

// One eviction of one pod.
struct Eviction {
  std::string name, name_space;
  registry::DeleteOptions options;
  meta::FieldErrors wrong_options;  // told when the pod is marked already, as upstream
};

// The decision of the pod's PodDisruptionBudget about an eviction.
struct Permission {
  std::string budget;   // its name; "": the pod has none
  bool pinned = false;  // the pod is not ready: its eviction takes nothing from the budget
};

// Deletion that respects disruption budgets (upstream's EvictionREST).
class EvictionREST final : public registry::Reviewer {
 public:
  EvictionREST(std::shared_ptr<const registry::Store> pods, std::shared_ptr<const registry::Store> budgets)
      : pods_(std::move(pods)), budgets_(std::move(budgets)) {}

  Task<Value> Create(request::Context& context, Value eviction, Options options) const override;

 private:
  // False: the budgets decide about `pod`.
  Task<bool> EvictUnbudgeted(request::Context& context, const Eviction& eviction, Value& pod) const;
  Task<Permission> AskBudget(request::Context& context, const Eviction& eviction, Value pod) const;
  Task<void> TakeFromBudget(const Eviction& eviction, std::string budget) const;
  Task<void> MarkAndDelete(request::Context& context, const Eviction& eviction, registry::DeleteOptions options) const;

  const std::shared_ptr<const registry::Store> pods_;
  const std::shared_ptr<const registry::Store> budgets_;  // may be null
};

// Writes into the pod why it goes, then deletes it.
Task<void> EvictionREST::MarkAndDelete(request::Context& context, const Eviction& eviction,
                                       registry::DeleteOptions options) const {
  const std::string& name = eviction.name;
  if (!options.dry_run) {
    const auto mark = registry::UpdateBy(
        [&](Value existing) { return WithDisruptionTarget(context.arena, name, options, existing); });
    auto marked = co_await pods_->Update(context, name, mark, nullptr, nullptr,
                                         {.endpoint = {registry::Endpoint::Part::kStatus}});
    if (!marked.ok()) co_return marked.error();
    if (options.resource_version) options.resource_version = std::to_string(marked->object->resource_version());
  }
  if (!eviction.wrong_options.empty()) co_return meta::NewInvalidOptions("DeleteOptions", eviction.wrong_options);
  auto deleted = co_await pods_->Delete(context, context.info.name_space, name, std::move(options), nullptr);
  if (!deleted.ok()) co_return deleted.error();
  co_return meta::Result<void>();
}

// Pods that run nothing go whatever the budgets say. True: it is gone.
Task<bool> EvictionREST::EvictUnbudgeted(request::Context& context, const Eviction& eviction, Value& pod) const {
  const registry::DeleteOptions& original = eviction.options;
  for (int attempt = 1;; ++attempt) {
    KS_CO_TRY(const storage::ObjectPtr found,
              co_await pods_->Get(eviction.name_space, eviction.name, "", context.caller()));
    KS_CO_TRY(pod, pods_->Decode(context.arena, found));
    const std::string version = std::to_string(found->resource_version());
    pod["metadata"].Set(context.arena, "resourceVersion", Value::String(context.arena, version));
    if (!IgnoresBudgets(pod)) co_return false;
    registry::DeleteOptions options = original;
    if (!Finished(pod) && !options.resource_version) options.resource_version = version;
    auto done = co_await MarkAndDelete(context, eviction, std::move(options));
    if (done.ok()) co_return true;
    const bool again = done.error().reason() == meta::StatusReason::kConflict && !original.resource_version &&
                       (!original.uid || *original.uid == Text(pod["metadata"], "uid"));
    if (!again || attempt >= kAttemptsMax) co_return done.error();
    co_await Pause();
  }
}

Task<void> EvictionREST::TakeFromBudget(const Eviction& eviction, std::string budget) const {
  request::Context own;
  own.info.name_space = eviction.name_space;
  own.info.name = budget;
  own.info.api_group = "policy";
  own.info.api_version = "v1";
  own.user = LoopbackUser();
  const auto take = registry::UpdateBy([&](Value current) { return TakeFrom(own, *budgets_, eviction.name, current); });
  auto taken = co_await budgets_->Update(own, std::move(budget), take, nullptr, nullptr,
                                         {.endpoint = {registry::Endpoint::Part::kStatus}});
  if (!taken.ok()) co_return taken.error();
  co_return meta::Result<void>();
}

Task<Permission> EvictionREST::AskBudget(request::Context& context, const Eviction& eviction, Value pod) const {
  std::vector<Value> matching;
  if (budgets_) {
    KS_CO_TRY(const storage::ObjectList list, co_await budgets_->List(eviction.name_space, {}));
    for (const auto& item : list.items) {
      KS_CO_TRY(const Value budget, budgets_->Decode(context.arena, item));
      const Value selector = budget.Get("spec", "selector");
      if (selector.is_map() && registry::LabelSelectorMatches(selector, pod.Get("metadata", "labels")))
        matching.push_back(budget);
    }
  }
  if (matching.empty()) co_return Permission{};
  if (matching.size() > 1) {
    co_return meta::NewPlainError(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  }
  const Value budget = matching.front(), status = budget["status"];
  const bool healthy =
      Int(status, "currentHealthy") >= Int(status, "desiredHealthy") && Int(status, "desiredHealthy") > 0;
  Permission permission{
      .budget = std::string(budget.Get("metadata", "name").as_string()),
      .pinned = !Ready(pod) && (Text(budget["spec"], "unhealthyPodEvictionPolicy") == "AlwaysAllow" || healthy)};
  if (permission.pinned) co_return permission;
  if (eviction.options.dry_run) {
    KS_CO_TRY([[maybe_unused]] const Value taken, TakeOne(context.arena, budget, eviction.name));
  } else {
    KS_CO_RETURN_IF_ERROR(co_await TakeFromBudget(eviction, permission.budget));
  }
  co_return permission;
}

// The DeleteOptions of an Eviction.
meta::Result<Eviction> ReadEviction(const request::Context& context, Value sent,
                                    const registry::Reviewer::Options& options) {
  Eviction eviction{.name = context.info.name, .name_space = context.info.name_space};
  if (Text(sent["metadata"], "name") != eviction.name)
    return meta::NewBadRequest("name in URL does not match name in Eviction object");
  const Value wanted = sent["deleteOptions"];
  if (wanted["ignoreStoreReadErrorWithClusterBreakingPotential"].as_bool()) {
    return meta::NewInvalid(
        {"policy", "Eviction"}, eviction.name,
        {{meta::FieldError::Type::kInvalid, "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential", "true",
          "can not be set for pod eviction, try after removing the option"}});
  }
  const meta::DeleteOptions delete_options = meta::DeleteOptions::FromBody(wanted);
  if (!delete_options.dry_run.empty() && !options.dry_run.empty() && delete_options.dry_run != options.dry_run) {
    return meta::NewPlainError("Non-matching dry-run options in request and content: [" +
                               base::Join(options.dry_run, " ") + "] and [" + base::Join(delete_options.dry_run, " ") +
                               "]");
  }
  eviction.options = OptionsOf(wanted, options.is_dry_run() || !wanted["dryRun"].empty());
  eviction.wrong_options = delete_options.Validate();
  return eviction;
}

Task<Value> EvictionREST::Create(request::Context& context, Value sent, Options options) const {
  KS_CO_TRY(const Eviction eviction, ReadEviction(context, sent, options));
  KS_CO_RETURN_IF_ERROR(co_await options.Validate(sent));
  Value pod;
  KS_CO_TRY(const bool gone, co_await EvictUnbudgeted(context, eviction, pod));
  if (gone) co_return SuccessStatus(context.arena, 201);
  KS_CO_TRY(const Permission permission, co_await AskBudget(context, eviction, pod));
  registry::DeleteOptions deletion = eviction.options;
  if (permission.pinned) deletion.resource_version = std::string(Text(pod["metadata"], "resourceVersion"));
  auto done = co_await MarkAndDelete(context, eviction, std::move(deletion));
  if (done.ok()) co_return SuccessStatus(context.arena, 201);
  if (done.error().reason() == meta::StatusReason::kConflict && permission.pinned && !eviction.options.resource_version)
    co_return StillProcessed(permission.budget);
  co_return done.error();
}

}  // namespace

bool InstallEviction(const ChainConfig& config, const schema::Resource& resource,
                     const schema::Subresource& subresource, std::shared_ptr<registry::Store> store,
                     endpoints::APIGroupVersion& version) {
  if (resource.plural != "pods" || !resource.group.empty() || subresource.name != "eviction") return false;
  auto budgets = config.storage->Get("policy", "poddisruptionbudgets");
  auto scope = NewSubresourceScope(config, resource, subresource, store);
  scope->any_version = true;  // the same in both of its versions, and taken in either
  TrackSubresource(*scope);
  endpoints::Route route{.scope = std::move(scope)};
  route.item["POST"] = endpoints::NewCreater(std::make_shared<EvictionREST>(std::move(store), std::move(budgets)));
  version.Add(resource.plural, subresource.name, std::move(route));
  return true;
}

}  // namespace keelson::controlplane
