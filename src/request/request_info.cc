#include "request/request_info.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "base/split_view.h"
#include "base/strings.h"
#include "meta/selector.h"

namespace keelson::request {
namespace {

constexpr std::size_t kPathPartsUsual = 16;  // of a path; more are allocated

using PathParts = std::pmr::vector<std::string_view>;

PathParts SplitPath(std::string_view path, std::pmr::memory_resource& memory) {
  PathParts parts(&memory);
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) return parts;
  parts.reserve(kPathPartsUsual);
  for (const std::string_view part : base::SplitView(path, '/')) parts.push_back(part);
  return parts;
}

std::string VerbOf(std::string_view method) {
  if (method == "POST") return "create";
  if (method == "GET" || method == "HEAD") return "get";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return "";
}

// A word of the path's grammar: a namespace follows. Independent of the served kinds.
constexpr std::string_view kNamespacesSegment = "namespaces";

bool IsPathSegment(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of("/%") == std::string_view::npos;
}

// GET without a name is a list or a watch; a selector that pins metadata.name names the object for authorization and
// metrics.
void ResolveCollectionRead(const base::Query& query, RequestInfo& info) {
  bool watch = false;
  bool decodable = true;
  for (const std::string_view key : {"timeoutSeconds", "limit"}) {
    if (query.Has(key) && !base::ParseInt64(query.Get(key))) decodable = false;
  }
  if (query.Has("watch")) watch = ParseQueryBool(query.Get("watch"));
  if (decodable && query.Has("fieldSelector") && meta::LabelSelector::Parse(query.Get("labelSelector")).ok()) {
    if (auto selector = meta::FieldSelector::Parse(query.Get("fieldSelector")); selector.ok()) {
      if (const auto name = selector->RequiresExactMatch("metadata.name"); name && IsPathSegment(*name))
        info.name = *name;
    }
  }
  info.verb = watch ? "watch" : "list";
}

}  // namespace

bool ParseQueryBool(std::string_view value) { return value != "0" && !base::EqualsIgnoreCase(value, "false"); }

bool RequestInfo::IsLongRunning() const {
  if (verb == "watch" || verb == "proxy") return true;
  if (is_resource_request) {
    static constexpr std::array<std::string_view, 5> kStreams = {"attach", "exec", "proxy", "log", "portforward"};
    return std::ranges::find(kStreams, subresource) != kStreams.end();
  }
  return path.starts_with("/debug/pprof/") || path.starts_with("/console/api/");
}

Outcome<RequestInfo, std::string> NewRequestInfo(std::string_view method, std::string_view path,
                                                 const base::Query& query) {
  RequestInfo info;
  info.path = path;
  info.verb = base::ToLower(method);

  alignas(std::string_view) std::array<std::byte, kPathPartsUsual * sizeof(std::string_view)> buffer;
  std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size());
  const PathParts all = SplitPath(path, memory);
  std::span<const std::string_view> parts = all;  // what is not read yet
  if (parts.size() < 3 || (parts[0] != "api" && parts[0] != "apis")) return info;
  info.api_prefix = parts[0];
  parts = parts.subspan(1);
  if (info.api_prefix == "apis") {
    if (parts.size() < 3) return info;
    info.api_group = parts[0];
    parts = parts.subspan(1);
  }
  info.is_resource_request = true;
  info.api_version = parts[0];
  parts = parts.subspan(1);

  if (parts[0] == "proxy" || parts[0] == "watch") {
    if (parts.size() < 2) return std::string("unable to determine kind and namespace from url, " + std::string(path));
    info.verb = parts[0];
    parts = parts.subspan(1);
    info.prefixed = true;
  } else {
    info.verb = VerbOf(method);
  }

  if (parts[0] == kNamespacesSegment && parts.size() > 1) {
    info.name_space = parts[1];
    // namespaces/x/status and namespaces/x/finalize are about the namespace itself.
    info.namespaced = parts.size() > 2 && parts[2] != "status" && parts[2] != "finalize";
    if (info.namespaced) parts = parts.subspan(2);
  }

  info.part_count = parts.size();
  if (parts.size() > 3) info.rest = path.substr(static_cast<std::size_t>(parts[3].data() - path.data()));
  while (info.rest.ends_with('/')) info.rest.pop_back();
  info.resource = parts[0];
  if (parts.size() > 1) info.name = parts[1];
  info.named = !info.name.empty();
  if (parts.size() > 2 && info.verb != "proxy") info.subresource = parts[2];

  if (info.name.empty() && info.verb == "get") ResolveCollectionRead(query, info);
  if (info.name.empty() && info.verb == "delete") info.verb = "deletecollection";
  if (!info.prefixed && (info.verb == "list" || info.verb == "watch" || info.verb == "deletecollection")) {
    info.field_selector = query.Get("fieldSelector");
    info.label_selector = query.Get("labelSelector");
  }
  return info;
}

}  // namespace keelson::request
