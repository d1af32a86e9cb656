#include "controlplane/status_controllers.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "async/deadlines.h"
#include "async/gate.h"
#include "base/strings.h"
#include "codec/json.h"
#include "controlplane/write_limit.h"
#include "patch/field_manager.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

// When conditions are looked at again that were not written because of the limit.
constexpr std::chrono::seconds kRetryAfter{30};
constexpr std::string_view kFlowControl = "flowcontrol.apiserver.k8s.io";
constexpr std::string_view kFlowControlConsumer = "api-priority-and-fairness-config-consumer-v1";

struct Condition {
  std::string type, status, reason, message;
  bool operator==(const Condition&) const = default;
};

Condition ConditionOf(Value object, std::string_view type) {
  for (const Value condition : object.Get("status", "conditions").items()) {
    if (condition["type"].as_string() != type) continue;
    return {std::string(type), std::string(condition["status"].as_string()),
            std::string(condition["reason"].as_string()), std::string(condition["message"].as_string())};
  }
  return {};
}

Condition DanglingCondition(std::string_view level, bool exists) {
  const std::string about =
      "This FlowSchema references the PriorityLevelConfiguration object named " + base::GoQuote(level);
  if (exists) return {"Dangling", "False", "Found", about + " and it exists"};
  return {"Dangling", "True", "NotFound", about + " but there is no such object"};
}

Value ConditionValue(base::Arena& arena, const Condition& condition, Value previous) {
  Value value = Value::Map(arena);
  value.Set(arena, "type", Value::String(arena, condition.type));
  value.Set(arena, "status", Value::String(arena, condition.status));
  const bool same = previous["status"].as_string() == condition.status && previous["lastTransitionTime"].is_string();
  value.Set(
      arena, "lastTransitionTime",
      same ? previous["lastTransitionTime"] : Value::String(arena, registry::FormatTime(base::Clock::Real().Now())));
  value.Set(arena, "reason", Value::String(arena, condition.reason));
  value.Set(arena, "message", Value::String(arena, condition.message));
  return value;
}

Value FindCondition(Value object, std::string_view type) {
  for (const Value condition : object.Get("status", "conditions").items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return {};
}

// Writes one condition into the status of an object: applied as its own manager, or updated as the server's.
struct ConditionWrite {
  std::shared_ptr<registry::Store> store;
  std::string version;
  std::string name;
  Condition condition;
  std::string_view manager;
  bool apply;
};

Awaitable<void> Write(ConditionWrite write) {
  request::Context context;
  base::Arena& arena = context.arena;
  context.info.name = write.name;
  context.info.verb = "update";
  context.info.subresource = "status";
  context.info.api_group = write.store->options().resource.group;
  context.user = request::User{.name = "system:apiserver", .groups = {std::string(request::kSystemMasters)}};
  patch::FieldManager::Options options;
  options.kind = {write.store->options().kind.group, write.version, write.store->options().kind.kind};
  options.type = write.store->options().type;
  options.subresource = "status";
  const auto& reset = write.store->strategy().status.reset_fields;
  options.reset_fields.assign(reset.begin(), reset.end());
  const schema::Struct* type = options.type;
  const std::string api_version = options.kind.group_version().ToString();
  const patch::FieldManager fields(std::move(options));
  const auto updated = registry::UpdateBy([&](Value current) -> meta::Result<Value> {
    const std::string_view now = arena.Copy(registry::FormatTime(base::Clock::Real().Now()));
    const Value condition = ConditionValue(arena, write.condition, FindCondition(current, write.condition.type));
    if (write.apply) {
      Value config = Value::Map(arena);
      config.Set(arena, "kind", std::string_view(write.store->options().kind.kind));
      config.Set(arena, "apiVersion", std::string_view(api_version));
      config.EnsureMap(arena, "metadata").Set(arena, "name", std::string_view(write.name));
      config.EnsureMap(arena, "status").EnsureList(arena, "conditions").Append(arena, condition);
      KS_TRY(const Value merged, fields.Apply(arena, current.Clone(arena), config, write.manager, true, now));
      std::string text;
      codec::EncodeJSON(merged, text);
      auto decoded = codec::DecodeJSON(arena, text, *type);
      if (!decoded.ok()) return meta::NewInternalError(decoded.error().message);
      return decoded->value;
    }
    Value next = current.Clone(arena);
    Value conditions = next.EnsureMap(arena, "status").EnsureList(arena, "conditions");
    for (std::size_t i = 0; i < conditions.size(); ++i) {
      if (conditions[i]["type"] == condition["type"]) conditions.Remove(i--);
    }
    conditions.Append(arena, condition);
    fields.Update(arena, current, next, write.manager, now);
    return next;
  });
  auto written = co_await write.store->Update(context, write.name, updated, nullptr, nullptr,
                                              {.endpoint = {registry::Endpoint::Part::kStatus}});
  if (!written.ok() && written.error().reason() != meta::StatusReason::kNotFound) {
    log::Error("Could not write a condition", "resource", write.store->options().resource.ToString(), "name",
               write.name, "err", written.error());
  }
}

}  // namespace

