#include "registry/core/pod.h"

#include <chrono>

#include "object/time.h"
#include "registry/core/hub.h"
#include "registry/core/pod_options.h"
#include "registry/core/pod_security.h"
#include "registry/core/pod_spec.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/rules/address.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::core {
namespace {

using base::Arena;

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

// Adds "key In [the pod's value]" for keys that the pod has.
void MergeLabelKeys(Arena& arena, Value term, std::string_view keys, std::string_view op, Value labels) {
  for (const Value key : term[keys].items()) {
    const Value* label = labels.Find(key.as_string());
    if (label == nullptr) continue;
    Value values = Value::List(arena, 1);
    values.Append(arena, *label);
    Value requirement = Value::Map(arena, 3);
    requirement.Set(arena, "key", key);
    requirement.Set(arena, "operator", Value(op));
    requirement.Set(arena, "values", values);
    Value selector = term["labelSelector"];
    selector.EnsureList(arena, "matchExpressions").Append(arena, requirement);
  }
}

void MergeLabelKeysOfTerm(Arena& arena, Value term, Value labels) {
  if (!IsSet(term, "labelSelector")) return;
  MergeLabelKeys(arena, term, "matchLabelKeys", "In", labels);
  MergeLabelKeys(arena, term, "mismatchLabelKeys", "NotIn", labels);
}

void MergeAllLabelKeys(Arena& arena, Value pod) {
  const Value labels = pod["metadata"]["labels"];
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    const Value affinity = pod["spec"]["affinity"][kind];
    for (const Value term : affinity[kPreferred].items()) MergeLabelKeysOfTerm(arena, term["podAffinityTerm"], labels);
    for (const Value term : affinity[kRequired].items()) MergeLabelKeysOfTerm(arena, term, labels);
  }
  for (const Value constraint : pod["spec"]["topologySpreadConstraints"].items())
    MergeLabelKeysOfTerm(arena, constraint, labels);
}

// Annotations of old clients become the field that nodes of now read.
void ApplyAppArmorAnnotations(const Call& call, Value pod) {
  const Value spec = pod["spec"], annotations = pod["metadata"]["annotations"];
  if (Text(spec["os"], "name") == "windows" || annotations.empty()) return;
  const FieldPath metadata("metadata");
  const FieldPath path = metadata.Child("annotations");
  VisitContainers(spec, FieldPath("spec"), [&](Value container, const FieldPath&) {
    const std::string key = std::string(kAppArmorAnnotationPrefix).append(Text(container, "name"));
    const Value* annotation = annotations.Find(key);
    if (annotation == nullptr || IsSet(container["securityContext"], "appArmorProfile")) return;
    Value profile = AppArmorFieldForAnnotation(call.arena, annotation->as_string());
    FieldErrors problems;
    ValidateAppArmorProfile(profile, path, problems);
    if (!problems.empty()) profile = {};
    bool warn = profile.is_null();
    if (!profile.is_null() &&
        !SemanticEqual(profile, spec["securityContext"]["appArmorProfile"], schema::types::core_v1::kAppArmorProfile)) {
      container.EnsureMap(call.arena, "securityContext").Set(call.arena, "appArmorProfile", profile);
      warn = true;
    }
    if (warn) Warning(call, path.Key(key), "deprecated since v1.30; use the \"appArmorProfile\" field instead");
  });
}

void BumpGeneration(const Call& call, Value pod, Value old) {
  if (SemanticEqual(pod["spec"], old["spec"], schema::types::core_v1::kPodSpec)) return;
  Value metadata = pod["metadata"];
  metadata.Set(call.arena, "generation", Value(Int(old["metadata"], "generation") + 1));
}

// Metadata changes through a narrow subresource are ignored.
void ResetMetadata(const Call& call, Value pod, Value old) {
  Value metadata = pod["metadata"];
  for (const std::string_view key :
       {"deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"}) {
    CopyMember(call.arena, metadata, old["metadata"], key);
  }
}

