#include "controllers/namespace_deleter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/url.h"
#include "controllers/namespace_conditions.h"
#include "object/json_text.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kFinalizer = "kubernetes";
constexpr std::int64_t kFinalizerEstimateSeconds = 15;
constexpr std::string_view kBackground =
    R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"})";

bool NotSupported(const meta::Status& status) {
  return status.reason() == meta::StatusReason::kMethodNotAllowed || status.reason() == meta::StatusReason::kNotFound;
}

// schema.GroupVersionResource as Go prints it.
std::string Text(const meta::GroupVersionResource& resource) {
  return resource.group + "/" + resource.version + ", Resource=" + resource.resource;
}

bool IsPods(const DiscoveredResource& resource) {
  return resource.resource.group.empty() && resource.resource.resource == "pods";
}

bool MarkTerminating(base::Arena& arena, Value name_space) {
  if (!name_space["metadata"]["deletionTimestamp"].is_string()) return false;
  Value status = name_space.EnsureMap(arena, "status");
  if (status["phase"].as_string() == "Terminating") return false;
  status.Set(arena, "phase", "Terminating");
  return true;
}

// Without our finalizer; the others sorted, as upstream's set has them.
bool RemoveFinalizer(base::Arena& arena, Value name_space) {
  std::set<std::string_view> others;
  for (const Value finalizer : name_space.Get("spec", "finalizers").items()) {
    if (finalizer.as_string() != kFinalizer) others.insert(finalizer.as_string());
  }
  Value finalizers = Value::List(arena);
  for (const std::string_view other : others) finalizers.Append(arena, other);
  name_space.EnsureMap(arena, "spec").Set(arena, "finalizers", finalizers);
  name_space.Erase("status");
  return true;
}

// Go's NewAggregate.
std::string Aggregate(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (std::ranges::find(distinct, error) == distinct.end()) distinct.push_back(error);
  }
  if (distinct.size() <= 1) return distinct.empty() ? "" : distinct[0];
  return "[" + base::Join(distinct, ", ") + "]";
}

}  // namespace

struct NamespaceDeleter::Totals {
  NamespaceConditions conditions;
  std::vector<std::string> errors;
  std::int64_t estimate = 0;
  std::map<std::string, std::int64_t> remaining, finalizers;
};

Awaitable<meta::Result<Value>> NamespaceDeleter::Get(base::Arena& arena, std::string name) const {
  auto got = co_await client_->Do({.method = "GET", .target = "/api/v1/namespaces/" + name});
  if (!got.ok()) co_return got.error();
  const auto parsed = object::ParseJSON(arena, *got);
  if (!parsed) co_return meta::NewInternalError("namespace " + name + " cannot be read");
  co_return *parsed;
}

Awaitable<meta::Result<Value>> NamespaceDeleter::Write(base::Arena& arena, Value name_space, std::string subresource,
                                                       Change change) const {
  const std::string name(name_space.Get("metadata", "name").as_string());
  for (;;) {
    const Value next = name_space.Clone(arena);
    if (!change(arena, next)) co_return name_space;
    auto written = co_await client_->Do(
        {.method = "PUT", .target = "/api/v1/namespaces/" + name + "/" + subresource, .body = object::ToJSON(next)});
    if (written.ok()) {
      const auto parsed = object::ParseJSON(arena, *written);
      if (!parsed) co_return meta::NewInternalError("namespace " + name + " cannot be read");
      co_return *parsed;
    }
    if (written.error().reason() != meta::StatusReason::kConflict) co_return written.error();
    auto latest = co_await Get(arena, name);
    if (!latest.ok()) co_return latest.error();
    if (latest->Get("metadata", "uid") != name_space.Get("metadata", "uid"))
      co_return meta::NewInternalError("namespace uid has changed across retries");
    name_space = *latest;
  }
}

