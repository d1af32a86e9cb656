// Validation of a pod's status.
#include <map>
#include <set>
#include <tuple>

#include "registry/core/hub.h"
#include "registry/core/pod.h"
#include "registry/core/pod_options.h"
#include "registry/core/pod_security.h"
#include "registry/core/pod_spec.h"
#include "registry/fields.h"
#include "registry/rules/address.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kHealth[] = {"Healthy", "Unhealthy", "Unknown"};
constexpr std::size_t kHealthMessageBytesMax = 1024;
constexpr std::size_t kImageRefBytesMax = 256;
constexpr std::string_view kNoRestart = "may not be transitioned to non-terminated state";
constexpr std::string_view kTwoOfFamily = "may specify no more than one IP for each IP family";

void CheckConditions(Value conditions, const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  for (const Value condition : conditions.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view type = Text(condition, "type");
    if (Int(condition, "observedGeneration") < 0) {
      errors.push_back(
          Invalid(at.Child("observedGeneration"), condition["observedGeneration"], "must be a non-negative integer"));
    }
    if (type != "PodScheduled" && type != "Ready" && type != "Initialized")
      CheckQualifiedName(type, at.Child("Type"), errors);
  }
}

// Items by their name; the first of a name counts.
using Index = std::map<std::string_view, Value>;
Index ByName(Value list) {
  Index index;
  for (const Value item : list.items()) index.emplace(Text(item, "name"), item);
  return index;
}
Value Find(const Index& index, std::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? Value() : found->second;
}

// The exit code against a container's restart rules.
const Value* MatchingRule(Value container, std::int64_t exit_code) {
  for (const Value& rule : container["restartPolicyRules"].items()) {
    bool listed = false;
    for (const Value code : rule["exitCodes"]["values"].items()) listed |= code.as_int() == exit_code;
    if (IsSet(rule, "exitCodes") && (Text(rule["exitCodes"], "operator") == "In" ? listed : !listed)) return &rule;
  }
  return nullptr;
}

bool MayRestart(Value container, Value spec, std::int64_t exit_code) {
  if (IsSet(container, "restartPolicy")) {
    if (const Value* rule = MatchingRule(container, exit_code); rule != nullptr) {
      const std::string_view action = Text(*rule, "action");
      return action == "Restart" || action == "RestartAllContainers";
    }
    const std::string_view policy = Text(container, "restartPolicy");
    return policy == "Always" || (policy == "OnFailure" && exit_code != 0);
  }
  const std::string_view policy = Text(spec, "restartPolicy");
  return policy == "Always" || (policy == "OnFailure" && exit_code != 0);
}

bool AnyRestartsAll(Value spec) {
  bool found = false;
  VisitContainers(spec, FieldPath("spec"), [&](Value container, const FieldPath&) {
    for (const Value rule : container["restartPolicyRules"].items())
      found |= Text(rule, "action") == "RestartAllContainers";
  });
  return found;
}

// `containers`: where to look up the container; null for ephemeral ones, which never restart.
void CheckTransitions(Value now, Value old, Value containers, Value spec, const FieldPath& path, FieldErrors& errors) {
  const Index now_by_name = ByName(now), containers_by_name = ByName(containers);
  std::int64_t index = 0;
  for (const Value before : old.items()) {
    const FieldPath at = path.Index(index++);
    if (!IsSet(before["state"], "terminated")) continue;
    const Value after = Find(now_by_name, Text(before, "name"));
    if (after.is_null() || IsSet(after["state"], "terminated")) continue;
    const Value container = Find(containers_by_name, Text(before, "name"));
    if (!container.is_null() && MayRestart(container, spec, Int(before["state"]["terminated"], "exitCode"))) continue;
    errors.push_back(Forbidden(at.Child("state"), kNoRestart));
  }
}