// The old containers with the new resources, or the new ones where they are not the same containers (validation says so
// then).
Value ResizedContainers(const Call& call, Value now, Value old) {
  if (now.empty()) return now;
  const Value merged = old.Clone(call.arena);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (Text(now[i], "name") != Text(merged[i], "name")) return now;
    CopyMember(call.arena, merged[i], now[i], "resources");
    CopyMember(call.arena, merged[i], now[i], "resizePolicy");
  }
  return merged;
}

void SetOrErase(Arena& arena, Value object, std::string_view key, Value value) {
  if (value.is_null()) {
    object.Erase(key);
  } else {
    object.Set(arena, key, value);
  }
}

}  // namespace

void PreparePodForCreate(const Call& call, Value pod, Value) {
  Arena& arena = call.arena;
  Value metadata = pod.EnsureMap(arena, "metadata");
  metadata.Set(arena, "generation", Value(1));
  Value status = Value::Map(arena);
  status.Set(arena, "phase", "Pending");
  status.Set(arena, "qosClass", Value(ComputePodQOS(pod["spec"])));
  DropDisabledPodFields(call, pod["spec"], {});
  if (!pod["spec"]["schedulingGates"].empty()) {
    Value condition = Value::Map(arena);
    condition.Set(arena, "type", "PodScheduled");
    condition.Set(arena, "status", "False");
    const auto now = std::chrono::floor<std::chrono::seconds>(call.clock.Now()).time_since_epoch().count();
    condition.Set(arena, "lastTransitionTime", Value::String(arena, object::FormatTime(now)));
    condition.Set(arena, "reason", "SchedulingGated");
    condition.Set(arena, "message", "Scheduling is blocked due to non-empty scheduling gates");
    Value conditions = Value::List(arena, 1);
    conditions.Append(arena, condition);
    status.Set(arena, "conditions", conditions);
  }
  pod.Set(arena, "status", status);
  MergeAllLabelKeys(arena, pod);
  ApplyAppArmorAnnotations(call, pod);
}

void PreparePodForUpdate(const Call& call, Value pod, Value old) {
  DropDisabledPodFields(call, pod["spec"], old["spec"]);
  CopyMember(call.arena, pod["metadata"], old["metadata"], "generation");
  BumpGeneration(call, pod, old);
}

// Fields of the status that belong to gates that are off.
static void DropDisabledStatusFields(const Call& call, Value status, Value old_status) {
  if (!FeatureEnabled(call, "DRANodeAllocatableResources") &&
      old_status["nodeAllocatableResourceClaimStatuses"].empty()) {
    status.Erase("nodeAllocatableResourceClaimStatuses");
  }
  if (FeatureEnabled(call, "ImageVolumeWithDigest")) return;
  const auto visit_mounts = [](Value pod_status, auto visit) {
    for (const std::string_view list : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
      for (const Value container : pod_status[list].items()) {
        for (Value mount : container["volumeMounts"].items()) visit(mount);
      }
    }
  };
  bool used = false;
  visit_mounts(old_status, [&](Value mount) { used |= IsSet(mount, "volumeStatus"); });
  if (!used) visit_mounts(status, [](Value mount) { mount.Erase("volumeStatus"); });
}

