#include "storage/storage_factory.h"

namespace keelson::storage {
namespace {

// Prefixes that are not the plural name, for history's sake.
struct Prefix {
  std::string_view group;
  std::string_view resource;
  std::string_view prefix;
};
constexpr Prefix kPrefixes[] = {
    {"", "replicationcontrollers", "controllers"},
    {"", "nodes", "minions"},
    {"", "services", "services/specs"},
    {"", "endpoints", "services/endpoints"},
    {"networking.k8s.io", "ingresses", "ingress"},
    {"apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices"},
    {"apiextensions.k8s.io", "customresourcedefinitions", "apiextensions.k8s.io/customresourcedefinitions"},
};

// The version written, where it is not v1. A version that the release before did not serve is not chosen, so that going
// back works.
struct StoredVersion {
  std::string_view group;
  std::string_view resource;  // "" for the whole group
  std::string_view version;
};
constexpr StoredVersion kVersions[] = {
    {"autoscaling", "", "v2"},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicies", "v1beta1"},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "v1beta1"},
    {"coordination.k8s.io", "leasecandidates", "v1beta1"},
    {"certificates.k8s.io", "clustertrustbundles", "v1beta1"},
    {"certificates.k8s.io", "podcertificaterequests", "v1beta1"},
    {"storagemigration.k8s.io", "", "v1beta1"},
    {"resource.k8s.io", "devicetaintrules", "v1alpha3"},
    {"resource.k8s.io", "resourcepoolstatusrequests", "v1alpha3"},
    {"scheduling.k8s.io", "workloads", "v1alpha2"},
    {"scheduling.k8s.io", "podgroups", "v1alpha2"},
    {"internal.apiserver.k8s.io", "", "v1alpha1"},
    {"apiextensions.k8s.io", "", "v1beta1"},
};

// Written as JSON: their servers never learned protobuf storage.
constexpr std::string_view kJSONGroups[] = {"apiregistration.k8s.io", "apiextensions.k8s.io"};

// Kinds of which upstream stores what its defaults would still change: a claim's phase, a job's labels (from its
// template's, which get some of their own after defaulting), and the label of namespaces from before there was one.
struct Resource {
  std::string_view group;
  std::string_view resource;
};
constexpr Resource kDefaultsOnRead[] = {{"", "namespaces"}, {"", "persistentvolumeclaims"}, {"batch", "jobs"}};

struct Trigger {
  std::string_view group;
  std::string_view resource;
  std::string_view field;
};
constexpr Trigger kTriggers[] = {
    {"", "pods", "spec.nodeName"},
    {"resource.k8s.io", "resourceslices", "spec.nodeName"},
};

}  // namespace

ResourceLayout LayoutOf(const meta::GroupResource& resource) {
  ResourceLayout layout{.resource_prefix = "/" + resource.resource, .storage_version = {resource.group, "v1"}};
  for (const Prefix& entry : kPrefixes) {
    if (entry.group == resource.group && entry.resource == resource.resource)
      layout.resource_prefix = "/" + std::string(entry.prefix);
  }
  for (const StoredVersion& entry : kVersions) {
    if (entry.group == resource.group && (entry.resource.empty() || entry.resource == resource.resource)) {
      layout.storage_version.version = entry.version;
    }
  }
  for (const std::string_view group : kJSONGroups) layout.json = layout.json || group == resource.group;
  for (const Resource& entry : kDefaultsOnRead) {
    layout.defaults_on_read =
        layout.defaults_on_read || (entry.group == resource.group && entry.resource == resource.resource);
  }
  for (const Trigger& entry : kTriggers) {
    if (entry.group == resource.group && entry.resource == resource.resource) layout.trigger_field = entry.field;
  }
  if (resource.resource == "events" && (resource.group.empty() || resource.group == "events.k8s.io")) {
    layout.storage_version.group.clear();
    layout.watch_cache = false;
  }
  return layout;
}

ResourceLayout CustomResourceLayout(const meta::GroupResource& resource, std::string_view storage_version) {
  return {.resource_prefix = "/" + resource.group + "/" + resource.resource,
          .storage_version = {resource.group, std::string(storage_version)},
          .json = true};
}

}  // namespace keelson::storage
