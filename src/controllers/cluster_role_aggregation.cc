#include "controllers/cluster_role_aggregation.h"

#include <algorithm>
#include <set>

#include "base/url.h"
#include "object/json_text.h"
#include "registry/fields.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io", kAPIVersion = "rbac.authorization.k8s.io/v1";
constexpr std::size_t kWorkers = 5;

bool Contains(Value rules, Value rule) {
  return std::ranges::any_of(rules.items(), [&](Value have) { return have == rule; });
}

// Null and empty are the same here, as Go's semantic equality has it.
bool SameRules(Value a, Value b) { return (a.empty() && b.empty()) || a == b; }

class ClusterRoleAggregation final : public Controller, public std::enable_shared_from_this<ClusterRoleAggregation> {
 public:
  explicit ClusterRoleAggregation(ControllerContext context) : context_(std::move(context)) {}

  void Start() override {
    using registry::Informer;
    queue_ = WorkQueue::New(context_.executor, context_.QueueOptions("ClusterRoleAggregator", kWorkers),
                            [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); });
    queue_->Open();
    roles_ = context_.informers->Find(kGroup, "clusterroles");
    context_.informers->AddHandler(kGroup, "clusterroles", [weak = weak_from_this()](auto& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const Informer::Change& change : changes) {
        const std::string name(change.object->attributes().name);
        if (!change.deleted && change.value["aggregationRule"].is_map()) {
          self->aggregated_.insert(name);
        } else {
          self->aggregated_.erase(name);
        }
      }
      // There are few of them, and any role may be selected by any.
      for (const std::string& name : self->aggregated_) self->queue_->Add(name);
    });
  }

  void Stop() override { queue_->ShutDown(); }

 private:
  static Awaitable<WorkQueue::Result> Sync(std::shared_ptr<ClusterRoleAggregation> self, std::string name) {
    if (!self || !self->roles_) co_return WorkQueue::Result::Done();
    base::Arena arena;
    auto list = co_await self->roles_->List("", {.resource_version = "0"});
    if (!list.ok()) co_return WorkQueue::Result::Retry();
    const auto found = std::ranges::find_if(
        list->items, [&](const storage::ObjectPtr& role) { return role->attributes().name == name; });
    if (found == list->items.end()) co_return WorkQueue::Result::Done();
    auto role = self->roles_->Decode(arena, *found);
    if (!role.ok() || !(*role)["aggregationRule"].is_map()) co_return WorkQueue::Result::Done();
    const Value rules = self->Aggregate(arena, *role, name, list->items);
    if (SameRules(rules, (*role)["rules"])) co_return WorkQueue::Result::Done();
    Value config = Value::Map(arena);
    config.Set(arena, "kind", "ClusterRole");
    config.Set(arena, "apiVersion", kAPIVersion);
    config.EnsureMap(arena, "metadata").Set(arena, "name", std::string_view(name));
    if (!rules.empty()) config.Set(arena, "rules", rules);
    Client::Request request{.method = "PATCH",
                            .target = APIPath(kAPIVersion, "", "clusterroles/" + base::PathEscape(name)) +
                                      "?fieldManager=clusterrole-aggregation-controller&force=true",
                            .body = object::ToJSON(config),
                            .content_type = kApplyPatch};
    const auto applied = co_await self->context_.client->Do(std::move(request));
    if (applied.ok()) co_return WorkQueue::Result::Done();
    log::Error("Could not aggregate a cluster role", "clusterRole", name, "err", applied.error());
    co_return WorkQueue::Result::Retry();
  }

  // Rules of the selected roles, by the order of selectors and names, each once.
  Value Aggregate(base::Arena& arena, Value role, std::string_view name,
                  const std::vector<storage::ObjectPtr>& roles) const {
    Value rules = Value::List(arena);
    for (const Value selector : role.Get("aggregationRule", "clusterRoleSelectors").items()) {
      for (const storage::ObjectPtr& other : roles) {  // by key, which is by name
        if (other->attributes().name == name) continue;
        auto decoded = roles_->Decode(arena, other);
        if (!decoded.ok() || !registry::LabelSelectorMatches(selector, decoded->Get("metadata", "labels"))) continue;
        for (const Value rule : (*decoded)["rules"].items()) {
          if (!Contains(rules, rule)) rules.Append(arena, rule);
        }
      }
    }
    return rules;
  }

  const ControllerContext context_;
  std::shared_ptr<WorkQueue> queue_;
  std::shared_ptr<registry::Store> roles_;
  std::set<std::string> aggregated_;  // names of roles with an aggregationRule
};

}  // namespace

std::shared_ptr<Controller> NewClusterRoleAggregation(ControllerContext context) {
  return std::make_shared<ClusterRoleAggregation>(std::move(context));
}

}  // namespace keelson::controllers