void PreparePodForStatusUpdate(const Call& call, Value pod, Value old) {
  Value metadata = pod["metadata"];
  metadata.Erase("deletionTimestamp");
  CopyMember(call.arena, metadata, old["metadata"], "ownerReferences");
  Value status = pod.EnsureMap(call.arena, "status");
  DropDisabledStatusFields(call, status, old["status"]);
  if (Text(status, "qosClass").empty()) CopyMember(call.arena, status, old["status"], "qosClass");
  if (Int(status, "observedGeneration") == 0) CopyMember(call.arena, status, old["status"], "observedGeneration");
  // Conditions of old clients without observedGeneration keep the previous one, by type and order.
  std::map<std::string, std::vector<Value>, std::less<>> before;
  for (const Value condition : old["status"]["conditions"].items()) {
    before[std::string(Text(condition, "type"))].push_back(condition["observedGeneration"]);
  }
  std::map<std::string, std::size_t, std::less<>> used;
  for (const Value condition : status["conditions"].items()) {
    const std::string type(Text(condition, "type"));
    const std::size_t nth = used[type]++;
    if (Int(condition, "observedGeneration") != 0 || nth >= before[type].size()) continue;
    Value mutable_condition = condition;
    if (const Value generation = before[type][nth]; generation.as_int() != 0) {
      mutable_condition.Set(call.arena, "observedGeneration", generation);
    }
  }
}

void PreparePodForEphemeralContainers(const Call& call, Value pod, Value old) {
  const Value containers = pod["spec"]["ephemeralContainers"];
  Value spec = old["spec"].Clone(call.arena);
  SetOrErase(call.arena, spec, "ephemeralContainers", containers);
  pod.Set(call.arena, "spec", spec);
  CopyMember(call.arena, pod, old, "status");
  ResetMetadata(call, pod, old);
  DropDisabledPodFields(call, spec, old["spec"]);
  BumpGeneration(call, pod, old);
}

void PreparePodForResize(const Call& call, Value pod, Value old) {
  const Value now_spec = pod["spec"], old_spec = old["spec"];
  if (now_spec["containers"].size() == old_spec["containers"].size() &&
      now_spec["initContainers"].size() == old_spec["initContainers"].size()) {
    Value spec = old_spec.Clone(call.arena);
    SetOrErase(call.arena, spec, "resources", now_spec["resources"]);
    SetOrErase(call.arena, spec, "containers", ResizedContainers(call, now_spec["containers"], old_spec["containers"]));
    SetOrErase(call.arena, spec, "initContainers",
               ResizedContainers(call, now_spec["initContainers"], old_spec["initContainers"]));
    pod.Set(call.arena, "spec", spec);
    CopyMember(call.arena, pod, old, "status");
    ResetMetadata(call, pod, old);
  }
  DropDisabledPodFields(call, pod["spec"], old_spec);
  BumpGeneration(call, pod, old);
}

void CanonicalizePod(const Call& call, Value pod, Value) { SyncServiceAccount(call.arena, pod["spec"]); }

