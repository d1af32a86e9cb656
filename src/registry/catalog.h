// All resource definitions at one moment. A change makes a new catalog that shares the unchanged definitions; the
// holder publishes it through an atomic reference. Immutable; thread safe.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry/resource_definition.h"

namespace keelson::registry {

class Catalog {
 public:
  // The resources of the tables (api/*.kapi).
  static const std::shared_ptr<const Catalog>& BuiltIn();

  // With `definition` instead of the one of the same group and plural.
  std::shared_ptr<const Catalog> With(ResourceDefinitionPtr definition) const;
  std::shared_ptr<const Catalog> Without(const meta::GroupResource& resource) const;

  // By any group the resource is served in; null when there is none.
  ResourceDefinitionPtr Find(std::string_view group, std::string_view plural) const;
  // A version of a resource's kind; null when there is none. It lives as long as this.
  const ServedVersion* FindKind(const meta::GroupVersionKind& kind) const;
  // The tables of the built-in group versions: groups most important first, versions preferred first.
  std::span<const schema::Package* const> packages() const { return packages_; }
  std::size_t size() const { return by_resource_.size(); }

 private:
  using Key = std::pair<std::string, std::string>;  // group, plural
  std::map<Key, ResourceDefinitionPtr> by_resource_;
  std::vector<const schema::Package*> packages_;
};

// Group versions of the tables: groups most important first ("" is core), versions preferred first.
std::span<const std::string_view> GroupsByPriority();
std::span<const std::string_view> VersionsByPriority(std::string_view group);
// The versions in which objects of the kind may be in the store, best first.
std::vector<meta::GroupVersion> StoredVersions(const ResourceDefinition& definition);
// Served without --runtime-config: beta and alpha versions are not.
bool OnByDefault(const meta::GroupVersion& version);

}  // namespace keelson::registry
