#include "controllers/resource_quota.h"

#include <map>
#include <set>

#include "admission/attributes.h"
#include "admission/plugins/quota_usage.h"
#include "base/url.h"
#include "object/json_text.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

using admission::Amounts;
using registry::Informer;
namespace quota = admission::quota;
using Result = WorkQueue::Result;

constexpr std::size_t kWorkers = 5;
// Everything is worked out anew this often while there are quotas, in case a change was missed.
constexpr std::chrono::minutes kResyncPeriod{5};

using Resource = std::pair<std::string, std::string>;  // group, plural

// Resources with short quota names, besides count/<plural>.<group>.
const std::set<Resource>& NamedResources() {
  static const std::set<Resource> resources = {
      {"", "pods"},       {"", "services"},       {"", "persistentvolumeclaims"}, {"resource.k8s.io", "resourceclaims"},
      {"", "configmaps"}, {"", "resourcequotas"}, {"", "replicationcontrollers"}, {"", "secrets"}};
  return resources;
}

std::set<Resource> CandidatesOf(const Amounts& hard) {
  std::set<Resource> candidates = NamedResources();
  constexpr std::string_view kCount = "count/";
  for (const auto& [name, amount] : hard) {
    if (!name.starts_with(kCount)) continue;
    const std::string rest = name.substr(kCount.size());
    const auto dot = rest.find('.');
    candidates.emplace(dot == std::string::npos ? "" : rest.substr(dot + 1), rest.substr(0, dot));
  }
  return candidates;
}

admission::Attributes AttributesOf(const Resource& resource) {
  admission::Attributes attributes;
  attributes.resource.group = resource.first;
  attributes.resource.resource = resource.second;
  return attributes;
}

// Resources whose objects are read for usage; others are only counted.
bool CountsContent(const Resource& resource) {
  return resource == Resource{"", "pods"} || resource == Resource{"", "services"} ||
         resource == Resource{"", "persistentvolumeclaims"} ||
         resource == Resource{"resource.k8s.io", "resourceclaims"};
}

// May an update change what the object uses? Upstream compares with the old object: pods when they end or are resized,
// services when their type changes, claims when they grow.
bool UpdateMatters(const Resource& resource, Value object) {
  if (resource != Resource{"", "pods"}) return true;
  const std::string_view phase = object.Get("status", "phase").as_string();
  return phase == "Succeeded" || phase == "Failed" || object.Get("metadata", "deletionTimestamp").is_string() ||
         object.Get("status", "containerStatuses").is_list();
}

bool Same(const Amounts& a, const Amounts& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, quantity] : a) {
    const auto other = b.find(name);
    if (other == b.end() || quantity != other->second) return false;
  }
  return true;
}

Value AmountsValue(base::Arena& arena, const Amounts& amounts) {
  Value value = Value::Map(arena);
  for (const auto& [name, quantity] : amounts)
    value.Set(arena, arena.Copy(name), Value::String(arena, quantity.ToString()));
  return value;
}

class ResourceQuotas final : public Controller, public std::enable_shared_from_this<ResourceQuotas> {
 public:
  explicit ResourceQuotas(ControllerContext context) : context_(std::move(context)) {}