PodOptions PodOptionsFor(const Call& call, bool is_pod, Value old_spec, Value old_metadata) {
  PodOptions options{
      .is_pod = is_pod, .allow_privileged = call.allow_privileged, .address_rules = AddressRulesOf(call)};
  options.allow_comparison_tolerations = FeatureEnabled(call, "TaintTolerationComparisonOperators");
  options.allow_host_network_with_user_namespace = FeatureEnabled(call, "UserNamespacesHostNetworkSupport");
  options.allow_selinux_mount_option =
      FeatureEnabled(call, "SELinuxMount") || IsSet(old_spec["securityContext"], "seLinuxChangePolicy");
  if (old_spec.is_null()) return options;
  const bool user_namespace = IsSet(old_spec, "hostUsers") && !Bool(old_spec, "hostUsers");
  options.allow_host_network_with_user_namespace |= user_namespace && Bool(old_spec, "hostNetwork");
  options.allow_invalid_label_value_in_selector = HasInvalidValueInAffinitySelector(old_spec);
  options.allow_invalid_label_value_in_required_node_affinity = HasInvalidValueInRequiredNodeAffinity(old_spec);
  options.allow_invalid_spread_selector = HasInvalidSpreadSelector(old_spec);
  options.allow_repeated_match_label_keys = HasRepeatedMatchLabelKeys(old_spec);
  for (const Value toleration : old_spec["tolerations"].items()) {
    const std::string_view op = Text(toleration, "operator");
    options.allow_comparison_tolerations |= op == "Lt" || op == "Gt";
  }
  for (const Value sysctl : old_spec["securityContext"]["sysctls"].items()) {
    options.allow_host_sysctls |= !HostSysctlProblem(Text(sysctl, "name"), old_spec).empty();
  }
  for (const Value volume : old_spec["volumes"].items()) {
    for (const Value source : volume["projected"]["sources"].items()) {
      const std::string_view path = Text(source["serviceAccountToken"], "path");
      options.allow_non_local_token_path |=
          path.starts_with("..") || path.starts_with("/") || path.find("/..") != std::string_view::npos;
    }
  }
  for (const Value container : old_spec["initContainers"].items()) {
    if (Text(container, "restartPolicy") == "Always") continue;
    for (const Value policy : container["resizePolicy"].items()) {
      options.allow_restart_container_in_init |= Text(policy, "restartPolicy") == "RestartContainer";
    }
  }
  VisitContainers(old_spec, FieldPath("spec"), [&](Value container, const FieldPath& path) {
    options.allow_volume_devices_with_user_namespace |= user_namespace && !container["volumeDevices"].empty();
    FieldErrors problems;
    ValidateResourceRequirements(container["resources"], ResourceScope::kContainer, {}, {}, path, problems);
    for (const validation::FieldError& problem : problems) {
      options.allow_indivisible_huge_pages |=
          problem.detail.find("is not positive integer multiple of") != std::string::npos;
    }
  });
  if (!old_metadata.is_null()) {
    FieldErrors problems;
    ValidatePodAnnotations(old_metadata["annotations"], old_spec, {}, FieldPath("annotations"), problems);
    for (const validation::FieldError& problem : problems) {
      options.allow_invalid_pod_deletion_cost |= problem.detail == "must be a 32bit integer";
    }
  }
  return options;
}

void DropDisabledPodFields(const Call& call, Value spec, Value old_spec) {
  if (!FeatureEnabled(call, "ContainerStopSignals")) {
    bool used = false;
    VisitContainers(old_spec, FieldPath("spec"),
                    [&](Value container, const FieldPath&) { used |= IsSet(container["lifecycle"], "stopSignal"); });
    if (!used) {
      VisitContainers(spec, FieldPath("spec"), [](Value container, const FieldPath&) {
        Value lifecycle = container["lifecycle"];
        if (lifecycle.Erase("stopSignal") && lifecycle.empty()) container.Erase("lifecycle");
      });
    }
  }
  if (!FeatureEnabled(call, "GenericWorkload") && !IsSet(old_spec, "schedulingGroup")) spec.Erase("schedulingGroup");
  struct {
    std::string_view gate, key;
  } constexpr kProjections[] = {{"ClusterTrustBundleProjection", "clusterTrustBundle"},
                                {"PodCertificateRequest", "podCertificate"}};
  for (const auto& [gate, key] : kProjections) {
    if (FeatureEnabled(call, gate)) continue;
    bool used = false;
    for (const Value volume : old_spec["volumes"].items()) {
      for (const Value source : volume["projected"]["sources"].items()) used |= IsSet(source, key);
    }
    if (used) continue;
    for (const Value volume : spec["volumes"].items()) {
      for (Value source : volume["projected"]["sources"].items()) source.Erase(key);  // the empty source stays
    }
  }
}

std::int64_t PodGracePeriod(Value pod, std::optional<std::int64_t> asked) {
  std::int64_t period = asked ? *asked : pod.Get("spec", "terminationGracePeriodSeconds").as_int();
  if (period < 0) period = 1;
  const std::string_view phase = pod.Get("status", "phase").as_string();
  if (pod.Get("spec", "nodeName").as_string().empty() || phase == "Succeeded" || phase == "Failed") period = 0;
  return period;
}

}  // namespace keelson::registry::core