Awaitable<void> WriteAPIServiceCondition(std::shared_ptr<registry::Store> store, std::string name, std::string status,
                                         std::string reason, std::string message) {
  Condition condition{"Available", std::move(status), std::move(reason), std::move(message)};
  return Write({std::move(store), "v1", std::move(name), std::move(condition), "kube-apiserver", false});
}

struct StatusControllers::Impl : std::enable_shared_from_this<Impl> {
  struct FlowSchema {
    std::string level;
    Condition condition;
  };

  std::mutex mutex;
  asio::any_io_executor executor;
  async::Gate gate;
  std::shared_ptr<registry::Store> schemas;
  std::set<std::string> levels;
  std::map<std::string, FlowSchema> flow_schemas;
  WriteLimit limit;
  bool retrying = false;
  async::Deadlines::Entry retry;

  void Spawn(ConditionWrite write) {
    auto entry = gate.Enter();
    if (!entry) return;
    auto task = [](ConditionWrite inner, async::Gate::Entry held) -> Awaitable<void> {
      co_await Write(std::move(inner));
      (void)held;
    }(std::move(write), *std::move(entry));
    asio::co_spawn(executor, std::move(task), asio::detached);
  }

  // REQUIRES: mutex held.
  void CheckLater() {
    if (std::exchange(retrying, true)) return;
    auto check = [weak = weak_from_this()] {
      const auto impl = weak.lock();
      if (!impl) return;
      std::lock_guard lock(impl->mutex);
      impl->retrying = false;
      impl->CheckFlowSchemas();
    };
    retry = async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + kRetryAfter, std::move(check));
  }

  // REQUIRES: mutex held.
  void CheckFlowSchemas() {
    for (auto& [name, schema] : flow_schemas) {
      const Condition wanted = DanglingCondition(schema.level, levels.contains(schema.level));
      if (wanted == schema.condition) continue;
      if (!limit.Take(name, base::Clock::Real().Monotonic())) {
        CheckLater();
        continue;
      }
      schema.condition = wanted;
      Spawn({schemas, "v1", name, wanted, kFlowControlConsumer, true});
    }
  }
};

StatusControllers::StatusControllers(ResourceStorage& storage) : impl_(std::make_shared<Impl>()) {
  impl_->schemas = storage.Find(kFlowControl, "flowschemas");
  const auto levels = storage.Find(kFlowControl, "prioritylevelconfigurations");
  const auto watch = [this](const std::shared_ptr<registry::Store>& store, auto on_change, void (Impl::*check)()) {
    if (!store) return;
    informers_.push_back(
        std::make_unique<Informer>(store, [impl = impl_, on_change, check](std::vector<Informer::Change>& changes) {
          std::lock_guard lock(impl->mutex);
          for (const auto& change : changes) on_change(*impl, change, std::string(change.object->attributes().name));
          (*impl.*check)();
        }));
  };
  watch(
      levels,
      [](Impl& impl, const Informer::Change& change, const std::string& name) {
        if (change.deleted) {
          impl.levels.erase(name);
        } else {
          impl.levels.insert(name);
        }
      },
      &Impl::CheckFlowSchemas);
  watch(
      impl_->schemas,
      [](Impl& impl, const Informer::Change& change, const std::string& name) {
        if (change.deleted) {
          impl.flow_schemas.erase(name);
          impl.limit.Forget(name);
          return;
        }
        impl.flow_schemas[name] = {
            std::string(change.value.Get("spec", "priorityLevelConfiguration", "name").as_string()),
            ConditionOf(change.value, "Dangling")};
      },
      &Impl::CheckFlowSchemas);
}

StatusControllers::~StatusControllers() { Stop(); }

void StatusControllers::Start(async::IOPool& io) {
  impl_->executor = io.Next();
  for (auto& informer : informers_) informer->Start(io.Next());
}

void StatusControllers::Stop() {
  for (auto& informer : informers_) informer->Stop();
  impl_->gate.Close();
}

}  // namespace keelson::controlplane