  void Start() override {
    const auto sync = [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); };
    queue_ = WorkQueue::New(context_.executor, context_.QueueOptions("resourcequota_primary", kWorkers), sync);
    priority_ = WorkQueue::New(context_.executor, context_.QueueOptions("resourcequota_priority", kWorkers), sync);
    queue_->Open();
    priority_->Open();
    quotas_ = context_.informers->Find("", "resourcequotas");
    definitions_ = context_.informers->Find("apiextensions.k8s.io", "customresourcedefinitions");
    context_.informers->AddHandler("", "resourcequotas", [weak = weak_from_this()](auto& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const Informer::Change& change : changes) self->OnQuota(change);
    });
    context_.informers->AddHandler(
        "apiextensions.k8s.io", "customresourcedefinitions",
        [weak = weak_from_this()](std::vector<Informer::Change>& changes) {
          const auto self = weak.lock();
          if (!self) return;
          for (const Informer::Change& change : changes) self->OnDefinition(change);
        },
        Informer::Form::kStored);
  }

  void Stop() override {
    queue_->ShutDown();
    priority_->ShutDown();
  }

 private:
  struct Quota {
    std::string uid;
    Amounts hard;  // of the spec
    std::set<Resource> resources;
  };

  void OnQuota(const Informer::Change& change) {
    const storage::Attributes& attributes = change.object->attributes();
    const std::string name_space(attributes.name_space), name(attributes.name);
    auto& known = known_[name_space];
    if (change.deleted) {
      known.erase(name);
      if (known.empty()) known_.erase(name_space);
      return;
    }
    Amounts hard = admission::ReadAmounts(change.value.Get("spec", "hard"));
    const Amounts told = admission::ReadAmounts(change.value.Get("status", "hard"));
    const Amounts used = admission::ReadAmounts(change.value.Get("status", "used"));
    const std::string_view uid = change.value.Get("metadata", "uid").as_string();
    const auto before = known.find(name);
    const bool same = before != known.end() && before->second.uid == uid && Same(before->second.hard, hard);
    Quota& now = known[name];
    now.uid = uid;
    now.resources = ResourcesOf(hard);
    now.hard = std::move(hard);
    if (same) return;  // only the status changed, which is this controller's own or admission's doing
    const std::string key = name_space + "/" + name;
    bool missing = !Same(now.hard, told);
    for (const auto& [resource, quantity] : now.hard) missing = missing || !used.contains(resource);
    (missing ? priority_ : queue_)->Add(key);
  }

  // Quotas of custom resources: when a definition is created, also for the second time, usage is computed again and the
  // informer of its objects is followed. The garbage collector ends that informer with the definition.
  void OnDefinition(const Informer::Change& change) {
    const std::string_view name = change.object->attributes().name;
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) return;
    const Resource resource{name.substr(dot + 1), name.substr(0, dot)};
    if (change.deleted) stores_.erase(resource);
    if (change.deleted || stores_.contains(resource)) return;
    for (const auto& [name_space, quotas] : known_) Replenish(resource, name_space);
  }

  static std::set<Resource> ResourcesOf(const Amounts& hard) {
    std::set<Resource> resources;
    for (const Resource& candidate : CandidatesOf(hard)) {
      if (!quota::MatchingNames(AttributesOf(candidate), hard).empty()) resources.insert(candidate);
    }
    return resources;
  }

  // The Store to count objects in; null when the resource is not served.
  std::shared_ptr<registry::Store> StoreOf(const Resource& resource) const {
    const auto found = stores_.find(resource);
    return found == stores_.end() ? nullptr : found->second;
  }

  Awaitable<void> Follow(Resource resource) {
    if (stores_.contains(resource)) co_return;
    std::shared_ptr<registry::Store> store;
    if (!resource.first.empty() && definitions_) {
      const auto custom = co_await definitions_->Get("", resource.second + "." + resource.first, "0");
      if (custom.ok()) store = context_.metadata_store(resource.first, resource.second, true);
    }
    if (!store) store = context_.informers->Find(resource.first, resource.second);
    if (!store || !stores_.emplace(resource, store).second) co_return;
    const bool content = CountsContent(resource);
    context_.informers->AddHandler(
        resource.first, resource.second, std::move(store),
        [weak = weak_from_this(), resource, content](std::vector<Informer::Change>& changes) {
          const auto self = weak.lock();
          if (!self) return;
          for (const Informer::Change& change : changes) {
            if (change.deleted || (content && UpdateMatters(resource, change.value)))
              self->Replenish(resource, std::string(change.object->attributes().name_space));
          }
        },
        content ? Informer::Form::kDecoded : Informer::Form::kStored);
  }

  void Replenish(const Resource& resource, const std::string& name_space) {
    const auto quotas = known_.find(name_space);
    if (quotas == known_.end()) return;
    for (const auto& [name, quota] : quotas->second) {
      if (quota.resources.contains(resource)) queue_->Add(name_space + "/" + name);
    }
  }

  static Awaitable<Result> Sync(std::shared_ptr<ResourceQuotas> self, std::string key) {
    if (!self || !self->quotas_) co_return Result::Done();
    const auto slash = key.find('/');
    const std::string name_space = key.substr(0, slash), name = key.substr(slash + 1);
    auto found = co_await self->quotas_->Get(name_space, name, "0");
    if (!found.ok()) co_return Result::Done();
    base::Arena arena;
    auto object = self->quotas_->Decode(arena, *found);
    if (!object.ok()) co_return Result::Done();
    const Value status = (*object)["status"];
    const Amounts hard = admission::ReadAmounts(object->Get("spec", "hard"));
    const Amounts old_used = admission::ReadAmounts(status["used"]);
    bool failed = false;
    Amounts used = co_await self->Calculate(name_space, (*object)["spec"], hard, failed);
    for (const auto& [resource, quantity] : old_used) {
      if (hard.contains(resource)) used.try_emplace(resource, quantity);
    }
    const bool dirty = !Same(hard, admission::ReadAmounts(status["hard"])) || !status["hard"].is_map() ||
                       !status["used"].is_map() || !Same(used, old_used);
    if (dirty) {
      Value next = object->Clone(arena);
      next.Set(arena, "kind", "ResourceQuota");
      next.Set(arena, "apiVersion", "v1");
      Value told = Value::Map(arena);
      told.Set(arena, "hard", AmountsValue(arena, hard));
      told.Set(arena, "used", AmountsValue(arena, used));
      next.Set(arena, "status", told);
      const auto written = co_await self->context_.client->Do(
          {.method = "PUT",
           .target = APIPath("v1", name_space, "resourcequotas/" + base::PathEscape(name) + "/status"),
           .body = object::ToJSON(next)});
      if (!written.ok() && written.error().reason() == meta::StatusReason::kNotFound) co_return Result::Done();
      if (!written.ok() && written.error().reason() != meta::StatusReason::kConflict)
        log::Error("Error processing resource quota work item", "queueKey", key, "err", written.error());
      failed = failed || !written.ok();
    }
    if (failed) co_return Result::Retry();
    co_return Result::After(kResyncPeriod);
  }

  // The usage of every resource in `hard` that can be computed.
  Awaitable<Amounts> Calculate(std::string name_space, Value spec, Amounts hard, bool& failed) {
    Amounts used;
    for (const Resource& resource : ResourcesOf(hard)) {
      co_await Follow(resource);
      const auto store = StoreOf(resource);
      if (!store) continue;
      const admission::Attributes attributes = AttributesOf(resource);
      auto list = co_await store->List(name_space, {.resource_version = "0"});
      if (!list.ok()) {
        failed = true;
        continue;
      }
      Amounts total;
      for (const std::string& name : quota::MatchingNames(attributes, hard)) total[name] = object::Quantity();
      for (const storage::ObjectPtr& item : list->items) {
        base::Arena arena;
        Value object = Value::Map(arena);
        if (CountsContent(resource)) {
          auto decoded = store->Decode(arena, item);
          if (!decoded.ok()) continue;
          object = *decoded;
        }
        if (!quota::ScopesMatch(attributes, spec, object)) continue;
        const Amounts usage = quota::Usage(attributes, object, context_.clock->Now());
        for (auto& [name, sum] : total) {
          if (const auto own = usage.find(name); own != usage.end()) sum.Add(own->second);
        }
      }
      for (auto& [name, sum] : total) used.insert_or_assign(name, sum);
    }
    co_return used;
  }

  const ControllerContext context_;
  std::shared_ptr<WorkQueue> queue_, priority_;
  std::shared_ptr<registry::Store> quotas_, definitions_;
  std::map<std::string, std::map<std::string, Quota>> known_;  // by namespace and name
  std::map<Resource, std::shared_ptr<registry::Store>> stores_;
};

}  // namespace

std::shared_ptr<Controller> NewResourceQuotaController(ControllerContext context) {
  return std::make_shared<ResourceQuotas>(std::move(context));
}

}  // namespace keelson::controllers
