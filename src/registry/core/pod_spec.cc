#include "registry/core/pod_spec.h"

#include <limits>

#include "base/strings.h"
#include "codec/json.h"
#include "registry/core/containers.h"
#include "registry/core/hub.h"
#include "registry/core/pod_security.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/core/volume_sources.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kRestartPolicies[] = {"Always", "OnFailure", "Never"};
constexpr std::string_view kDNSPolicies[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"};
constexpr std::string_view kPreemptionPolicies[] = {"PreemptLowerPriority", "Never"};
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kTolerations = "scheduler.alpha.kubernetes.io/tolerations";
constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::size_t kNameserversMax = 3;
constexpr std::size_t kSearchPathsMax = 32;
constexpr std::size_t kSearchBytesMax = 2048;
constexpr std::size_t kHostnameOverrideBytesMax = 64;

std::map<std::string, Value, std::less<>> ValidateVolumes(Value spec, Value metadata, const PodOptions& options,
                                                          const FieldPath& path, FieldErrors& errors) {
  const std::string_view pod_name = Text(metadata, "name");
  NameSet names, generated_claims;
  if (!pod_name.empty()) {
    for (const Value volume : spec["volumes"].items()) {
      if (IsSet(volume, "ephemeral"))
        generated_claims.insert(std::string(pod_name) + "-" + std::string(Text(volume, "name")));
    }
  }
  std::map<std::string, Value, std::less<>> usable;
  std::int64_t index = 0;
  for (const Value volume : spec["volumes"].items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = Text(volume, "name");
    FieldErrors own;
    const SourceContext context{.options = options, .name = name, .pod_name = pod_name};
    if (ValidateSources(PodVolumeSources(), context, volume, at, own) == 0)
      own.push_back(Required(at, "must specify a volume type"));
    if (name.empty()) {
      own.push_back(Required(at.Child("name")));
    } else {
      CheckDNSLabel(name, at.Child("name"), own);
    }
    if (names.contains(name)) own.push_back(Duplicate(at.Child("name"), Value(name)));
    if (own.empty()) {
      names.emplace(name);
      usable.emplace(name, volume);
    } else {
      errors.insert(errors.end(), own.begin(), own.end());
    }
    const std::string_view claim = Text(volume["persistentVolumeClaim"], "claimName");
    if (IsSet(volume, "persistentVolumeClaim") && generated_claims.contains(claim)) {
      const FieldPath source = at.Child("persistentVolumeClaim");
      errors.push_back(Invalid(source.Child("claimName"), claim,
                               "must not reference a PVC that gets created for an ephemeral volume"));
    }
  }
  return usable;
}

void ValidateResourceClaims(Value claims, Value metadata, const FieldPath& path, FieldErrors& errors) {
  NameSet names;
  std::int64_t index = 0;
  for (const Value claim : claims.items()) {
    const FieldPath at = path.Index(index++);
    if (metadata["annotations"].Has(kMirror)) {
      validation::FieldError error = Forbidden(at, "static pods do not support resource claims");
      error.field = "[]";
      errors.push_back(std::move(error));
      continue;
    }
    const std::string_view name = Text(claim, "name");
    if (name.empty()) {
      errors.push_back(Required(at.Child("name")));
    } else if (names.contains(name)) {
      errors.push_back(Duplicate(at.Child("name"), Value(name)));
    } else {
      CheckDNSLabel(name, at.Child("name"), errors);
      names.emplace(name);
    }
    const bool named = IsSet(claim, "resourceClaimName"), templated = IsSet(claim, "resourceClaimTemplateName");
    if (named == templated) {
      errors.push_back(
          InvalidHub(at, CoreHubTypes(), claim, "PodResourceClaim",
                     named ? "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
                           : "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"));
    }
    for (const std::string_view key : {"resourceClaimName", "resourceClaimTemplateName"}) {
      if (IsSet(claim, key)) CheckDNSSubdomain(Text(claim, key), at.Child(key), errors);
    }
  }
}

void CheckHostNetworkPorts(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  if (!Bool(spec, "hostNetwork")) return;
  const FieldPath containers = path.Child("containers");
  std::int64_t i = 0;
  for (const Value container : spec["containers"].items()) {
    const FieldPath at = containers.Index(i++);
    const FieldPath ports = at.Child("ports");
    std::int64_t j = 0;
    for (const Value port : container["ports"].items()) {
      const FieldPath one = ports.Index(j++);
      const std::int64_t host = Int(port, "hostPort");
      if ((!options.is_pod && host == 0) || host == Int(port, "containerPort")) continue;
      errors.push_back(
          Invalid(one.Child("hostPort"), Value(host), "must match `containerPort` when `hostNetwork` is true"));
    }
  }
}

void CheckDNSConfig(Value spec, const PodOptions& pod, const FieldPath& path, FieldErrors& errors) {
  const Value config = spec["dnsConfig"];
  const FieldPath nameservers = path.Child("nameservers"), searches = path.Child("searches"),
                  options = path.Child("options");
  if (Text(spec, "dnsPolicy") == "None") {
    if (config.is_null()) return errors.push_back(Required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
    if (config["nameservers"].empty()) {
      return errors.push_back(
          Required(nameservers, "must provide at least one DNS nameserver when `dnsPolicy` is None"));
    }
  }
  if (config["nameservers"].size() > kNameserversMax) {
    errors.push_back(Invalid(nameservers, config["nameservers"], "must not have more than 3 nameservers"));
  }
  std::int64_t index = 0;
  for (const Value server : config["nameservers"].items()) {
    validation::ValidateIPForLegacyField(server.as_string(), nameservers.Index(index++), {}, pod.address_rules, errors);
  }
  if (config["searches"].size() > kSearchPathsMax) {
    errors.push_back(Invalid(searches, config["searches"], "must not have more than 32 search paths"));
  }
  std::size_t bytes = config["searches"].empty() ? 0 : config["searches"].size() - 1;
  for (const Value search : config["searches"].items()) bytes += search.as_string().size();
  if (bytes > kSearchBytesMax) {
    errors.push_back(Invalid(searches, config["searches"],
                             "must not have more than 2048 characters (including spaces) in the search list"));
  }
  index = 0;
  for (const Value search : config["searches"].items()) {
    const FieldPath at = searches.Index(index++);
    std::string_view name = search.as_string();
    if (name == ".") continue;
    if (name.ends_with('.')) name.remove_suffix(1);
    AddInvalid(at, name, validation::IsDNS1123SubdomainWithUnderscore(name), errors);
  }
  index = 0;
  for (const Value option : config["options"].items()) {
    const FieldPath at = options.Index(index++);
    if (Text(option, "name").empty()) errors.push_back(Required(at, "must not be empty"));
  }
}

void CheckGates(Value spec, const FieldPath& path, FieldErrors& errors) {
  const FieldPath readiness = path.Child("readinessGates"), scheduling = path.Child("schedulingGates");
  std::int64_t index = 0;
  for (const Value gate : spec["readinessGates"].items()) {
    const FieldPath at = readiness.Index(index++);
    CheckQualifiedName(Text(gate, "conditionType"), at.Child("conditionType"), errors);
  }
  NameSet seen;
  index = 0;
  for (const Value gate : spec["schedulingGates"].items()) {
    const FieldPath at = scheduling.Index(index++);
    CheckQualifiedName(Text(gate, "name"), at, errors);
    if (!seen.emplace(Text(gate, "name")).second) errors.push_back(Duplicate(at, gate["name"]));
  }
}

void CheckHostnameOverride(Value spec, const FieldPath& path, FieldErrors& errors) {
  if (!IsSet(spec, "hostnameOverride")) return;
  const FieldPath at = path.Child("hostnameOverride");
  const std::string_view name = Text(spec, "hostnameOverride");
  if (Bool(spec, "setHostnameAsFQDN"))
    errors.push_back(Forbidden(at, "may not be specified when setHostnameAsFQDN is true"));
  if (Bool(spec, "hostNetwork")) errors.push_back(Forbidden(at, "may not be specified when hostNetwork is true"));
  if (name.size() > kHostnameOverrideBytesMax) errors.push_back(validation::TooLong(at, kHostnameOverrideBytesMax));
  CheckDNSSubdomain(name, at, errors);
}

void CheckNames(Value spec, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view key : {"serviceAccountName", "nodeName"}) {
    if (!Text(spec, key).empty()) CheckDNSSubdomain(Text(spec, key), path.Child(key), errors);
  }
  if (const Value deadline = spec["activeDeadlineSeconds"]; !deadline.is_null()) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (deadline.as_int() < 1 || deadline.as_int() > kMost) {
      errors.push_back(Invalid(path.Child("activeDeadlineSeconds"), deadline, RangeMessage(1, kMost)));
    }
  }
  for (const std::string_view key : {"hostname", "subdomain"}) {
    if (!Text(spec, key).empty()) CheckDNSLabel(Text(spec, key), path.Child(key), errors);
  }
}

