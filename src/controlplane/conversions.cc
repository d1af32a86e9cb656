#include "controlplane/conversions.h"

#include <algorithm>
#include <array>

#include "registry/catalog/conversion.h"

namespace keelson::controlplane {
namespace {

// Upstream's API service priorities: of the group, then of its versions in the order they are preferred.
struct GroupRow {
  std::string_view group;
  std::array<std::string_view, 4> versions;
};

constexpr GroupRow kGroups[] = {
    {"", {"v1"}},
    {"apiregistration.k8s.io", {"v1"}},
    {"apps", {"v1"}},
    {"events.k8s.io", {"v1"}},
    {"authentication.k8s.io", {"v1", "v1beta1", "v1alpha1"}},
    {"authorization.k8s.io", {"v1"}},
    {"autoscaling", {"v2", "v1"}},
    {"batch", {"v1"}},
    {"certificates.k8s.io", {"v1", "v1beta1", "v1alpha1"}},
    {"networking.k8s.io", {"v1", "v1beta1"}},
    {"policy", {"v1"}},
    {"rbac.authorization.k8s.io", {"v1"}},
    {"storage.k8s.io", {"v1", "v1beta1", "v1alpha1"}},
    {"admissionregistration.k8s.io", {"v1", "v1beta1", "v1alpha1"}},
    {"apiextensions.k8s.io", {"v1"}},
    {"scheduling.k8s.io", {"v1", "v1alpha2"}},
    {"coordination.k8s.io", {"v1", "v1beta1", "v1alpha2"}},
    {"node.k8s.io", {"v1"}},
    {"discovery.k8s.io", {"v1"}},
    {"resource.k8s.io", {"v1", "v1beta2", "v1beta1", "v1alpha3"}},
    {"flowcontrol.apiserver.k8s.io", {"v1", "v1beta3", "v1beta2", "v1beta1"}},
    {"internal.apiserver.k8s.io", {"v1alpha1"}},
    {"storagemigration.k8s.io", {"v1beta1"}},
};

}  // namespace

const schema::Resource* HubResource(const schema::Resource& resource) {
  if (const registry::Conversion* conversion =
          registry::FindConversion(resource.group, resource.version, resource.kind)) {
    return schema::FindResource(conversion->hub_group, conversion->hub_version, resource.plural);
  }
  if (resource.version == "v1" || resource.group == "autoscaling") return &resource;
  // Further versions have the shape of v1, or of the one that is preferred where there is no v1 (leasecandidates).
  if (const schema::Resource* hub = schema::FindResource(resource.group, "v1", resource.plural)) return hub;
  for (const schema::Package* package : VersionsByPriority(resource.group)) {
    if (const schema::Resource* hub = schema::FindResource(resource.group, package->version, resource.plural))
      return hub;
  }
  return &resource;
}

std::vector<std::string_view> GroupsByPriority() {
  std::vector<std::string_view> groups;
  for (const GroupRow& row : kGroups) groups.push_back(row.group);
  return groups;
}

std::vector<const schema::Package*> VersionsByPriority(std::string_view group) {
  std::vector<const schema::Package*> packages;
  const auto row = std::ranges::find(kGroups, group, &GroupRow::group);
  if (row == std::end(kGroups)) return packages;
  for (const std::string_view version : row->versions) {
    if (version.empty()) continue;
    if (const schema::Package* package = schema::FindPackage(group, version)) packages.push_back(package);
  }
  return packages;
}

}  // namespace keelson::controlplane
