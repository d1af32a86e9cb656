#include "registry/core/persistent_volume.h"

#include <algorithm>
#include <chrono>

#include "object/time.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/node_labels.h"
#include "registry/core/persistent_volume_claim.h"
#include "registry/core/pod.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/core/volume_sources.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kReclaimPolicies[] = {"Delete", "Recycle", "Retain"};
constexpr std::string_view kStorage[] = {"storage"};
constexpr std::string_view kMountOptions = "volume.beta.kubernetes.io/mount-options";

// Labels that node affinity may be moved to: old name, new name.
using Move = std::pair<std::string_view, std::string_view>;
constexpr Move kLabelMoves[] = {{"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
                                {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
                                {"beta.kubernetes.io/os", "kubernetes.io/os"},
                                {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
                                {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"}};

Value Now(const Call& call) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(call.clock.Now()).time_since_epoch().count();
  return Value::String(call.arena, object::FormatTime(seconds));
}

// path.Clean(p) == "/": nothing but slashes and dots that stay at the root.
bool IsRoot(std::string_view path) {
  if (!path.starts_with('/')) return false;
  int depth = 0;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "..") {
      depth = std::max(depth - 1, 0);
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    at = end + 1;
  }
  return depth == 0;
}

void CheckMountOptions(Value volume, FieldErrors& errors) {
  const Value spec = volume["spec"];
  for (const std::string_view key :
       {"gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs",
        "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"}) {
    if (IsSet(spec, key)) return;
  }
  if (!volume["metadata"]["annotations"].Has(kMountOptions)) return;
  const FieldPath metadata("metadata");
  errors.push_back(Forbidden(metadata.Child("annotations").Child(kMountOptions),
                             "may not specify mount options for this volume type"));
}

bool AllowsInvalidValues(Value old) {
  for (const Value term : old["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].items()) {
    for (const Value expression : term["matchExpressions"].items()) {
      for (const Value value : expression["values"].items()) {
        if (!validation::IsValidLabelValue(value.as_string()).empty()) return true;
      }
    }
  }
  return false;
}

// The source alone: the members of the spec that name one.
Value SourceOf(base::Arena& arena, Value spec) {
  Value source = Value::Map(arena);
  for (const SourceRow& row : PersistentVolumeSources()) CopyMember(arena, source, spec, row.key);
  return source;
}

// The old affinity with labels under the names that the new one uses.
Value WithMovedLabels(base::Arena& arena, Value now, Value old) {
  Value moved = old.Clone(arena);
  const Value now_terms = now["required"]["nodeSelectorTerms"], terms = moved["required"]["nodeSelectorTerms"];
  for (std::size_t i = 0; i < std::min(now_terms.size(), terms.size()); ++i) {
    for (const std::string_view list : {"matchExpressions", "matchFields"}) {
      const Value now_list = now_terms[i][list], was_list = terms[i][list];
      for (std::size_t j = 0; j < std::min(now_list.size(), was_list.size()); ++j) {
        Value requirement = was_list[j];
        const Move move{Text(requirement, "key"), Text(now_list[j], "key")};
        // Any other label may become the empty one: upstream looks its new name up in the table and finds "".
        const bool has_move = std::ranges::find(kLabelMoves, move.first, &Move::first) != std::end(kLabelMoves);
        if (has_move ? std::ranges::find(kLabelMoves, move) != std::end(kLabelMoves) : move.second.empty())
          requirement.Set(arena, "key", now_list[j]["key"]);
      }
    }
  }
  return moved;
}

}  // namespace

void DefaultPersistentVolume(base::Arena& arena, Value volume) {
  Value spec = volume.EnsureMap(arena, "spec");
  DefaultStorageSources(arena, spec);
  RoundResourceList(arena, spec["capacity"]);
  DefaultText(arena, volume.EnsureMap(arena, "status"), "phase", "Pending");
  DefaultText(arena, spec, "persistentVolumeReclaimPolicy", "Retain");
  Default(arena, spec, "volumeMode", "Filesystem");
}

void PreparePersistentVolumeForCreate(const Call& call, Value volume, Value) {
  Value status = Value::Map(call.arena, 2);
  status.Set(call.arena, "phase", "Pending");
  status.Set(call.arena, "lastPhaseTransitionTime", Now(call));
  volume.Set(call.arena, "status", status);
}

void PreparePersistentVolumeForStatusUpdate(const Call& call, Value volume, Value old) {
  Value status = volume.EnsureMap(call.arena, "status");
  const Value time = status["lastPhaseTransitionTime"], before = old["status"]["lastPhaseTransitionTime"];
  if (Text(status, "phase") == Text(old["status"], "phase")) {
    if (time.is_null()) CopyMember(call.arena, status, old["status"], "lastPhaseTransitionTime");
  } else if (time.is_null() || time == before) {
    status.Set(call.arena, "lastPhaseTransitionTime", Now(call));
  }
}

void ValidatePersistentVolumeSpec(Value spec, std::string_view name, bool allow_invalid_values, const FieldPath& path,
                                  FieldErrors& errors) {
  const FieldPath modes = path.Child("accessModes"), capacity_path = path.Child("capacity"),
                  policy = path.Child("persistentVolumeReclaimPolicy");
  if (spec["accessModes"].empty()) errors.push_back(Required(modes));
  CheckAccessModes(spec["accessModes"], modes, errors);
  const Value capacity = spec["capacity"];
  if (capacity.empty()) errors.push_back(Required(capacity_path));
  if (!capacity.Has("storage") || capacity.size() > 1) {
    validation::FieldError error = NotSupported(capacity_path, Value(""), kStorage);
    error.value = CoreHubTypes().JSON(capacity, "{}quantity");
    errors.push_back(std::move(error));
  }
  for (const object::Member& member : SortedMembers(capacity)) {
    CheckBasicResource(member.value, capacity_path.Key(member.key), errors);
    CheckPositiveQuantity(member.value, capacity_path.Key(member.key), errors);
  }
  if (!Text(spec, "persistentVolumeReclaimPolicy").empty())
    CheckOneOf(spec["persistentVolumeReclaimPolicy"], kReclaimPolicies, policy, errors);
  const Value affinity = spec["nodeAffinity"];
  if (!affinity.is_null()) {
    const FieldPath at = path.Child("nodeAffinity");
    if (IsSet(affinity, "required")) {
      ValidateNodeSelector(affinity["required"], allow_invalid_values, at.Child("required"), errors);
    } else {
      errors.push_back(Required(at.Child("required"), "must specify required node constraints"));
    }
  }
  const SourceContext context{.name = name, .persistent = true, .has_node_affinity = !affinity.is_null()};
  if (ValidateSources(PersistentVolumeSources(), context, spec, path, errors) == 0)
    errors.push_back(Required(path, "must specify a volume type"));
  if (IsSet(spec, "hostPath") && IsRoot(Text(spec["hostPath"], "path")) &&
      Text(spec, "persistentVolumeReclaimPolicy") == "Recycle") {
    errors.push_back(Forbidden(policy, "may not be 'recycle' for a hostPath mount of '/'"));
  }
  if (!Text(spec, "storageClassName").empty())
    CheckDNSSubdomain(Text(spec, "storageClassName"), path.Child("storageClassName"), errors);
  if (IsSet(spec, "volumeMode")) CheckOneOf(spec["volumeMode"], kVolumeModes, path.Child("volumeMode"), errors);
  if (IsSet(spec, "volumeAttributesClassName")) {
    const FieldPath at = path.Child("volumeAttributesClassName");
    if (Text(spec, "volumeAttributesClassName").empty()) {
      errors.push_back(Required(at, "an empty string is disallowed"));
    } else {
      CheckDNSSubdomain(Text(spec, "volumeAttributesClassName"), at, errors);
    }
    if (!IsSet(spec, "csi"))
      errors.push_back(Required(path.Child("csi"), "has to be specified when using volumeAttributesClassName"));
  }
}

void ValidatePersistentVolume(const Call&, Value volume, Value old, FieldErrors& errors) {
  ValidatePersistentVolumeSpec(volume["spec"], Text(volume["metadata"], "name"), AllowsInvalidValues(old),
                               FieldPath("spec"), errors);
  CheckMountOptions(volume, errors);
}

void ValidatePersistentVolumeUpdate(const Call& call, Value volume, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata"), path("spec");
  const bool allow_invalid = AllowsInvalidValues(old);
  const Value now = volume["spec"], before = old["spec"];
  const auto check_all = [&] {
    validation::ValidateObjectMeta(volume["metadata"], false, validation::NameIsDNSSubdomain, metadata, errors);
    ValidatePersistentVolumeSpec(now, Text(volume["metadata"], "name"), allow_invalid, path, errors);
  };
  check_all();
  CheckMountOptions(volume, errors);
  check_all();  // the update rules begin with the same once more, as upstream
  Value source = SourceOf(call.arena, now);
  const Value old_source = SourceOf(call.arena, before);
  if (IsSet(old_source, "csi") && !IsSet(old_source["csi"], "controllerExpandSecretRef"))
    source["csi"].Erase("controllerExpandSecretRef");
  if (!SemanticEqual(source, old_source, schema::types::core_v1::kPersistentVolumeSource)) {
    errors.push_back(Forbidden(path.Child("persistentvolumesource"),
                               "spec.persistentvolumesource is immutable after creation\n" +
                                   CoreHubTypes().Diff(old_source, source, "PersistentVolumeSource")));
  }
  validation::ValidateImmutableField(now["volumeMode"], before["volumeMode"], FieldPath("volumeMode"), errors);
  if (IsSet(before, "nodeAffinity") && !FeatureEnabled(call, "MutablePVNodeAffinity")) {
    const Value affinity = now["nodeAffinity"];
    if (affinity.is_null() || !SemanticEqual(affinity, WithMovedLabels(call.arena, affinity, before["nodeAffinity"]),
                                             schema::types::core_v1::kVolumeNodeAffinity)) {
      errors.push_back(InvalidHub(FieldPath("nodeAffinity"), CoreHubTypes(), affinity, "*VolumeNodeAffinity",
                                  "field is immutable, except for updating from beta label to GA"));
    }
  }
  if (IsSet(before, "volumeAttributesClassName") && !IsSet(now, "volumeAttributesClassName")) {
    errors.push_back(
        Forbidden(path.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden"));
  }
}

void ValidatePersistentVolumeStatusUpdate(const Call&, Value volume, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(volume["metadata"], old["metadata"], FieldPath("metadata"), errors);
  if (Text(volume["metadata"], "resourceVersion").empty()) errors.push_back(Required(FieldPath("resourceVersion")));
}

void WarnPersistentVolume(const Call& call, Value volume, Value) {
  const Value spec = volume["spec"], annotations = volume["metadata"]["annotations"];
  const FieldPath metadata("metadata"), path("spec");
  const FieldPath annotations_path = metadata.Child("annotations");
  if (annotations.Has(kBetaStorageClass)) {
    Warning(call, annotations_path.Key(kBetaStorageClass),
            "deprecated since v1.8; use \"storageClassName\" attribute instead");
  }
  if (annotations.Has(kMountOptions)) {
    Warning(call, annotations_path.Key(kMountOptions),
            "deprecated since v1.31; use \"mountOptions\" attribute instead");
  }
  if (Text(spec, "persistentVolumeReclaimPolicy") == "Recycle") {
    Warning(
        call, path.Child("persistentVolumeReclaimPolicy"),
        "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.");
  }
  const FieldPath affinity = path.Child("nodeAffinity");
  const FieldPath required = affinity.Child("required");
  const FieldPath terms = required.Child("nodeSelectorTerms");
  std::int64_t index = 0;
  for (const Value term : spec["nodeAffinity"]["required"]["nodeSelectorTerms"].items()) {
    WarnNodeSelectorTerm(call, term, false, terms.Index(index++));
  }
  struct {
    std::string_view key, shown, message;
  } constexpr kDeprecated[] = {
      {"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
      {"photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
      {"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
      {"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
      {"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
      {"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"}};
  for (const auto& [key, shown, message] : kDeprecated) {
    if (IsSet(spec, key)) Warning(call, path.Child(shown), message);
  }
}

void PersistentVolumeRow(base::Arena& arena, const base::Clock& clock, Value volume, Value cells) {
  const Value spec = volume["spec"], status = volume["status"];
  std::string claim;
  if (const Value reference = spec["claimRef"]; !reference.is_null()) {
    claim.append(Text(reference, "namespace")).append("/").append(Text(reference, "name"));
  }
  const Value* beta = volume["metadata"]["annotations"].Find(kBetaStorageClass);
  Row(arena, cells)
      .Name(volume)
      .Add(QuantityText(spec["capacity"]["storage"]))
      .Add(AccessModesText(spec["accessModes"]))
      .Add(Text(spec, "persistentVolumeReclaimPolicy"))
      .Add(IsSet(volume["metadata"], "deletionTimestamp") ? "Terminating" : Text(status, "phase"))
      .Add(claim)
      .Add(beta != nullptr ? beta->as_string() : Text(spec, "storageClassName"))
      .Add(IsSet(spec, "volumeAttributesClassName") ? Text(spec, "volumeAttributesClassName") : "<unset>")
      .Add(Text(status, "reason"))
      .Age(clock, volume)
      .Add(IsSet(spec, "volumeMode") ? Text(spec, "volumeMode") : "<unset>");
}

}  // namespace keelson::registry::core
