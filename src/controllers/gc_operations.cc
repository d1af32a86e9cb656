#include "controllers/gc_operations.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/arena.h"
#include "base/strings.h"
#include "object/json_text.h"
#include "object/value.h"
#include "storage/packed.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr int kConflictRetries = 4;  // client-go's retry.DefaultBackoff
constexpr std::string_view kComponent = "garbage-collector-controller";

meta::Status NoMapping(const ObjectIdentity& identity) {
  return meta::NewInternalError("unable to get REST mapping for " + identity.api_version + "/" + identity.kind + ".");
}

std::string OwnersPatch(std::string_view member, std::string_view text, const std::vector<OwnerReference>& owners) {
  std::string patch = "{\"metadata\":{\"" + std::string(member) + "\":";
  object::AppendJSONString(patch, text);
  patch += ",\"ownerReferences\":[";
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (i > 0) patch += ',';
    AppendOwnerReference(patch, owners[i]);
  }
  return patch + "]}}";
}

}  // namespace

Awaitable<GCOperations::Got> GCOperations::Get(ObjectIdentity identity) const {
  Got got;
  const MappedResource* const mapped = table_.Find(identity.api_version, identity.kind);
  if (mapped == nullptr) {
    got.unreachable = Unreachable::kNoMapping;
    co_return got;
  }
  got.namespaced = mapped->namespaced;
  if (mapped->namespaced && identity.name_space.empty()) {
    got.unreachable = Unreachable::kWrongNamespace;
    co_return got;
  }
  const std::string name_space = mapped->namespaced ? identity.name_space : "";
  std::string target = ObjectPath(*mapped, identity.api_version, name_space, identity.name);
  if (const auto store = find_store_(*mapped)) {
    auto found = co_await store->Get(name_space, identity.name, "");
    if (!found.ok()) {
      got.object = found.error();
      co_return got;
    }
    if (auto read = ReadObjectMetadata(storage::Unpacked((*found)->stored()).view())) {
      read->resource_version = std::to_string((*found)->resource_version());
      got.object = *std::move(read);
      co_return got;
    }
  }
  auto answer = co_await client_->Do({.method = "GET", .target = std::move(target), .accept = kPartialMetadata});
  if (!answer.ok()) {
    got.object = answer.error();
    co_return got;
  }
  auto read = ReadObjectMetadata(*answer);
  if (read) {
    got.object = *std::move(read);
  } else {
    got.object = meta::NewInternalError("metadata of " + identity.ToString() + " cannot be read");
  }
  co_return got;
}

Awaitable<meta::Result<void>> GCOperations::SendDelete(ObjectIdentity identity, std::string resource_version,
                                                       std::string propagation_policy) const {
  const MappedResource* const mapped = table_.Find(identity.api_version, identity.kind);
  if (mapped == nullptr) co_return NoMapping(identity);
  std::string body = R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":)";
  object::AppendJSONString(body, identity.uid);
  if (!resource_version.empty()) {
    body += ",\"resourceVersion\":";
    object::AppendJSONString(body, resource_version);
  }
  body += "},\"propagationPolicy\":\"" + propagation_policy + "\"}";
  const auto deleted =
      co_await client_->Do({.method = "DELETE",
                            .target = ObjectPath(*mapped, identity.api_version, identity.name_space, identity.name),
                            .body = std::move(body),
                            .accept = kPartialMetadata});
  if (!deleted.ok()) co_return deleted.error();
  co_return meta::Result<void>();
}

