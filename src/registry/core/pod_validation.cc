// Validation of pods on create and on update.
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "registry/core/containers.h"
#include "registry/core/hub.h"
#include "registry/core/pod.h"
#include "registry/core/pod_options.h"
#include "registry/core/pod_security.h"
#include "registry/core/pod_spec.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kUpdatable =
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";

bool SameSpec(Value a, Value b) { return SemanticEqual(a, b, schema::types::core_v1::kPodSpec); }

// An error about the pod as a whole: field.NewPath("").
validation::FieldError ForbiddenAll(std::string_view detail) {
  validation::FieldError error = Forbidden(FieldPath("pod"), detail);
  error.field = "[]";
  return error;
}

void CheckMetadataAndSpec(Value pod, const PodOptions& options, bool with_metadata, FieldErrors& errors) {
  const FieldPath metadata_path("metadata"), spec_path("spec");
  const Value metadata = pod["metadata"], spec = pod["spec"];
  if (with_metadata)
    validation::ValidateObjectMeta(metadata, true, validation::NameIsDNSSubdomain, metadata_path, errors);
  ValidatePodAnnotations(metadata["annotations"], spec, options, metadata_path.Child("annotations"), errors);
  ValidatePodSpec(spec, metadata, options, spec_path, errors);
  if (Text(spec, "serviceAccountName").empty()) {
    const FieldPath volumes = spec_path.Child("volumes");
    std::int64_t i = 0;
    for (const Value volume : spec["volumes"].items()) {
      const FieldPath at = volumes.Index(i++);
      const FieldPath projected = at.Child("projected");
      const FieldPath sources = projected.Child("sources");
      std::int64_t j = 0;
      for (const Value source : volume["projected"]["sources"].items()) {
        const FieldPath one = sources.Index(j++);
        if (!IsSet(source, "serviceAccountToken")) continue;
        errors.push_back(
            Forbidden(one.Child("serviceAccountToken"), "must not be specified when serviceAccountName is not set"));
      }
    }
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    const FieldPath containers = spec_path.Child(list);
    std::int64_t index = 0;
    for (const Value container : spec[list].items()) CheckImagePadding(container, containers.Index(index++), errors);
  }
}

// False: they are not the same containers, and nothing else can be compared.
bool CheckContainerUpdates(Value now, Value old, const FieldPath& path, FieldErrors& errors) {
  if (now.size() != old.size()) {
    errors.push_back(Forbidden(path, "pod updates may not add or remove containers"));
    return false;
  }
  std::int64_t index = 0;
  for (const Value container : now.items()) {
    const FieldPath at = path.Index(index++);
    RequireText(container, "image", at, errors);
    CheckImagePadding(container, at, errors);
  }
  return true;
}

bool CheckDeadlineUpdate(Value now, Value old, const FieldPath& path, FieldErrors& errors) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (now.is_null()) {
    if (!old.is_null()) errors.push_back(Invalid(path, now, "must not update from a positive integer to nil value"));
    return true;
  }
  if (now.as_int() < 0 || now.as_int() > kMost) {
    errors.push_back(Invalid(path, now, RangeMessage(0, kMost)));
    return false;
  }
  if (!old.is_null() && old.as_int() < now.as_int()) {
    errors.push_back(Invalid(path, now, "must be less than or equal to previous value"));
    return false;
  }
  return true;
}

void CheckTolerationUpdate(Value now, Value old, const PodOptions& options, const FieldPath& path,
                           FieldErrors& errors) {
  const auto without_seconds = [](Value toleration) {
    return std::tuple(Text(toleration, "key"), Text(toleration, "operator"), Text(toleration, "value"),
                      Text(toleration, "effect"));
  };
  std::set<std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>> kept;
  for (const Value toleration : now.items()) kept.insert(without_seconds(toleration));
  for (const Value toleration : old.items()) {
    if (!kept.contains(without_seconds(toleration)))
      return errors.push_back(Forbidden(path, "existing toleration can not be modified except its tolerationSeconds"));
  }
  ValidateTolerations(now, options.allow_comparison_tolerations, path, errors);
}

