#include "controlplane/storage_versions.h"

#include <algorithm>
#include <map>

#include "async/deadlines.h"
#include "base/clock.h"
#include "controlplane/bootstrap.h"
#include "registry/catalog.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

constexpr std::chrono::milliseconds kLeasePoll{100};
constexpr std::chrono::seconds kRetry{1};
constexpr int kAttempts = 3;  // of one object, besides those that end with a conflict
constexpr int kConflicts = 60;
constexpr std::string_view kGroup = "internal.apiserver.k8s.io", kCondition = "AllEncodingVersionsEqual";

// Reads always pass. Identity leases must exist before a version is published, and kube-system before them.
bool Exempt(const request::Context& context) {
  const request::RequestInfo& info = context.info;
  if (info.api_group == kGroup && info.resource == "storageversions") return true;
  if (info.api_group == "coordination.k8s.io" && info.resource == "leases" && info.name_space == "kube-system")
    return true;
  const bool own = context.user && context.user->name == "system:apiserver" &&
                   std::ranges::find(context.user->groups, request::kSystemMasters) != context.user->groups.end();
  return own && info.api_group.empty() && info.resource == "namespaces" && info.verb == "create";
}

void SetCondition(base::Arena& arena, Value status, bool agreed, bool other_version, Value generation,
                  std::string_view now) {
  Value conditions = status.EnsureList(arena, "conditions");
  Value condition;
  for (const Value& one : conditions.items()) {
    if (one["type"].as_string() == kCondition) condition = one;
  }
  const std::string_view truth = agreed ? "True" : "False";
  const bool fresh = condition.is_null();
  if (fresh) {
    condition = Value::Map(arena);
    condition.Set(arena, "type", kCondition);
  }
  if (fresh || other_version || condition["status"].as_string() != truth)
    condition.Set(arena, "lastTransitionTime", Value::String(arena, now));
  condition.Set(arena, "status", truth);
  if (generation.is_null()) {
    condition.Erase("observedGeneration");
  } else {
    condition.Set(arena, "observedGeneration", generation);
  }
  condition.Set(arena, "reason", agreed ? "CommonEncodingVersionSet" : "CommonEncodingVersionUnset");
  condition.Set(arena, "message", agreed ? "Common encoding version set" : "Common encoding version unset");
  if (fresh) conditions.Append(arena, condition);
}

Value Texts(base::Arena& arena, const std::vector<std::string>& texts) {
  Value list = Value::List(arena);
  for (const std::string& text : texts) list.Append(arena, Value::String(arena, text));
  return list;
}

}  // namespace

std::vector<StorageVersionInfo> StorageVersionInfos(const server::GenericAPIServer& server) {
  struct Served {
    registry::ResourceDefinitionPtr definition;
    std::vector<std::string> versions;  // best first
  };
  std::map<meta::GroupResource, Served> served;
  for (const server::APIGroupInfo* group : server.AllGroups()) {
    for (const auto& version : group->versions) {
      for (const endpoints::Route* route : version->Resources()) {
        if (!route->watchable) continue;  // reviews, bindings and componentstatuses are not stored
        Served& entry = served[route->scope->resource.group_resource()];
        entry.definition = route->scope->definition;
        entry.versions.push_back(meta::GroupVersion{group->group, version->version()}.ToString());
      }
    }
  }
  std::vector<StorageVersionInfo> infos;
  std::map<const registry::ResourceDefinition*, std::size_t> by_definition;
  for (const auto& [resource, entry] : served) {
    const auto& [definition, versions] = entry;
    const auto [known, first] = by_definition.try_emplace(definition.get(), infos.size());
    if (first) {
      infos.push_back({.resource = resource,
                       .encoding_version = definition->layout.storage_version.ToString(),
                       .served_versions = versions});
      for (const meta::GroupVersion& version : registry::StoredVersions(*definition))
        infos.back().decodable_versions.push_back(version.ToString());
    }
    StorageVersionInfo& info = infos[known->second];
    info.equivalents.push_back(resource);
    for (const std::string& version : versions) {
      if (std::ranges::find(info.decodable_versions, version) == info.decodable_versions.end())
        info.decodable_versions.push_back(version);
    }
  }
  return infos;
}