void CheckHostAliases(Value aliases, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  for (const Value alias : aliases.items()) {
    const FieldPath at = path.Index(index++);
    validation::ValidateIPForLegacyField(Text(alias, "ip"), at.Child("ip"), {}, options.address_rules, errors);
    const FieldPath names = at.Child("hostnames");
    std::int64_t j = 0;
    for (const Value name : alias["hostnames"].items()) CheckDNSSubdomain(name.as_string(), names.Index(j++), errors);
  }
}

bool IsInt32Canonical(std::string_view text) {
  const auto value = base::ParseInt64(text);
  return value && *value >= std::numeric_limits<std::int32_t>::min() &&
         *value <= std::numeric_limits<std::int32_t>::max() && !text.starts_with('+') &&
         (text == "0" || !(text.starts_with('0') || text.starts_with("-0")));
}

}  // namespace

void ValidatePodSpec(Value spec, Value metadata, const PodOptions& options, const FieldPath& path,
                     FieldErrors& errors) {
  if (!IsSet(spec, "terminationGracePeriodSeconds"))
    errors.push_back(Required(path.Child("terminationGracePeriodSeconds")));
  PodFacts facts{.options = options,
                 .volumes = ValidateVolumes(spec, metadata, options, path.Child("volumes"), errors),
                 .grace_period = spec["terminationGracePeriodSeconds"],
                 .restart_policy = Text(spec, "restartPolicy"),
                 .os = Text(spec["os"], "name"),
                 .host_users = !IsSet(spec, "hostUsers") || Bool(spec, "hostUsers")};
  for (const Value claim : spec["resourceClaims"].items()) {
    if (!Text(claim, "name").empty()) facts.claims.emplace(Text(claim, "name"));
  }
  ValidateResourceClaims(spec["resourceClaims"], metadata, path.Child("resourceClaims"), errors);
  ValidateContainers(spec, facts, path.Child("containers"), errors);
  ValidateInitContainers(spec, facts, path.Child("initContainers"), errors);
  ValidateEphemeralContainers(spec, facts, path.Child("ephemeralContainers"), errors);
  ValidatePodLevelResources(spec, facts.claims, options, path, errors);
  CheckHostNetworkPorts(spec, options, path, errors);
  RequireOneOf(spec["restartPolicy"], kRestartPolicies, path.Child("restartPolicy"), errors);
  RequireOneOf(spec["dnsPolicy"], kDNSPolicies, path.Child("dnsPolicy"), errors);
  validation::ValidateLabels(spec["nodeSelector"], path.Child("nodeSelector"), errors);
  ValidatePodSecurityContext(spec, options, path.Child("securityContext"), errors);
  ValidateAffinity(spec["affinity"], options, path.Child("affinity"), errors);
  CheckDNSConfig(spec, options, path.Child("dnsConfig"), errors);
  CheckGates(spec, path, errors);
  ValidateTopologySpread(spec["topologySpreadConstraints"], options, path.Child("topologySpreadConstraints"), errors);
  ValidateWindowsHostProcess(spec, options, path, errors);
  ValidateHostUsers(spec, options, path, errors);
  CheckHostnameOverride(spec, path, errors);
  CheckNames(spec, path, errors);
  ValidateTolerations(spec["tolerations"], options.allow_comparison_tolerations, path.Child("tolerations"), errors);
  CheckHostAliases(spec["hostAliases"], options, path.Child("hostAliases"), errors);
  if (!Text(spec, "priorityClassName").empty()) {
    CheckDNSSubdomain(Text(spec, "priorityClassName"), path.Child("priorityClassName"), errors);
  }
  if (IsSet(spec, "runtimeClassName"))
    CheckDNSSubdomain(Text(spec, "runtimeClassName"), path.Child("runtimeClassName"), errors);
  if (IsSet(spec, "preemptionPolicy"))
    RequireOneOf(spec["preemptionPolicy"], kPreemptionPolicies, path.Child("preemptionPolicy"), errors);
  if (IsSet(spec, "overhead")) ValidateOverhead(spec["overhead"], options, path.Child("overhead"), errors);
  ValidateOS(spec, path, errors);
  ValidateFileKeyVolumes(spec, path, errors);
}

