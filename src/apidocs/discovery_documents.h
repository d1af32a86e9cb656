// The discovery documents as values, made from the tables: pure functions, to be encoded and served by others.
// Documents refer to the tables and to the arena.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::apidocs {

// A group as it is served: its versions in order of preference. The core group's name is "".
struct DiscoveryGroup {
  std::string_view group;
  std::vector<const schema::Package*> versions;
};
// Whether a resource ("" as subresource) or one of its subresources is installed in a version.
using IsServed = std::function<bool(const schema::Resource& resource, std::string_view subresource)>;

// The groups of the tables in the order of /apis: by priority, with the core group first; versions by priority.
// `enabled` says whether a group version is served at all.
std::vector<DiscoveryGroup> DiscoveryGroups(const std::function<bool(const schema::Package&)>& enabled);
// groupPriorityMinimum and versionPriority of a built-in group version's APIService; 0 if it has no APIService.
struct APIPriority {
  std::int32_t group = 0;
  std::int32_t version = 0;
};
APIPriority PriorityOf(std::string_view group, std::string_view version);
// Version priority: true if `a` sorts before `b`. "v2" before "v1" before "v1beta2"; other names come last.
bool ComesBeforeAsVersion(std::string_view a, std::string_view b);

// base64 of the first eight bytes of SHA-256("<group>/<version>/<Kind>") of the version that is stored.
std::string StorageVersionHash(std::string_view group, std::string_view version, std::string_view kind);

Value APIVersionsDocument(base::Arena& arena, std::span<const DiscoveryGroup> groups,
                          std::string_view server_address);                              // /api
Value APIGroupDocument(base::Arena& arena, const DiscoveryGroup& group);                 // /apis/<g>
Value APIGroupListDocument(base::Arena& arena, std::span<const DiscoveryGroup> groups);  // /apis
Value APIResourceListDocument(base::Arena& arena, const schema::Package& package,
                              const IsServed& served = {});  // /apis/<g>/<v>

// apidiscovery.k8s.io/v2 APIGroupDiscoveryList: of the core group for /api, of the others for /apis.
Value AggregatedDiscoveryDocument(base::Arena& arena, std::span<const DiscoveryGroup> groups,
                                  const IsServed& served = {});
// The same of any text: OpenAPI's documents.
std::string ETagOf(std::string_view text);

}  // namespace keelson::apidocs