void CheckGateUpdate(Value now, Value old, const FieldPath& path, FieldErrors& errors) {
  std::map<std::string_view, std::int64_t> added;
  for (std::size_t i = 0; i < now.size(); ++i) added[Text(now[i], "name")] = static_cast<std::int64_t>(i);
  for (const Value gate : old.items()) added.erase(Text(gate, "name"));
  for (const auto& [name, index] : added) {
    const FieldPath at = path.Index(index);
    errors.push_back(Forbidden(at.Child("name"),
                               "only deletion is allowed, but found new scheduling gate '" + std::string(name) + "'"));
  }
}

bool IsPrefix(Value old, Value now) {
  if (now.size() < old.size()) return false;
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (!SemanticEqual(now[i], old[i], schema::types::core_v1::kNodeSelectorRequirement)) return false;
  }
  return true;
}

void CheckGatedNodeAffinity(Value now, Value old, const FieldPath& path, FieldErrors& errors) {
  if (!IsSet(old, kRequired)) return;
  const Value before = old[kRequired]["nodeSelectorTerms"], after = now[kRequired]["nodeSelectorTerms"];
  const FieldPath required = path.Child(kRequired);
  const FieldPath terms = required.Child("nodeSelectorTerms");
  if (!before.empty() && before.size() != after.size()) {
    errors.push_back(InvalidHub(terms, CoreHubTypes(), after, "[]NodeSelectorTerm",
                                "no additions/deletions to non-empty NodeSelectorTerms list are allowed"));
    return;
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Value was = before[i], is = after[i];
    const bool was_empty = was["matchExpressions"].empty() && was["matchFields"].empty();
    const bool is_empty = is["matchExpressions"].empty() && is["matchFields"].empty();
    if ((!was_empty || is_empty) && IsPrefix(was["matchExpressions"], is["matchExpressions"]) &&
        IsPrefix(was["matchFields"], is["matchFields"])) {
      continue;
    }
    errors.push_back(InvalidHub(terms.Index(static_cast<std::int64_t>(i)), CoreHubTypes(), is, "NodeSelectorTerm",
                                "only additions are allowed (no mutations or deletions)"));
  }
}

// The new spec with everything that may change taken from the old one: what still differs may not.
Value MaskAllowedChanges(base::Arena& arena, Value pod, Value old, const FieldPath& path, FieldErrors& errors) {
  Value spec = pod["spec"].Clone(arena);
  const Value before = old["spec"];
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (std::size_t i = 0; i < spec[list].size(); ++i) CopyMember(arena, spec[list][i], before[list][i], "image");
    if (spec[list].empty()) spec.Erase(list);  // upstream builds the lists anew, so that an empty one becomes nil
  }
  for (const std::string_view key : {"activeDeadlineSeconds", "schedulingGates", "tolerations"})
    CopyMember(arena, spec, before, key);
  if (Int(before, "terminationGracePeriodSeconds") < 0 && Int(spec, "terminationGracePeriodSeconds") == 1) {
    CopyMember(arena, spec, before, "terminationGracePeriodSeconds");
  }
  if (before["schedulingGates"].empty()) return spec;
  // Not yet seen by a scheduler: where it may run can still be narrowed.
  const Value selector = spec["nodeSelector"], old_selector = before["nodeSelector"];
  if (!SetMatches(old_selector, selector)) {
    errors.push_back(InvalidHub(path.Child("nodeSelector"), CoreHubTypes(), selector, "{}string",
                                "only additions to spec.nodeSelector are allowed (no mutations or deletions)"));
  }
  CopyMember(arena, spec, before, "nodeSelector");
  const Value now_affinity = spec["affinity"]["nodeAffinity"], old_affinity = before["affinity"]["nodeAffinity"];
  const bool same = now_affinity.is_null() == old_affinity.is_null() &&
                    SemanticEqual(now_affinity, old_affinity, schema::types::core_v1::kNodeAffinity);
  if (same) return spec;
  const FieldPath affinity_path = path.Child("affinity");
  CheckGatedNodeAffinity(now_affinity, old_affinity, affinity_path.Child("nodeAffinity"), errors);
  Value affinity = spec["affinity"];
  if (affinity.is_null()) {
    if (!old_affinity.is_null()) {
      affinity = Value::Map(arena);
      affinity.Set(arena, "nodeAffinity", old_affinity);
      spec.Set(arena, "affinity", affinity);
    }
  } else if (!IsSet(before, "affinity") && !IsSet(affinity, "podAntiAffinity") && !IsSet(affinity, "podAffinity")) {
    spec.Erase("affinity");
  } else {
    CopyMember(arena, affinity, before["affinity"], "nodeAffinity");
  }
  return spec;
}

