#include "registry/catalog.h"

#include <vector>

#include "base/strings.h"
#include "registry/apiextensions/strategies.h"
#include "schema/facts.h"
#include "schema/versions_of_kind.h"

namespace keelson::registry {
namespace {

bool IsStable(std::string_view version) {
  return version.find("alpha") == std::string_view::npos && version.find("beta") == std::string_view::npos;
}

// The table of the version that strategies and storage see (itself where there is one version).
const schema::Resource& HubOf(const schema::Resource& resource) {
  std::vector<std::pair<std::string_view, std::string_view>> candidates;  // group and version
  if (const Conversion* conversion = FindConversion(resource.group, resource.version, resource.kind))
    candidates.emplace_back(conversion->hub_group, conversion->hub_version);
  if (IsStable(resource.version)) candidates.emplace_back(resource.group, resource.version);
  // Further versions have the shape of v1, or of the one that is preferred where there is no v1 (leasecandidates).
  candidates.emplace_back(resource.group, "v1");
  for (const std::string_view version : VersionsByPriority(resource.group))
    candidates.emplace_back(resource.group, version);
  for (const auto& [group, version] : candidates) {
    if (const auto* hub = schema::FindResource(group, version, resource.plural)) return *hub;
  }
  return resource;
}

constexpr std::string_view kOrphanWarning =
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning";

// Aliases of the hub version hold in all groups. Those of another version hold in its group, which has no other labels.
void AddLabelAliases(const schema::Resource& table, std::string_view aliases, bool hub, FieldLabels& labels) {
  if (aliases.empty()) return;
  for (const std::string_view alias : base::Split(aliases, ',')) {
    const std::size_t colon = alias.find(':');
    labels.aliases.push_back({alias.substr(0, colon), alias.substr(colon + 1)});
  }
  labels.aliases_group = hub ? "*" : table.group;
  labels.only_aliases = !hub;
}

FieldLabels::Refusal RefusalOf(std::string_view fact) {
  if (fact == "kind") return FieldLabels::Refusal::kNamesKind;
  if (fact == "group-version-kind") return FieldLabels::Refusal::kNamesGroupVersionKind;
  return FieldLabels::Refusal::kPlain;
}

KindTraits TraitsOf(const schema::Resource& resource) {
  const schema::ResourceFacts& facts = schema::FactsOf(resource);
  // k8s.io.api.core.v1: core.
  std::string_view package = resource.type->proto_package;
  package = package.substr(0, package.rfind('.'));
  return {.go_package = std::string(package.substr(package.rfind('.') + 1)),
          .unsafe_delete = !facts.no_unsafe_delete,
          .orphan_warning = facts.orphan_warning ? kOrphanWarning : "",
          .json_needs_defaults = facts.json_needs_defaults,
          .hidden_annotation = facts.hidden_annotation,
          .expires = facts.expires,
          .spec_finalizers = facts.spec_finalizers};
}

// Versions that are read from the store though no table has them.
struct StoredOnly {
  std::string_view group, version;
};
constexpr StoredOnly kStoredOnly[] = {{"apiextensions.k8s.io", "v1beta1"}, {"apiregistration.k8s.io", "v1beta1"}};

void AddVersion(ResourceDefinition& definition, const schema::Resource& table, const schema::Resource& hub) {
  ServedVersion served;
  served.group_version = {std::string(table.group), std::string(table.version)};
  served.table = &table;
  served.type = table.type;
  served.conversion = FindConversion(table.group, table.version, table.kind);
  const schema::ResourceFacts& facts = schema::FactsOf(table);
  served.deprecation_warning = facts.deprecated;
  AddLabelAliases(table, facts.label_aliases, &table == &hub, definition.field_labels);
  for (const schema::VersionPriority& row : schema::VersionPriorities()) {
    if (row.group != table.group || row.version != table.version) continue;
    served.group_priority = row.group_priority;
    served.version_priority = row.version_priority;
  }
  served.on_by_default = OnByDefault(served.group_version);
  definition.versions.push_back(std::move(served));
}

std::shared_ptr<ResourceDefinition> NewDefinition(const schema::Resource& hub) {
  auto definition = std::make_shared<ResourceDefinition>();
  definition->resource = {std::string(hub.group), std::string(hub.plural)};
  definition->kind = {std::string(hub.group), std::string(hub.kind)};
  definition->list_kind = definition->kind.kind + "List";
  definition->singular = hub.singular;
  definition->namespaced = hub.namespaced;
  definition->layout = storage::LayoutOf(definition->resource);
  if (const Strategy* row = FindStrategy(hub.group, hub.kind)) {
    definition->strategy = StatefulStrategy(*row);
    if (!definition->strategy) definition->strategy = std::make_shared<const RESTStrategy>(*row);
  }
  definition->field_labels.refusal = RefusalOf(schema::FactsOf(hub).label_refusal);
  definition->traits = TraitsOf(hub);
  return definition;
}

}  // namespace

bool OnByDefault(const meta::GroupVersion& version) { return IsStable(version.version); }

std::span<const std::string_view> GroupsByPriority() {
  static const std::vector<std::string_view> groups = [] {
    std::vector<std::string_view> names;
    for (const schema::VersionPriority& row : schema::VersionPriorities()) {
      if (names.empty() || names.back() != row.group) names.push_back(row.group);
    }
    return names;
  }();
  return groups;
}

std::span<const std::string_view> VersionsByPriority(std::string_view group) {
  static const auto versions = [] {
    std::map<std::string_view, std::vector<std::string_view>> by_group;
    for (const schema::VersionPriority& row : schema::VersionPriorities()) by_group[row.group].push_back(row.version);
    return by_group;
  }();
  const auto found = versions.find(group);
  if (found == versions.end()) return {};
  return found->second;
}

std::vector<meta::GroupVersion> StoredVersions(const ResourceDefinition& definition) {
  const std::string& group = definition.kind.group;
  std::vector<std::string_view> versions = schema::VersionsOfKind(group, definition.kind.kind);
  for (const StoredOnly& row : kStoredOnly) {
    if (row.group == group) versions.push_back(row.version);
  }
  std::vector<meta::GroupVersion> found;
  for (const std::string_view version : versions) found.push_back({group, std::string(version)});
  return found;
}

const std::shared_ptr<const Catalog>& Catalog::BuiltIn() {
  static const std::shared_ptr<const Catalog> catalog = [] {
    std::map<const schema::Resource*, std::shared_ptr<ResourceDefinition>> by_hub;
    auto made = std::make_shared<Catalog>();
    for (const schema::VersionPriority& row : schema::VersionPriorities())
      made->packages_.push_back(schema::FindPackage(row.group, row.version));
    for (const schema::Package* package : made->packages_) {
      for (const schema::Resource& table : package->resources) {
        const schema::Resource& hub = HubOf(table);
        auto& definition = by_hub[&hub];
        if (!definition) definition = NewDefinition(hub);
        if (&table == &hub) definition->hub = definition->versions.size();
        AddVersion(*definition, table, hub);
        made->by_resource_.insert_or_assign({std::string(table.group), std::string(table.plural)}, definition);
      }
    }
    return made;
  }();
  return catalog;
}

std::shared_ptr<const Catalog> Catalog::With(ResourceDefinitionPtr definition) const {
  auto next = std::make_shared<Catalog>(*this);
  next->by_resource_.insert_or_assign(Key(definition->resource.group, definition->resource.resource), definition);
  return next;
}

std::shared_ptr<const Catalog> Catalog::Without(const meta::GroupResource& resource) const {
  auto next = std::make_shared<Catalog>(*this);
  next->by_resource_.erase(Key(resource.group, resource.resource));
  return next;
}

ResourceDefinitionPtr Catalog::Find(std::string_view group, std::string_view plural) const {
  const auto found = by_resource_.find(Key(std::string(group), std::string(plural)));
  return found == by_resource_.end() ? nullptr : found->second;
}

const ServedVersion* Catalog::FindKind(const meta::GroupVersionKind& kind) const {
  for (auto at = by_resource_.lower_bound(Key(kind.group, "")); at != by_resource_.end(); ++at) {
    if (at->first.first != kind.group) break;
    if (at->second->kind.kind != kind.kind) continue;
    if (const ServedVersion* version = at->second->FindVersion(kind.group, kind.version)) return version;
  }
  return nullptr;
}

}  // namespace keelson::registry