Awaitable<meta::Result<void>> GCOperations::Delete(ObjectIdentity identity, ObjectMetadata latest,
                                                   std::string propagation_policy) const {
  auto deleted = co_await SendDelete(identity, latest.resource_version, propagation_policy);
  if (deleted.ok() || deleted.error().reason() != meta::StatusReason::kConflict) co_return deleted;
  // It changed meanwhile. When its owners did not, the version does not matter: changes must not starve collection.
  const Got live = co_await Get(identity);
  if (live.unreachable != Unreachable::kNone) co_return deleted;
  if (!live.object.ok()) {
    if (live.object.error().reason() == meta::StatusReason::kNotFound) co_return live.object.error();
    co_return deleted;
  }
  if (live.object->uid != identity.uid || live.object->resource_version == latest.resource_version ||
      live.object->owners != latest.owners) {
    co_return deleted;
  }
  co_return co_await SendDelete(identity, "", propagation_policy);
}

Awaitable<meta::Result<void>> GCOperations::Patch(ObjectIdentity identity, std::string type, std::string patch) const {
  const MappedResource* const mapped = table_.Find(identity.api_version, identity.kind);
  if (mapped == nullptr) co_return NoMapping(identity);
  const auto patched =
      co_await client_->Do({.method = "PATCH",
                            .target = ObjectPath(*mapped, identity.api_version, identity.name_space, identity.name),
                            .body = std::move(patch),
                            .content_type = type,
                            .accept = kPartialMetadata});
  if (!patched.ok()) co_return patched.error();
  co_return meta::Result<void>();
}

Awaitable<meta::Result<void>> GCOperations::MergeOwners(
    ObjectIdentity identity, std::function<void(std::vector<OwnerReference>& owners)> change) const {
  Got got = co_await Get(identity);
  if (got.unreachable != Unreachable::kNone) co_return NoMapping(identity);
  if (!got.object.ok()) co_return got.object.error();
  change(got.object->owners);
  std::string patch = OwnersPatch("resourceVersion", got.object->resource_version, got.object->owners);
  if (got.object->owners.empty()) {
    patch = "{\"metadata\":{\"resourceVersion\":\"" + got.object->resource_version + "\",\"ownerReferences\":null}}";
  }
  co_return co_await Patch(identity, std::string(kMergePatch), std::move(patch));
}

Awaitable<meta::Result<void>> GCOperations::RemoveOwners(ObjectIdentity identity,
                                                         std::vector<std::string> owner_uids) const {
  std::string patch = "{\"metadata\":{\"uid\":";
  object::AppendJSONString(patch, identity.uid);
  patch += ",\"ownerReferences\":[";
  for (std::size_t i = 0; i < owner_uids.size(); ++i) {
    patch += i == 0 ? R"({"$patch":"delete","uid":)" : R"(,{"$patch":"delete","uid":)";
    object::AppendJSONString(patch, owner_uids[i]);
    patch += '}';
  }
  patch += "]}}";
  auto patched = co_await Patch(identity, std::string(kStrategicMergePatch), std::move(patch));
  if (patched.ok() || patched.error().reason() != meta::StatusReason::kUnsupportedMediaType) co_return patched;
  co_return co_await MergeOwners(identity, [&owner_uids](std::vector<OwnerReference>& owners) {
    std::erase_if(owners, [&](const OwnerReference& owner) {
      return std::ranges::find(owner_uids, owner.uid) != owner_uids.end();
    });
  });
}

Awaitable<meta::Result<void>> GCOperations::UnblockOwners(ObjectIdentity identity,
                                                          std::vector<OwnerReference> owners) const {
  std::erase_if(owners, [](const OwnerReference& owner) { return !owner.block_owner_deletion; });
  for (OwnerReference& owner : owners) owner.block_owner_deletion = false;
  auto patched = co_await Patch(identity, std::string(kStrategicMergePatch), OwnersPatch("uid", identity.uid, owners));
  if (patched.ok() || patched.error().reason() != meta::StatusReason::kUnsupportedMediaType) co_return patched;
  co_return co_await MergeOwners(identity, [](std::vector<OwnerReference>& live) {
    for (OwnerReference& owner : live) owner.block_owner_deletion = false;
  });
}