bool ResourcesRemoved(Value now, Value old) {
  if (old.size() > now.size()) return true;
  for (const object::Member& resource : old.members()) {
    if (!now.Has(resource.key)) return true;
  }
  return false;
}

void CheckResourcesKept(Value now, Value old, const FieldPath& path, std::string_view what, FieldErrors& errors) {
  for (const std::string_view key : {"requests", "limits"}) {
    if (!ResourcesRemoved(now[key], old[key])) continue;
    errors.push_back(Forbidden(path.Child(key), std::string(what) + " " + std::string(key) + " cannot be removed"));
  }
}

// cpu and memory as they were, so that comparing shows what else changed.
void MaskComputeResources(base::Arena& arena, Value resources, Value old) {
  for (const std::string_view list : {"limits", "requests"}) {
    if (!IsSet(resources, list) && !IsSet(old, list)) continue;
    Value copy = IsSet(resources, list) ? resources[list].Clone(arena) : Value::Map(arena);
    for (const std::string_view name : {"cpu", "memory"}) CopyMember(arena, copy, old[list], name);
    resources.Set(arena, list, copy);
  }
}

void MaskContainer(base::Arena& arena, Value container, Value old) {
  Value resources = Value::Map(arena);
  for (const std::string_view list : {"limits", "requests"}) CopyMember(arena, resources, container["resources"], list);
  MaskComputeResources(arena, resources, old["resources"]);
  container.Set(arena, "resources", resources);
}

bool CheckResizeOrder(Value spec, Value old, const FieldPath& path, FieldErrors& errors) {
  const std::size_t before = errors.size();
  for (const std::string_view list : {"containers", "initContainers"}) {
    const FieldPath at = path.Child(list);
    if (spec[list].size() != old[list].size()) {
      errors.push_back(Forbidden(at, std::string(list) + " may not be added or removed on resize"));
      continue;
    }
    for (std::size_t i = 0; i < old[list].size(); ++i) {
      if (Text(spec[list][i], "name") == Text(old[list][i], "name")) continue;
      const FieldPath one = at.Index(static_cast<std::int64_t>(i));
      errors.push_back(Forbidden(one.Child("name"), std::string(list) + " may not be renamed or reordered on resize"));
    }
  }
  return errors.size() == before;
}

bool SameContainer(Value a, Value b) { return SemanticEqual(a, b, schema::types::core_v1::kContainer); }

}  // namespace

void ValidatePodAnnotationUpdates(Value pod, Value old, const PodOptions& options, const FieldPath& path,
                                  FieldErrors& errors) {
  const Value now = pod["metadata"]["annotations"], before = old["metadata"]["annotations"];
  for (const object::Member& annotation : SortedMembers(before)) {
    const Value* kept = now.Find(annotation.key);
    if (kept != nullptr && kept->as_string() == annotation.value.as_string()) continue;
    if (annotation.key.starts_with(kAppArmorAnnotationPrefix)) {
      errors.push_back(Forbidden(path.Key(annotation.key), "may not remove or update AppArmor annotations"));
    }
    if (annotation.key == kMirror)
      errors.push_back(Forbidden(path.Key(kMirror), "may not remove or update mirror pod annotation"));
  }
  for (const object::Member& annotation : SortedMembers(now)) {
    if (before.Has(annotation.key)) continue;
    if (annotation.key.starts_with(kAppArmorAnnotationPrefix)) {
      errors.push_back(Forbidden(path.Key(annotation.key), "may not add AppArmor annotations"));
    }
    if (annotation.key == kMirror) errors.push_back(Forbidden(path.Key(kMirror), "may not add mirror pod annotation"));
  }
  ValidatePodAnnotations(now, pod["spec"], options, path, errors);
}