Awaitable<NamespaceDeleter::Outcome> NamespaceDeleter::Delete(std::string name) const {
  base::Arena arena;
  const auto failed = [](const meta::Status& status) {
    const bool gone = status.reason() == meta::StatusReason::kNotFound;
    return Outcome{.error = gone ? std::string() : std::string(status.message())};
  };
  auto got = co_await Get(arena, name);
  if (!got.ok()) co_return failed(got.error());
  if (!got->Get("metadata", "deletionTimestamp").is_string()) co_return Outcome{};
  auto marked = co_await Write(arena, *got, "status", MarkTerminating);
  if (!marked.ok()) co_return failed(marked.error());
  if (!marked->Get("metadata", "deletionTimestamp").is_string()) co_return Outcome{};
  if (marked->Get("spec", "finalizers").empty()) co_return Outcome{};
  const Outcome content = co_await DeleteAllContent(arena, *marked);
  if (!content.error.empty() || content.estimate > 0) co_return content;
  auto finalized = co_await Write(arena, *marked, "finalize", RemoveFinalizer);
  co_return finalized.ok() ? Outcome{} : failed(finalized.error());
}

Awaitable<NamespaceDeleter::Outcome> NamespaceDeleter::DeleteAllContent(base::Arena& arena, Value name_space) const {
  Totals totals;
  auto discovered = co_await Discover(client_);
  if (!discovered.ok()) {
    totals.errors.emplace_back(discovered.error().message());
    totals.conditions.DiscoveryFailed(0, discovered.error().message());
  } else if (const std::string error = discovered->Error(); !error.empty()) {
    totals.errors.push_back(error);
    totals.conditions.DiscoveryFailed(discovered->failed_groups.size(), error);
  }
  std::vector<DiscoveredResource> resources;
  if (discovered.ok()) resources = std::move(discovered->resources);
  std::erase_if(resources, [](const DiscoveredResource& resource) {
    return !resource.preferred || !resource.namespaced || !resource.Has("delete");
  });
  // Pods go before everything else, since they may use the rest until they end.
  const auto pods = std::ranges::find_if(resources, IsPods);
  const std::size_t first = pods == resources.end() ? 0 : 1;
  if (pods != resources.end()) std::rotate(resources.begin(), pods, pods + 1);
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (i == first && !totals.remaining.empty()) {
      co_await UpdateConditions(arena, name_space, totals);
      co_return Outcome{.error = Aggregate(totals.errors), .estimate = totals.estimate};
    }
    co_await DeleteResource(resources[i], name_space, totals);
  }
  totals.conditions.Remaining(totals.remaining, totals.finalizers);
  co_await UpdateConditions(arena, name_space, totals);
  co_return Outcome{.error = Aggregate(totals.errors), .estimate = totals.estimate};
}

Awaitable<bool> NamespaceDeleter::IsEmptyCustomResource(const DiscoveredResource& resource, std::string name) const {
  const std::string& group = resource.resource.group;
  if (group.empty() || !options_.definitions) co_return false;
  const auto definition = co_await options_.definitions->Get("", resource.resource.resource + "." + group, "0");
  if (!definition.ok()) co_return false;
  const auto store = options_.metadata_store(group, resource.resource.resource, true);
  storage::ListOptions one;
  one.predicate.limit = 1;
  const auto list = co_await store->List(std::move(name), std::move(one));
  co_return list.ok() && list->items.empty();
}

Awaitable<void> NamespaceDeleter::DeleteResource(const DiscoveredResource& resource, Value name_space,
                                                 Totals& totals) const {
  const Value metadata = name_space["metadata"];
  const std::string name(metadata["name"].as_string());
  if (co_await IsEmptyCustomResource(resource, name)) co_return;
  const auto deleted_at = registry::ParseTime(metadata["deletionTimestamp"].as_string());
  const std::int64_t since =
      deleted_at ? std::chrono::duration_cast<std::chrono::seconds>(deleted_at->time_since_epoch()).count() : 0;
  const Content content = co_await DeleteContent(resource, name, since);
  if (!content.error.empty()) {
    totals.conditions.ContentFailed(content.error);
    totals.errors.push_back(
        IsPods(resource) ? "failed to delete pods for namespace: " + name + ", err: " + content.error : content.error);
  }
  totals.estimate = std::max(totals.estimate, content.estimate);
  if (content.remaining == 0) co_return;
  totals.remaining[resource.resource.resource + "." + resource.resource.group] = content.remaining;
  for (const auto& [finalizer, count] : content.finalizers) totals.finalizers[finalizer] += count;
}