Awaitable<std::string> GCOperations::RemoveFinalizer(ObjectIdentity identity, std::string finalizer) const {
  for (int attempt = 0; attempt < kConflictRetries; ++attempt) {
    Got got = co_await Get(identity);
    if (got.unreachable == Unreachable::kNone && !got.object.ok() &&
        got.object.error().reason() == meta::StatusReason::kNotFound) {
      co_return "";
    }
    if (got.unreachable != Unreachable::kNone || !got.object.ok()) {
      co_return "cannot finalize owner " + identity.ToString() + ", because cannot get it: " +
          (got.object.ok() ? std::string("no mapping") : std::string(got.object.error().message())) +
          ". The garbage collector will retry later";
    }
    if (!got.object->HasFinalizer(finalizer)) co_return "";
    std::string patch = "{\"metadata\":{\"resourceVersion\":\"" + got.object->resource_version + "\",\"finalizers\":";
    std::string rest;
    for (const std::string& other : got.object->finalizers) {
      if (other == finalizer) continue;
      rest += rest.empty() ? "[" : ",";
      object::AppendJSONString(rest, other);
    }
    patch += rest.empty() ? "null}}" : rest + "]}}";
    const auto patched = co_await Patch(identity, std::string(kMergePatch), std::move(patch));
    if (patched.ok()) co_return "";
    if (patched.error().reason() != meta::StatusReason::kConflict) co_return std::string(patched.error().message());
  }
  co_return "updateMaxRetries(" + std::to_string(kConflictRetries) +
      ") has reached. The garbage collector will retry later for owner " + identity.ToString();
}

Awaitable<void> GCOperations::ReportInvalidNamespace(ObjectIdentity identity, OwnerReference owner,
                                                     const base::Clock& clock) const {
  base::Arena arena;
  const ObjectIdentity invalid{owner.api_version, owner.kind, identity.name_space, owner.name, owner.uid};
  const std::string name_space = identity.name_space.empty() ? "default" : identity.name_space;
  const std::string now = registry::FormatTime(clock.Now());
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(clock.Now().time_since_epoch()).count();
  char suffix[17];
  std::snprintf(suffix, sizeof(suffix), "%llx", static_cast<unsigned long long>(nanos));
  Value event = Value::Map(arena);
  event.Set(arena, "kind", "Event");
  event.Set(arena, "apiVersion", "v1");
  Value metadata = event.EnsureMap(arena, "metadata");
  metadata.Set(arena, "name", Value::String(arena, identity.name + "." + suffix));
  metadata.Set(arena, "namespace", Value::String(arena, name_space));
  Value involved = event.EnsureMap(arena, "involvedObject");
  involved.Set(arena, "kind", std::string_view(identity.kind));
  if (!identity.name_space.empty()) involved.Set(arena, "namespace", std::string_view(identity.name_space));
  involved.Set(arena, "name", std::string_view(identity.name));
  involved.Set(arena, "uid", std::string_view(identity.uid));
  involved.Set(arena, "apiVersion", std::string_view(identity.api_version));
  event.Set(arena, "reason", "OwnerRefInvalidNamespace");
  event.Set(arena, "message",
            Value::String(arena, "ownerRef " + invalid.ToString() + " does not exist in namespace " +
                                     base::GoQuote(identity.name_space)));
  event.EnsureMap(arena, "source").Set(arena, "component", kComponent);
  event.Set(arena, "firstTimestamp", std::string_view(now));
  event.Set(arena, "lastTimestamp", std::string_view(now));
  event.Set(arena, "count", Value(1));
  event.Set(arena, "type", "Warning");
  event.Set(arena, "reportingComponent", kComponent);
  const auto written = co_await client_->Do(
      {.method = "POST", .target = APIPath("v1", name_space, "events"), .body = object::ToJSON(event)});
  if (!written.ok()) log::Error("Could not write an event", "object", identity.ToString(), "err", written.error());
}

}  // namespace keelson::controllers