void SetServerStorageVersion(base::Arena& arena, Value object, std::string_view server_id,
                             const StorageVersionInfo& info, std::string_view now) {
  Value status = object.EnsureMap(arena, "status");
  Value entry = Value::Map(arena, 4);
  entry.Set(arena, "apiServerID", Value::String(arena, server_id));
  entry.Set(arena, "encodingVersion", Value::String(arena, info.encoding_version));
  entry.Set(arena, "decodableVersions", Texts(arena, info.decodable_versions));
  entry.Set(arena, "servedVersions", Texts(arena, info.served_versions));
  Value servers = Value::List(arena);
  bool found = false, agreed = true;
  for (const Value& server : status["storageVersions"].items()) {
    const bool ours = server["apiServerID"].as_string() == server_id;
    servers.Append(arena, ours ? entry : server);
    found = found || ours;
    agreed = agreed && (ours || server["encodingVersion"].as_string() == info.encoding_version);
  }
  if (!found) servers.Append(arena, entry);
  status.Set(arena, "storageVersions", servers);
  const std::string before(status["commonEncodingVersion"].as_string());
  if (agreed) {
    status.Set(arena, "commonEncodingVersion", Value::String(arena, info.encoding_version));
  } else {
    status.Erase("commonEncodingVersion");
  }
  SetCondition(arena, status, agreed, agreed && !before.empty() && before != info.encoding_version,
               object.Get("metadata", "generation"), now);
}

struct StorageVersionManager::Impl {
  std::shared_ptr<endpoints::filters::StorageVersionBarrier> barrier =
      std::make_shared<endpoints::filters::StorageVersionBarrier>(Exempt);
  std::vector<StorageVersionInfo> infos;
  std::shared_ptr<registry::Store> versions, leases;
  std::string identity;
  async::Gate gate;
  async::Event stopping, completed;

  // Returns early when the server stops.
  static Awaitable<void> Sleep(std::shared_ptr<Impl> impl, std::chrono::milliseconds duration) {
    auto wake = std::make_shared<async::Event>();
    impl->stopping.OnSet([wake] { wake->Set(); });
    const auto entry =
        async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + duration, [wake] { wake->Set(); });
    co_await wake->Wait();
  }
  static Awaitable<void> Hook(std::shared_ptr<Impl> impl);
  static Awaitable<void> UpdateAll(std::shared_ptr<Impl> impl);
  static Awaitable<std::string> UpdateOne(std::shared_ptr<Impl> impl, const StorageVersionInfo& info);
  static Awaitable<meta::Result<void>> WriteOnce(std::shared_ptr<Impl> impl, const StorageVersionInfo& info);
};

// The hook built-in-resources-storage-version-updater.
Awaitable<void> StorageVersionManager::Impl::Hook(std::shared_ptr<Impl> impl) {
  const auto entry = impl->gate.Enter();
  if (!entry) co_return;
  // The garbage collector of storage versions would take the entries of a server without a lease for left over.
  while (!impl->stopping.is_set()) {
    if (impl->leases && (co_await impl->leases->Get("kube-system", impl->identity, "")).ok()) break;
    co_await Sleep(impl, kLeasePoll);
  }
  co_await UpdateAll(impl);
  co_await impl->completed.Wait();
}

Awaitable<void> StorageVersionManager::Impl::UpdateAll(std::shared_ptr<Impl> impl) {
  bool failed = false;
  for (const StorageVersionInfo& info : impl->infos) {
    if (impl->stopping.is_set()) co_return;
    const std::string error = co_await UpdateOne(impl, info);
    for (const meta::GroupResource& resource : info.equivalents) {
      if (error.empty()) {
        impl->barrier->Succeeded(resource);
      } else {
        impl->barrier->Failed(resource, error);
      }
    }
    failed = failed || !error.empty();
    if (!error.empty())
      log::Error("Failed to update a storage version", "resource", info.resource.ToString(), "err", error);
  }
  if (failed) co_return;
  impl->barrier->Complete();
  impl->completed.Set();
}