void ValidatePod(const Call& call, Value pod, Value, FieldErrors& errors) {
  const PodOptions options = PodOptionsFor(call, true, {}, {});
  const FieldPath path("spec");
  const Value spec = pod["spec"];
  CheckMetadataAndSpec(pod, options, false, errors);
  if (!spec["ephemeralContainers"].empty())
    errors.push_back(Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"));
  if (!Text(spec, "nodeName").empty() && !spec["schedulingGates"].empty()) {
    errors.push_back(Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"));
  }
  ValidateProfilesAgree(pod["metadata"]["annotations"], spec, path, errors);
}

void ValidatePodUpdate(const Call& call, Value pod, Value old, FieldErrors& errors) {
  const PodOptions options = PodOptionsFor(call, true, old["spec"], old["metadata"]);
  const FieldPath metadata_path("metadata"), path("spec");
  const Value spec = pod["spec"], before = old["spec"];
  validation::ValidateObjectMetaUpdate(pod["metadata"], old["metadata"], metadata_path, errors);
  CheckMetadataAndSpec(pod, options, true, errors);
  ValidatePodAnnotationUpdates(pod, old, options, metadata_path.Child("annotations"), errors);
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (!CheckContainerUpdates(spec[list], before[list], path.Child(list), errors)) return;
  }
  if (!CheckDeadlineUpdate(spec["activeDeadlineSeconds"], before["activeDeadlineSeconds"],
                           path.Child("activeDeadlineSeconds"), errors))
    return;
  CheckTolerationUpdate(spec["tolerations"], before["tolerations"], options, path.Child("tolerations"), errors);
  CheckGateUpdate(spec["schedulingGates"], before["schedulingGates"], path.Child("schedulingGates"), errors);
  if (SameSpec(spec, before)) return;
  const Value masked = MaskAllowedChanges(call.arena, pod, old, path, errors);
  if (SameSpec(masked, before)) return;
  errors.push_back(Forbidden(path, std::string(kUpdatable) + CoreHubTypes().Diff(before, masked, "PodSpec")));
}

void ValidatePodEphemeralContainersUpdate(const Call& call, Value pod, Value old, FieldErrors& errors) {
  const PodOptions options = PodOptionsFor(call, true, old["spec"], old["metadata"]);
  const FieldPath metadata_path("metadata"), spec_path("spec");
  const FieldPath path = spec_path.Child("ephemeralContainers");
  if (old["metadata"]["annotations"].Has(kMirror)) {
    errors.push_back(ForbiddenAll("static pods do not support ephemeral containers"));  // and nothing else
    return;
  }
  validation::ValidateObjectMetaUpdate(pod["metadata"], old["metadata"], metadata_path, errors);
  CheckMetadataAndSpec(pod, options, true, errors);
  ValidatePodAnnotationUpdates(pod, old, options, metadata_path.Child("annotations"), errors);
  std::map<std::string_view, Value> now;
  for (const Value container : pod["spec"]["ephemeralContainers"].items()) now[Text(container, "name")] = container;
  for (const Value before : old["spec"]["ephemeralContainers"].items()) {
    const std::string name = base::GoQuote(Text(before, "name"));
    const auto after = now.find(Text(before, "name"));
    if (after == now.end()) {
      errors.push_back(Forbidden(path, "existing ephemeral containers " + name + " may not be removed\n"));
    } else if (!SemanticEqual(before, after->second, schema::types::core_v1::kEphemeralContainer)) {
      errors.push_back(Forbidden(path, "existing ephemeral containers " + name + " may not be changed\n" +
                                           CoreHubTypes().Diff(before, after->second, "EphemeralContainer")));
    }
  }
}

namespace {

// `masked` is the new spec, in which what may change is set back to what it was.
void CheckPodLevelResize(base::Arena& arena, Value masked, Value spec, Value before, const FieldPath& path,
                         FieldErrors& errors) {
  const auto has_own = [](Value of) {
    return !of["resources"]["requests"].empty() || !of["resources"]["limits"].empty();
  };
  if (!has_own(before) && !has_own(spec)) return;
  if (IsSet(before, "resources") && !IsSet(spec, "resources"))
    return errors.push_back(Forbidden(path.Child("resources"), "pod-level resources cannot be removed"));
  if (IsSet(before, "resources")) {
    CheckResourcesKept(spec["resources"], before["resources"], path.Child("resources"), "pod-level resource", errors);
  }
  Value resources = masked["resources"];
  MaskComputeResources(arena, resources, before["resources"]);
  if (!IsSet(before, "resources") && resources["requests"].empty() && resources["limits"].empty() &&
      resources["claims"].empty()) {
    masked.Erase("resources");
  }
  if (!SemanticEqual(masked["resources"], before["resources"], schema::types::core_v1::kResourceRequirements)) {
    errors.push_back(Forbidden(path, "only cpu and memory resources are mutable at pod-level"));
  }
}

void CheckInitContainerResize(base::Arena& arena, Value masked, Value before, const FieldPath& path,
                              FieldErrors& errors) {
  const FieldPath init_path = path.Child("initContainers");
  for (std::size_t i = 0; i < before["initContainers"].size(); ++i) {
    const Value container = masked["initContainers"][i], was = before["initContainers"][i];
    const FieldPath at = init_path.Index(static_cast<std::int64_t>(i));
    const bool modified = !SameContainer(container, was);
    MaskContainer(arena, container, was);
    if (!SameContainer(container, was)) {
      errors.push_back(Forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable"));
    }
    if (!modified || Text(container, "restartPolicy") == "Always") continue;
    for (const Value policy : container["resizePolicy"].items()) {
      if (Text(policy, "restartPolicy") != "RestartContainer") continue;
      errors.push_back(
          Forbidden(at, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"));
    }
  }
}

}  // namespace

void ValidatePodResize(const Call& call, Value pod, Value old, FieldErrors& errors) {
  const FieldPath metadata_path("metadata"), path("spec");
  if (old["metadata"]["annotations"].Has(kMirror))
    return errors.push_back(ForbiddenAll("static pods cannot be resized"));
  if (Text(old["spec"]["os"], "name") == "windows")
    return errors.push_back(ForbiddenAll("windows pods cannot be resized"));
  const std::size_t errors_before = errors.size();
  const PodOptions options = PodOptionsFor(call, true, old["spec"], old["metadata"]);
  const Value spec = pod["spec"], before = old["spec"];
  validation::ValidateObjectMetaUpdate(pod["metadata"], old["metadata"], metadata_path, errors);
  CheckMetadataAndSpec(pod, options, true, errors);

  const std::string_view old_class = Text(old["status"], "qosClass");
  if ((old_class.empty() ? ComputePodQOS(before) : old_class) != ComputePodQOS(spec)) {
    errors.push_back(
        Invalid(path, Text(pod["status"], "qosClass"), "Pod QOS Class may not change as a result of resizing"));
  }
  for (const Value status : old["status"]["containerStatuses"].items()) {
    if (!IsSet(status["state"], "running")) continue;
    if (!IsSet(status, "resources"))
      errors.push_back(Forbidden(path, "Pod running on node without support for resize"));
    break;
  }
  Value masked = spec.Clone(call.arena);
  CheckPodLevelResize(call.arena, masked, spec, before, path, errors);
  if (!old["status"]["nodeAllocatableResourceClaimStatuses"].empty()) {
    errors.push_back(Forbidden(path, "pods with node allocatable resource claims cannot be resized"));
  }
  if (!CheckResizeOrder(spec, before, path, errors)) return;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const FieldPath containers = path.Child(list);
    for (std::size_t i = 0; i < before[list].size(); ++i) {
      const FieldPath at = containers.Index(static_cast<std::int64_t>(i));
      CheckResourcesKept(spec[list][i]["resources"], before[list][i]["resources"], at.Child("resources"), "resource",
                         errors);
    }
  }
  for (std::size_t i = 0; i < before["containers"].size(); ++i) {
    MaskContainer(call.arena, masked["containers"][i], before["containers"][i]);
    if (!SameContainer(masked["containers"][i], before["containers"][i])) {
      errors.push_back(Forbidden(path, "only cpu and memory resources are mutable"));
    }
  }
  CheckInitContainerResize(call.arena, masked, before, path, errors);
  if (errors.size() != errors_before) return;
  if (!SameSpec(masked, before)) errors.push_back(Forbidden(path, "only cpu and memory resources are mutable"));
}

}  // namespace keelson::registry::core