Awaitable<NamespaceDeleter::Content> NamespaceDeleter::DeleteContent(const DiscoveredResource& resource,
                                                                     std::string name, std::int64_t deleted_at) const {
  Content content;
  if (IsPods(resource) && pods_) {
    const std::int64_t grace = co_await EstimateGrace(name);
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
    if (now - deleted_at < grace) content.estimate = grace;
  }
  const std::string path = APIPath(resource.api_version(), name, resource.resource.resource);
  bool supported = resource.Has("deletecollection");
  if (supported) {
    Client::Request request{.method = "DELETE", .target = path, .body = std::string(kBackground)};
    request.accept = kPartialMetadataList;
    const auto deleted = co_await client_->Do(std::move(request));
    supported = deleted.ok() || !NotSupported(deleted.error());
    if (!deleted.ok() && supported) {
      content.error = deleted.error().message();
      co_return content;
    }
  }
  if (!supported) {
    content.error = co_await DeleteEachItem(resource, name);
    if (!content.error.empty()) co_return content;
  }
  if (!resource.Has("list")) co_return content;
  auto listed = co_await client_->Do({.method = "GET", .target = path, .accept = kPartialMetadataList});
  if (!listed.ok()) {
    if (!NotSupported(listed.error())) content.error = listed.error().message();
    co_return content;
  }
  base::Arena arena;
  const auto list = object::ParseJSON(arena, *listed);
  const auto items = list ? (*list)["items"].items() : std::span<Value>();
  content.remaining = static_cast<std::int64_t>(items.size());
  if (items.empty()) {
    content.estimate = 0;
    co_return content;
  }
  for (const Value item : items) {
    for (const Value finalizer : item.Get("metadata", "finalizers").items())
      ++content.finalizers[std::string(finalizer.as_string())];
  }
  if (content.estimate != 0) co_return content;
  if (!content.finalizers.empty()) {
    content.estimate = kFinalizerEstimateSeconds;
    co_return content;
  }
  content.error = "unexpected items still remain in namespace: " + name + " for gvr: " + Text(resource.resource);
  co_return content;
}

Awaitable<std::string> NamespaceDeleter::DeleteEachItem(const DiscoveredResource& resource, std::string name) const {
  if (!resource.Has("list")) co_return "";
  const std::string path = APIPath(resource.api_version(), name, resource.resource.resource);
  auto listed = co_await client_->Do({.method = "GET", .target = path, .accept = kPartialMetadataList});
  if (!listed.ok()) co_return NotSupported(listed.error()) ? std::string() : std::string(listed.error().message());
  base::Arena arena;
  const auto list = object::ParseJSON(arena, *listed);
  if (!list) co_return "";
  for (const Value item : (*list)["items"].items()) {
    Client::Request request{.method = "DELETE",
                            .target = path + "/" + base::PathEscape(item.Get("metadata", "name").as_string()),
                            .body = std::string(kBackground)};
    const auto deleted = co_await client_->Do(std::move(request));
    if (!deleted.ok() && !NotSupported(deleted.error())) co_return std::string(deleted.error().message());
  }
  co_return "";
}

// The longest grace period of pods that have not ended.
Awaitable<std::int64_t> NamespaceDeleter::EstimateGrace(std::string name) const {
  auto list = co_await pods_->List(std::move(name), {});
  std::int64_t longest = 0;
  if (!list.ok()) co_return longest;
  for (const auto& item : list->items) {
    base::Arena arena;
    auto pod = pods_->Decode(arena, item);
    if (!pod.ok()) continue;
    const std::string_view phase = pod->Get("status", "phase").as_string();
    if (phase == "Succeeded" || phase == "Failed") continue;
    longest = std::max(longest, pod->Get("spec", "terminationGracePeriodSeconds").as_int());
  }
  co_return longest;
}

// A failure is logged only: the next attempt writes them again.
Awaitable<void> NamespaceDeleter::UpdateConditions(base::Arena& arena, Value name_space, const Totals& totals) const {
  const Value next = name_space.Clone(arena);
  if (!totals.conditions.Update(arena, next, registry::FormatTime(clock_.Now()))) co_return;
  const std::string name(name_space.Get("metadata", "name").as_string());
  const auto written = co_await client_->Do(
      {.method = "PUT", .target = "/api/v1/namespaces/" + name + "/status", .body = object::ToJSON(next)});
  if (!written.ok())
    log::Error("Couldn't update status condition for namespace", "namespace", name, "err", written.error());
}

}  // namespace keelson::controllers