void ValidatePodAnnotations(Value annotations, Value spec, const PodOptions& options, const FieldPath& path,
                            FieldErrors& errors) {
  if (const Value* mirror = annotations.Find(kMirror); mirror != nullptr && Text(spec, "nodeName").empty()) {
    errors.push_back(
        Invalid(path.Key(kMirror), mirror->as_string(), "must set spec.nodeName if mirror pod annotation is set"));
  }
  if (const std::string_view text = Text(annotations, kTolerations); !text.empty()) {
    if (const std::string problem = codec::JSONSyntaxError(text); !problem.empty())
      errors.push_back(Invalid(path, kTolerations, problem));
  }
  if (const Value* cost = annotations.Find(kDeletionCost);
      cost != nullptr && !options.allow_invalid_pod_deletion_cost && !IsInt32Canonical(cost->as_string())) {
    errors.push_back(Invalid(path.Key(kDeletionCost), cost->as_string(), "must be a 32bit integer"));
  }
  ValidateProfileAnnotations(annotations, spec, path, errors);
}

void ValidatePodTemplateSpec(Value pod_template, const PodOptions& options, const FieldPath& path,
                             FieldErrors& errors) {
  const Value metadata = pod_template["metadata"], spec = pod_template["spec"];
  const FieldPath spec_path = path.Child("spec");
  validation::ValidateLabels(metadata["labels"], path.Child("labels"), errors);
  validation::ValidateAnnotations(metadata["annotations"], path.Child("annotations"), errors);
  ValidatePodAnnotations(metadata["annotations"], spec, options, path.Child("annotations"), errors);
  ValidatePodSpec(spec, {}, options, spec_path, errors);
  ValidateProfilesAgree(metadata["annotations"], spec, spec_path, errors);
  if (!spec["ephemeralContainers"].empty()) {
    errors.push_back(
        Forbidden(spec_path.Child("ephemeralContainers"), "ephemeral containers not allowed in pod template"));
  }
}

}  // namespace keelson::registry::core
