#include "registry/catalog.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "registry/apiextensions/strategies.h"
#include "registry/apiregistration/bootstrap.h"

namespace keelson::registry {
namespace {

// Upstream's API service priorities: of the group, then of its versions in the order they are preferred.
struct GroupRow {
  std::string_view group;
  std::array<std::string_view, 4> versions;
  std::size_t count = 1;
};

constexpr GroupRow kGroups[] = {
    {"", {"v1"}},
    {"apiregistration.k8s.io", {"v1"}},
    {"apps", {"v1"}},
    {"events.k8s.io", {"v1"}},
    {"authentication.k8s.io", {"v1", "v1beta1", "v1alpha1"}, 3},
    {"authorization.k8s.io", {"v1"}},
    {"autoscaling", {"v2", "v1"}, 2},
    {"batch", {"v1"}},
    {"certificates.k8s.io", {"v1", "v1beta1", "v1alpha1"}, 3},
    {"networking.k8s.io", {"v1", "v1beta1"}, 2},
    {"policy", {"v1"}},
    {"rbac.authorization.k8s.io", {"v1"}},
    {"storage.k8s.io", {"v1", "v1beta1", "v1alpha1"}, 3},
    {"admissionregistration.k8s.io", {"v1", "v1beta1", "v1alpha1"}, 3},
    {"apiextensions.k8s.io", {"v1"}},
    {"scheduling.k8s.io", {"v1", "v1alpha2"}, 2},
    {"coordination.k8s.io", {"v1", "v1beta1", "v1alpha2"}, 3},
    {"node.k8s.io", {"v1"}},
    {"discovery.k8s.io", {"v1"}},
    {"resource.k8s.io", {"v1", "v1beta2", "v1beta1", "v1alpha3"}, 4},
    {"flowcontrol.apiserver.k8s.io", {"v1", "v1beta3", "v1beta2", "v1beta1"}, 4},
    {"internal.apiserver.k8s.io", {"v1alpha1"}},
    {"storagemigration.k8s.io", {"v1beta1"}},
};

// The table of the version that strategies and storage see (itself where there is one version).
const schema::Resource& HubOf(const schema::Resource& resource) {
  if (const Conversion* conversion = FindConversion(resource.group, resource.version, resource.kind)) {
    if (const auto* hub = schema::FindResource(conversion->hub_group, conversion->hub_version, resource.plural))
      return *hub;
  }
  if (resource.version == "v1" || resource.group == "autoscaling") return resource;
  // Further versions have the shape of v1, or of the one that is preferred where there is no v1 (leasecandidates).
  if (const auto* hub = schema::FindResource(resource.group, "v1", resource.plural)) return *hub;
  for (const std::string_view version : VersionsByPriority(resource.group)) {
    if (const auto* hub = schema::FindResource(resource.group, version, resource.plural)) return *hub;
  }
  return resource;
}

struct Kind {
  std::string_view group;
  std::string_view kind;
};
struct Deprecation {
  Kind of;
  std::string_view warning;
};
constexpr Deprecation kDeprecations[] = {
    {{"", "Endpoints"}, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
    {{"", "ComponentStatus"}, "v1 ComponentStatus is deprecated in v1.19+"},
};

constexpr std::string_view kOrphanWarning =
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning";

FieldLabels LabelsOf(const schema::Resource& resource) {
  using Refusal = FieldLabels::Refusal;
  const auto is = [&](std::string_view group, std::string_view kind) {
    return resource.group == group && resource.kind == kind;
  };
  if (is("", "Pod")) return {.aliases = {{"spec.host", "spec.nodeName"}}, .aliases_group = "*"};
  if (is("", "Event")) {  // events.k8s.io selects by its own names; the stored event has core's
    return {.aliases = {{"regarding.", "involvedObject."},
                        {"reportingController", "reportingComponent"},
                        {"reason", "reason"},
                        {"type", "type"}},
            .aliases_group = "events.k8s.io",
            .only_aliases = true};
  }
  if (is("batch", "Job")) return {.refusal = Refusal::kNamesKind};
  if (is("resource.k8s.io", "ResourceSlice")) return {.refusal = Refusal::kNamesGroupVersionKind};
  return {};
}

KindTraits TraitsOf(const schema::Resource& resource) {
  const auto is = [&](std::string_view group, std::string_view kind) {
    return resource.group == group && resource.kind == kind;
  };
  KindTraits traits;
  traits.go_package = resource.group.empty() ? "core" : std::string(resource.group.substr(0, resource.group.find('.')));
  if (traits.go_package == "internal") traits.go_package = "apiserverinternal";
  traits.unsafe_delete = resource.group != "rbac.authorization.k8s.io" && !is("", "Namespace");
  if (is("batch", "Job")) traits.orphan_warning = kOrphanWarning;
  traits.json_needs_defaults = is("apps", "StatefulSet");
  if (is("apps", "DaemonSet")) traits.hidden_annotation = "deprecated.daemonset.template.generation";
  traits.expires = is("", "Event");
  traits.spec_finalizers = is("", "Namespace");
  return traits;
}

void AddVersion(ResourceDefinition& definition, const schema::Resource& table) {
  ServedVersion served;
  served.group_version = {std::string(table.group), std::string(table.version)};
  served.table = &table;
  served.type = table.type;
  served.conversion = FindConversion(table.group, table.version, table.kind);
  for (const Deprecation& row : kDeprecations) {
    if (row.of.group == table.group && row.of.kind == table.kind) served.deprecation_warning = row.warning;
  }
  for (const APIServicePriority& row : APIServicePriorities()) {
    if (row.group != table.group || row.version != table.version) continue;
    served.group_priority = row.group_priority_minimum;
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
    const bool is_definition = hub.group == "apiextensions.k8s.io" && hub.kind == "CustomResourceDefinition";
    definition->strategy = is_definition ? DefinitionStrategy(*row) : std::make_shared<const RESTStrategy>(*row);
  }
  definition->field_labels = LabelsOf(hub);
  definition->traits = TraitsOf(hub);
  return definition;
}

}  // namespace

bool OnByDefault(const meta::GroupVersion& version) {
  return version.version == "v1" || (version.group == "autoscaling" && version.version == "v2");
}

std::span<const std::string_view> GroupsByPriority() {
  static const auto groups = [] {
    std::array<std::string_view, std::size(kGroups)> names;
    std::ranges::transform(kGroups, names.begin(), &GroupRow::group);
    return names;
  }();
  return groups;
}

std::span<const std::string_view> VersionsByPriority(std::string_view group) {
  const auto row = std::ranges::find(kGroups, group, &GroupRow::group);
  if (row == std::end(kGroups)) return {};
  return std::span(row->versions).first(row->count);
}

const std::shared_ptr<const Catalog>& Catalog::BuiltIn() {
  static const std::shared_ptr<const Catalog> catalog = [] {
    std::map<const schema::Resource*, std::shared_ptr<ResourceDefinition>> by_hub;
    auto made = std::make_shared<Catalog>();
    for (const GroupRow& group : kGroups) {
      for (const std::string_view version : VersionsByPriority(group.group)) {
        const schema::Package* package = schema::FindPackage(group.group, version);
        if (package == nullptr) continue;
        for (const schema::Resource& table : package->resources) {
          const schema::Resource& hub = HubOf(table);
          auto& definition = by_hub[&hub];
          if (!definition) definition = NewDefinition(hub);
          if (&table == &hub) definition->hub = definition->versions.size();
          AddVersion(*definition, table);
          made->by_resource_.insert_or_assign({std::string(table.group), std::string(table.plural)}, definition);
        }
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

}  // namespace keelson::registry
