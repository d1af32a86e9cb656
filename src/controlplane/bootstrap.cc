#include "controlplane/bootstrap.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "async/event.h"
#include "patch/field_manager.h"
#include "registry/apiregistration/bootstrap.h"
#include "registry/flowcontrol/bootstrap.h"
#include "registry/scheduling/bootstrap.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

constexpr std::array<std::string_view, 4> kSystemNamespaces = {"kube-system", "kube-public", "kube-node-lease",
                                                               "default"};

constexpr std::string_view kFlowControlProducer = "api-priority-and-fairness-config-producer-v1";

Awaitable<void> CreateSystemNamespaces(std::shared_ptr<registry::Store> namespaces) {
  base::Arena arena;
  std::vector<Value> objects;
  for (const std::string_view name : kSystemNamespaces) {
    Value object = Value::Map(arena);
    object.Set(arena, "kind", "Namespace");
    object.Set(arena, "apiVersion", "v1");
    object.EnsureMap(arena, "metadata").Set(arena, "name", name);
    objects.push_back(object);
  }
  co_await EnsureObjects(namespaces, std::move(objects), nullptr);
}

Awaitable<void> CreatePriorityClasses(std::shared_ptr<registry::Store> store) {
  base::Arena arena;
  co_await EnsureObjects(store, registry::BootstrapPriorityClasses(arena), nullptr);
}

Awaitable<void> CreateFlowControl(std::shared_ptr<registry::Store> levels, std::shared_ptr<registry::Store> schemas) {
  base::Arena arena;
  const auto build = [&](std::span<const registry::FlowControlObject> objects) {
    std::vector<Value> values;
    for (const auto& object : objects) values.push_back(object.build(arena, object.name));
    return values;
  };
  co_await EnsureObjects(levels, build(registry::BootstrapPriorityLevelConfigurations()), nullptr,
                         std::string(kFlowControlProducer));
  co_await EnsureObjects(schemas, build(registry::BootstrapFlowSchemas()), nullptr, std::string(kFlowControlProducer));
}

Awaitable<void> RegisterAPIServices(std::shared_ptr<registry::Store> store,
                                    std::vector<registry::APIServicePriority> served) {
  base::Arena arena;
  std::vector<Value> objects;
  for (const auto& priority : served) objects.push_back(registry::LocalAPIService(arena, priority, "onstart"));
  co_await EnsureObjects(store, std::move(objects), nullptr);
}

}  // namespace

request::User LoopbackUser() {
  return {.name = "system:apiserver",
          .groups = {std::string(request::kAuthenticated), std::string(request::kSystemMasters)}};
}

void TrackFields(request::Context& context, const registry::Store& store, Value object, std::string_view manager,
                 Value live, std::string_view subresource) {
  patch::FieldManager::Options options;
  const std::string_view api_version = object["apiVersion"].as_string();
  const auto slash = api_version.find('/');
  options.kind = {store.options().kind.group,
                  std::string(slash == std::string_view::npos ? api_version : api_version.substr(slash + 1)),
                  store.options().kind.kind};
  options.type = store.options().type;  // the server writes objects in the version that strategies see
  options.subresource = subresource;
  const auto& reset = subresource.empty() ? store.strategy().update.reset_fields : store.strategy().status.reset_fields;
  options.reset_fields.assign(reset.begin(), reset.end());
  const std::string now = registry::FormatTime(base::Clock::Real().Now());
  patch::FieldManager(std::move(options)).Update(context.arena, live, object, manager, context.arena.Copy(now));
}

Awaitable<meta::Result<void>> UpsertObject(std::shared_ptr<registry::Store> store, std::string name_space,
                                           std::string name, MakeObject make, std::string manager) {
  request::Context context;
  context.info.name_space = name_space;
  context.info.name = name;
  context.info.api_group = store->options().resource.group;
  context.info.api_version = "v1";
  context.user = LoopbackUser();
  const auto defaulted = [&](Value object, Value live) {
    object.EnsureMap(context.arena, "metadata");
    if (const auto defaults = store->strategy().defaults) defaults(context.arena, object);
    TrackFields(context, *store, object, manager, live);
    return object;
  };
  auto existing = co_await store->Get(name_space, name, "");
  if (!existing.ok() && existing.error().reason() != meta::StatusReason::kNotFound) co_return existing.error();
  if (!existing.ok()) {
    context.info.verb = "create";
    const auto made = make(context.arena, Value());
    if (!made) co_return meta::Result<void>();
    auto created = co_await store->Create(context, defaulted(*made, Value()), nullptr, false);
    if (created.ok()) co_return meta::Result<void>();
    if (created.error().reason() != meta::StatusReason::kAlreadyExists) co_return created.error();
  } else {
    auto decoded = store->Decode(context.arena, *existing);
    if (!decoded.ok()) co_return decoded.error();
    if (!make(context.arena, *decoded)) co_return meta::Result<void>();
  }
  context.info.verb = "update";
  const auto update = registry::UpdateBy([&](Value live) -> meta::Result<Value> {
    const auto made = make(context.arena, live);
    return made ? defaulted(*made, live) : live.Clone(context.arena);
  });
  auto written = co_await store->Update(context, name, update, nullptr, nullptr, {});
  if (!written.ok()) co_return written.error();
  co_return meta::Result<void>();
}

