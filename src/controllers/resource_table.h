// Maps kinds to resources (a RESTMapper): built-in and aggregated kinds from discovery, custom resources from their
// definitions. Thread safety: none, the controllers' executor.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controllers/discovery.h"

namespace keelson::controllers {

struct MappedResource {
  std::string group, resource, kind;
  bool namespaced = false;
  bool custom = false;
  bool watchable = false;             // delete, list and watch
  std::vector<std::string> versions;  // served, best first

  std::string api_version() const;  // of the best version
  bool operator==(const MappedResource&) const = default;
};

class ResourceTable {
 public:
  // Replaces everything but custom resources.
  void SetDiscovered(const Discovered& discovered);
  // A CustomResourceDefinition as it is stored; its schemas are skipped. Null when it is not served now.
  const MappedResource* SetDefinition(std::string_view name, std::string_view stored);
  void RemoveDefinition(std::string_view name);

  // Null when the kind is not served in that version.
  const MappedResource* Find(std::string_view api_version, std::string_view kind) const;
  std::vector<const MappedResource*> All() const;

 private:
  using Key = std::pair<std::string, std::string>;  // group, kind
  std::map<Key, MappedResource> discovered_;
  std::map<std::string, MappedResource, std::less<>> custom_;  // by the definition's name, <plural>.<group>
  std::map<Key, std::string> custom_kinds_;                    // their names
};

// /api/v1/namespaces/a/pods/web: the path of one object, or of the collection when `name` is empty.
std::string ObjectPath(const MappedResource& resource, std::string_view api_version, std::string_view name_space,
                       std::string_view name);

}  // namespace keelson::controllers