void CheckClaimStatuses(Value statuses, Value claims, const FieldPath& path, FieldErrors& errors) {
  const Index claims_by_name = ByName(claims);
  NameSet seen;
  std::int64_t index = 0;
  for (const Value status : statuses.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = Text(status, "name");
    if (!claims_by_name.contains(name)) {
      errors.push_back(Invalid(at.Child("name"), name, "must match the name of an entry in `spec.resourceClaims`"));
    }
    if (!seen.emplace(name).second) errors.push_back(Duplicate(at.Child("name"), Value(name)));
    if (IsSet(status, "resourceClaimName"))
      CheckDNSSubdomain(Text(status, "resourceClaimName"), at.Child("resourceClaimName"), errors);
  }
}

void CheckExtendedClaim(Value status, Value spec, const FieldPath& path, FieldErrors& errors) {
  if (status.is_null()) return;
  const FieldPath mappings = path.Child("requestMappings");
  if (status["requestMappings"].empty())
    errors.push_back(Required(mappings, "at least one request mapping is required"));
  const Index containers = ByName(spec["containers"]), init_containers = ByName(spec["initContainers"]);
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
  std::int64_t index = 0;
  for (const Value mapping : status["requestMappings"].items()) {
    const FieldPath at = mappings.Index(index++);
    const std::string_view name = Text(mapping, "containerName"), resource = Text(mapping, "resourceName"),
                           request = Text(mapping, "requestName");
    Value container = Find(containers, name);
    if (container.is_null()) container = Find(init_containers, name);
    if (container.is_null()) {
      errors.push_back(Invalid(at.Child("containerName"), name,
                               "must match the name of an entry in spec.initContainers.name or spec.containers.name"));
    } else if (!container["resources"]["requests"].Has(resource)) {
      errors.push_back(
          Invalid(at.Child("resourceName"), resource,
                  "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                  "spec.containers.resources.requests"));
    }
    CheckDNSLabel(request, path.Child("requestName"), errors);
    if (!seen.emplace(name, resource, request).second) {
      for (const std::string_view key : {"containerName", "resourceName", "requestName"}) {
        errors.push_back(Duplicate(at.Child(key), Value(Text(mapping, key))));
      }
    }
  }
  if (RequireText(status, "resourceClaimName", path, errors)) {
    CheckDNSSubdomain(Text(status, "resourceClaimName"), path.Child("resourceClaimName"), errors);
  }
}

void CheckIPs(Value now, Value old, const FieldPath& path, std::string_view type, validation::AddressRules rules,
              FieldErrors& errors) {
  std::vector<std::string_view> before;
  for (const Value ip : old.items()) before.push_back(Text(ip, "ip"));
  std::int64_t index = 0;
  int v4 = 0, v6 = 0;
  for (const Value ip : now.items()) {
    validation::ValidateIPForLegacyField(Text(ip, "ip"), path.Index(index++), before, rules, errors);
    v4 += validation::IsIPv4(Text(ip, "ip")) ? 1 : 0;
    v6 += validation::IsIPv6(Text(ip, "ip")) ? 1 : 0;
  }
  if (now.size() > 1 && (v4 == 0 || v6 == 0 || now.size() > 2)) {
    errors.push_back(InvalidHub(path, CoreHubTypes(), now, std::string("[]") + std::string(type), kTwoOfFamily));
  }
}

void CheckUsers(Value statuses, std::string_view os, const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  for (const Value status : statuses.items()) {
    const FieldPath at = path.Index(index++);
    const Value user = status["user"]["linux"];
    if (user.is_null()) continue;
    const FieldPath user_path = at.Child("user");
    const FieldPath linux_path = user_path.Child("linux");
    if (os == "windows") {
      errors.push_back(Forbidden(linux_path, "cannot be set for a windows pod"));
      continue;
    }
    const auto check = [&](Value id, const FieldPath& id_path) {
      for (const std::string& message : validation::IsValidUserID(id.as_int()))
        errors.push_back(Invalid(id_path, Value(id.as_int()), message));
    };
    check(user["uid"], linux_path.Child("uid"));
    check(user["gid"], linux_path.Child("gid"));
    const FieldPath groups = linux_path.Child("supplementalGroups");
    std::int64_t j = 0;
    for (const Value group : user["supplementalGroups"].items()) check(group, groups.Index(j++));
  }
}

void CheckAllocated(Value statuses, Value containers, const FieldPath& path, FieldErrors& errors) {
  const Index containers_by_name = ByName(containers);
  std::int64_t i = 0;
  for (const Value status : statuses.items()) {
    const FieldPath one = path.Index(i++);
    const FieldPath list = one.Child("allocatedResourcesStatus");
    const Value container = Find(containers_by_name, Text(status, "name"));
    std::int64_t j = 0;
    for (const Value allocated : status["allocatedResourcesStatus"].items()) {
      const FieldPath at = list.Index(j++);
      const std::string_view name = Text(allocated, "name");
      if (!container.is_null()) {
        const bool claim = name.starts_with("claim:");
        bool found = !claim && container["resources"]["requests"].Has(name);
        for (const Value have : container["resources"]["claims"].items()) {
          std::string full = "claim:" + std::string(Text(have, "name"));
          if (!Text(have, "request").empty()) full.append("/").append(Text(have, "request"));
          found |= full == name;
        }
        if (!found) {
          errors.push_back(Invalid(
              at.Child("name"), name,
              claim ? "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
                      "'claim:<claimName>' if request is empty"
                    : "must match one of the container's resource requests"));
        }
      }
      NameSet seen;
      const FieldPath resources = at.Child("resources");
      std::int64_t k = 0;
      for (const Value resource : allocated["resources"].items()) {
        const FieldPath item = resources.Index(k++);
        CheckOneOf(resource["health"], kHealth, item.Child("health"), errors);
        if (const Value message = resource["message"]; !message.is_null()) {
          if (message.as_string().empty())
            errors.push_back(Required(item.Child("message"), "must be non-empty if specified"));
          if (message.as_string().size() > kHealthMessageBytesMax)
            errors.push_back(validation::TooLong(item.Child("message"), kHealthMessageBytesMax));
        }
        if (!seen.emplace(Text(resource, "resourceID")).second)
          errors.push_back(Duplicate(item.Child("resourceID"), resource["resourceID"]));
      }
    }
  }
}

// The digest of an image volume (gate ImageVolumeWithDigest).
void CheckVolumeStatuses(Value containers, const FieldPath& path, FieldErrors& errors) {
  std::int64_t container_index = 0;
  for (const Value container : containers.items()) {
    const FieldPath container_path = path.Index(container_index++);
    const FieldPath mounts = container_path.Child("volumeMounts");
    std::int64_t mount_index = 0;
    for (const Value mount : container["volumeMounts"].items()) {
      const FieldPath mount_path = mounts.Index(mount_index++);
      const Value image = mount["volumeStatus"]["image"];
      if (image.is_null()) continue;
      const FieldPath volume_status = mount_path.Child("volumeStatus");
      const FieldPath image_status = volume_status.Child("imageVolumeStatus");
      const FieldPath at = image_status.Child("imageRef");
      const std::string_view reference = Text(image, "imageRef");
      if (reference.empty()) errors.push_back(Required(at, "imageRef must not be empty"));
      if (reference.size() > kImageRefBytesMax) errors.push_back(validation::TooLong(at, kImageRefBytesMax));
    }
  }
}

}  // namespace

void ValidatePodStatusUpdate(const Call& call, Value pod, Value old, FieldErrors& errors) {
  const PodOptions options = PodOptionsFor(call, true, old["spec"], old["metadata"]);
  const FieldPath metadata_path("metadata"), path("status");
  const Value status = pod["status"], before = old["status"], spec = pod["spec"];
  const FieldPath annotations = metadata_path.Child("annotations");
  validation::ValidateObjectMetaUpdate(pod["metadata"], old["metadata"], metadata_path, errors);
  ValidatePodAnnotationUpdates(pod, old, options, annotations, errors);
  CheckConditions(status["conditions"], path.Child("conditions"), errors);
  if (Text(spec, "nodeName") != Text(old["spec"], "nodeName"))
    errors.push_back(Forbidden(path.Child("nodeName"), "may not be changed directly"));
  const std::string_view nominated = Text(status, "nominatedNodeName");
  if (nominated != Text(before, "nominatedNodeName") && !nominated.empty()) {
    CheckDNSSubdomain(nominated, path.Child("nominatedNodeName"), errors);
    if (!Text(old["spec"], "nodeName").empty()) {
      errors.push_back(
          Forbidden(path.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node"));
    }
  }
  if (Int(status, "observedGeneration") < 0) {
    errors.push_back(
        Invalid(path.Child("observedGeneration"), status["observedGeneration"], "must be a non-negative integer"));
  }
  if (Text(status, "qosClass") != Text(before, "qosClass")) {
    errors.push_back(Invalid(path.Child("qosClass"), Text(status, "qosClass"), "field is immutable"));
  }
  if (!AnyRestartsAll(old["spec"])) {
    CheckTransitions(status["containerStatuses"], before["containerStatuses"], old["spec"]["containers"], old["spec"],
                     path.Child("containerStatuses"), errors);
    CheckTransitions(status["initContainerStatuses"], before["initContainerStatuses"], old["spec"]["initContainers"],
                     old["spec"], path.Child("initContainerStatuses"), errors);
  }
  CheckTransitions(status["ephemeralContainerStatuses"], before["ephemeralContainerStatuses"], {}, old["spec"],
                   path.Child("ephemeralContainerStatuses"), errors);
  CheckClaimStatuses(status["resourceClaimStatuses"], spec["resourceClaims"], path.Child("resourceClaimStatuses"),
                     errors);
  CheckExtendedClaim(status["extendedResourceClaimStatus"], spec, path.Child("extendedResourceClaimStatus"), errors);
  CheckIPs(status["podIPs"], before["podIPs"], path.Child("podIPs"), "PodIP", options.address_rules, errors);
  if (const Value ips = status["hostIPs"]; !ips.empty()) {
    const FieldPath list = path.Child("hostIPs");
    const FieldPath first = list.Index(0);
    if (Text(status, "hostIP") != Text(ips[std::size_t{0}], "ip")) {
      errors.push_back(Invalid(first.Child("ip"), Text(ips[std::size_t{0}], "ip"), "must be equal to `hostIP`"));
    }
    CheckIPs(ips, before["hostIPs"], list, "HostIP", options.address_rules, errors);
  }
  const std::string_view os = Text(spec["os"], "name");
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    CheckUsers(status[list], os, path.Child(list), errors);
  }
  CheckAllocated(status["containerStatuses"], spec["containers"], path.Child("containerStatuses"), errors);
  CheckAllocated(status["initContainerStatuses"], spec["initContainers"], path.Child("initContainerStatuses"), errors);
  const FieldPath ephemeral = path.Child("ephemeralContainerStatuses");
  std::int64_t index = 0;
  for (const Value container : status["ephemeralContainerStatuses"].items()) {
    const FieldPath at = ephemeral.Index(index++);
    if (container["allocatedResourcesStatus"].empty()) continue;
    errors.push_back(Forbidden(at.Child("allocatedResourcesStatus"), "must not be specified in container status"));
  }
  if (!FeatureEnabled(call, "ImageVolumeWithDigest")) return;
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    CheckVolumeStatuses(status[list], path.Child(list), errors);
  }
}

void WarnPodOnStatusUpdate(const Call& call, Value pod, Value) {
  const FieldPath status("status");
  for (const std::string_view list : {"podIPs", "hostIPs"}) {
    const FieldPath path = status.Child(list);
    std::int64_t index = 0;
    for (const Value ip : pod["status"][list].items()) {
      const FieldPath at = path.Index(index++);
      rules::WarnAboutIP(at.Child("ip"), Text(ip, "ip"), call.warnings);
    }
  }
}

}  // namespace keelson::registry::core