Awaitable<void> EnsureObject(std::shared_ptr<registry::Store> store, Value wanted, Reconcile reconcile,
                             std::string manager) {
  request::Context context;
  const Value metadata = wanted["metadata"];
  context.info.name_space = metadata["namespace"].as_string();
  context.info.name = metadata["name"].as_string();
  context.info.api_group = store->options().resource.group;
  context.user = LoopbackUser();
  auto existing = co_await store->Get(context.info.name_space, context.info.name, "");
  meta::Result<registry::WriteResult> written = meta::NewInternalError("");
  if (existing.ok()) {
    if (reconcile == nullptr) co_return;
    auto decoded = store->Decode(context.arena, *existing);
    if (!decoded.ok()) co_return;
    const registry::Reconciled change = reconcile(context.arena, *decoded, wanted);
    if (change.action == registry::Reconciled::Action::kNone) co_return;
    if (change.action == registry::Reconciled::Action::kUpdate) {
      context.info.verb = "update";
      const auto update =
          registry::UpdateBy([&](Value) -> meta::Result<Value> { return change.object.Clone(context.arena); });
      written = co_await store->Update(context, context.info.name, update, nullptr, nullptr, {});
    } else {
      registry::DeleteOptions same{.uid = std::string(decoded->Get("metadata", "uid").as_string())};
      auto deleted =
          co_await store->Delete(context, context.info.name_space, context.info.name, std::move(same), nullptr);
      if (deleted.ok()) written = co_await store->Create(context, change.object.Clone(context.arena), nullptr, false);
    }
  } else if (existing.error().reason() == meta::StatusReason::kNotFound) {
    context.info.verb = "create";
    Value object = wanted.Clone(context.arena);
    object.EnsureMap(context.arena, "metadata");
    if (const auto defaults = store->strategy().defaults) defaults(context.arena, object);
    TrackFields(context, *store, object, manager);
    written = co_await store->Create(context, object, nullptr, false);
  } else {
    written = existing.error();
  }
  if (!written.ok() && written.error().reason() != meta::StatusReason::kAlreadyExists) {
    log::Error("Could not create or update a bootstrap object", "resource", store->options().resource.ToString(),
               "name", context.info.name, "err", written.error());
  }
}

namespace {

// The objects that EnsureObjects() waits for; all run on its executor, one thread.
struct Ensuring {
  std::size_t left;
  async::Event done;
};

Awaitable<void> EnsureOne(Ensuring& ensuring, std::shared_ptr<registry::Store> store, Value object, Reconcile reconcile,
                          std::string manager) {
  co_await EnsureObject(std::move(store), object, reconcile, manager);
  if (--ensuring.left == 0) ensuring.done.Set();
}

}  // namespace

Awaitable<void> EnsureObjects(std::shared_ptr<registry::Store> store, std::vector<Value> wanted, Reconcile reconcile,
                              std::string manager) {
  if (wanted.empty()) co_return;
  auto executor = co_await asio::this_coro::executor;
  Ensuring ensuring{.left = wanted.size()};
  for (const Value object : wanted) {
    auto task = EnsureOne(ensuring, store, object, reconcile, manager);
    asio::co_spawn(executor, std::move(task), asio::detached);
  }
  co_await ensuring.done.Wait();
}

void InstallBootstrapHooks(server::GenericAPIServer& server, ResourceStorage& storage) {
  if (auto namespaces = storage.Find("", "namespaces")) {
    server.AddPostStartHook("start-system-namespaces-controller",
                            [namespaces] { return CreateSystemNamespaces(namespaces); });
  }
  if (auto classes = storage.Find("scheduling.k8s.io", "priorityclasses")) {
    server.AddPostStartHook("scheduling/bootstrap-system-priority-classes",
                            [classes] { return CreatePriorityClasses(classes); });
  }
  auto levels = storage.Find("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations");
  auto schemas = storage.Find("flowcontrol.apiserver.k8s.io", "flowschemas");
  if (levels && schemas) {
    server.AddPostStartHook("priority-and-fairness-config-producer",
                            [levels, schemas] { return CreateFlowControl(levels, schemas); });
  }
  if (auto services = storage.Find("apiregistration.k8s.io", "apiservices")) {
    std::vector<registry::APIServicePriority> served;
    for (const auto& priority : schema::VersionPriorities()) {
      for (const server::APIGroupInfo* group : server.AllGroups()) {
        if (group->group != priority.group || priority.group == "apiregistration.k8s.io") continue;
        for (const auto& version : group->versions) {
          if (version->version() == priority.version) served.push_back(priority);
        }
      }
    }
    server.AddPostStartHook("apiservice-registration-controller",
                            [services, served] { return RegisterAPIServices(services, served); });
  }
}

}  // namespace keelson::controlplane