// The last error; "" when it is written.
Awaitable<std::string> StorageVersionManager::Impl::UpdateOne(std::shared_ptr<Impl> impl,
                                                              const StorageVersionInfo& info) {
  if (!impl->versions) co_return "the server could not find the requested resource";
  int failures = 0;
  std::string error;
  for (int conflicts = 0; failures < kAttempts && conflicts < kConflicts && !impl->stopping.is_set();) {
    const auto written = co_await WriteOnce(impl, info);
    if (written.ok()) co_return "";
    error = written.error().message();
    const auto reason = written.error().reason();
    const bool raced = reason == meta::StatusReason::kAlreadyExists || reason == meta::StatusReason::kConflict;
    ++(raced ? conflicts : failures);
    co_await Sleep(impl, kRetry);
  }
  co_return error;
}

Awaitable<meta::Result<void>> StorageVersionManager::Impl::WriteOnce(std::shared_ptr<Impl> impl,
                                                                     const StorageVersionInfo& info) {
  request::Context context;
  context.info.name = (info.resource.group.empty() ? "core" : info.resource.group) + "." + info.resource.resource;
  context.info.api_group = kGroup;
  context.info.api_version = "v1alpha1";
  context.user = LoopbackUser();
  base::Arena& arena = context.arena;
  auto existing = co_await impl->versions->Get("", context.info.name, "");
  if (!existing.ok()) {
    if (existing.error().reason() != meta::StatusReason::kNotFound) co_return existing.error();
    Value object = Value::Map(arena);
    object.Set(arena, "kind", "StorageVersion");
    object.Set(arena, "apiVersion", "internal.apiserver.k8s.io/v1alpha1");
    object.EnsureMap(arena, "metadata").Set(arena, "name", Value::String(arena, context.info.name));
    object.EnsureMap(arena, "spec");
    context.info.verb = "create";
    TrackFields(context, *impl->versions, object, "kube-apiserver");
    auto created = co_await impl->versions->Create(context, object, nullptr, false);
    if (!created.ok()) co_return created.error();
    existing = created->object;
  }
  KS_CO_TRY(const Value old, impl->versions->Decode(arena, *existing));
  const Value next = old.Clone(arena);
  SetServerStorageVersion(arena, next, impl->identity, info, registry::FormatTime(base::Clock::Real().Now()));
  context.info.verb = "update";
  TrackFields(context, *impl->versions, next, "kube-apiserver", old, "status");
  const auto update = registry::UpdateBy([next](Value) -> meta::Result<Value> { return next; });
  auto written = co_await impl->versions->Update(context, context.info.name, update, nullptr, nullptr,
                                                 {.endpoint = {registry::Endpoint::Part::kStatus}});
  if (!written.ok()) co_return written.error();
  co_return meta::Result<void>();
}

StorageVersionManager::StorageVersionManager(server::GenericAPIServer& server, ResourceStorage& storage,
                                             std::string identity)
    : impl_(std::make_shared<Impl>()) {
  impl_->infos = StorageVersionInfos(server);
  impl_->versions = storage.Find(kGroup, "storageversions");
  impl_->leases = storage.Find("coordination.k8s.io", "leases");
  impl_->identity = std::move(identity);
  for (const StorageVersionInfo& info : impl_->infos) {
    for (const meta::GroupResource& resource : info.equivalents) impl_->barrier->Add(resource);
  }
  server.AddPostStartHook("built-in-resources-storage-version-updater", [impl = impl_] { return Impl::Hook(impl); });
}

StorageVersionManager::~StorageVersionManager() { Stop(); }

std::shared_ptr<const endpoints::filters::StorageVersionBarrier> StorageVersionManager::barrier() const {
  return impl_->barrier;
}

Awaitable<void> StorageVersionManager::Update() { return Impl::UpdateAll(impl_); }

void StorageVersionManager::Stop() {
  impl_->stopping.Set();
  impl_->completed.Set();
  impl_->gate.Close();
}

}  // namespace keelson::controlplane
