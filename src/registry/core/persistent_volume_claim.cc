#include "registry/core/persistent_volume_claim.h"

#include <algorithm>

#include "base/strings.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/pod_spec.h"
#include "registry/core/resources.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kAccessModes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"};
constexpr std::string_view kStorage[] = {"storage"};
constexpr std::string_view kResizeStatuses[] = {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                                                "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"};

void CheckDataSource(Value source, const ClaimOptions& options, const FieldPath& path, FieldErrors& errors) {
  if (source.is_null()) return;
  RequireTexts(source, {"name", "kind"}, path, errors);
  const std::string_view group = Text(source, "apiGroup"), kind = Text(source, "kind");
  if (group.empty() && kind != "PersistentVolumeClaim") {
    errors.push_back(Invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
  }
  if (!group.empty() && !options.allow_invalid_api_group) CheckDNSSubdomain(group, path.Child("apiGroup"), errors);
  if (const std::string_view name = Text(source, "namespace"); !name.empty())
    CheckDNSLabel(name, path.Child("namespace"), errors);
}

bool SameSource(Value source, Value reference) {
  return source["apiGroup"] == reference["apiGroup"] && Text(source, "kind") == Text(reference, "kind") &&
         Text(source, "name") == Text(reference, "name");
}

// Upstream prints the path object as the value: field.Path has no exported fields.
void InvalidDataSource(const FieldPath& path, std::string_view detail, FieldErrors& errors) {
  errors.push_back({meta::FieldError::Type::kInvalid, path.ToString(), "{}", std::string(detail)});
}

ClaimOptions OptionsFor(Value old) {
  ClaimOptions options;
  if (old.is_null()) return options;
  const Value spec = old["spec"];
  options.allow_invalid_api_group = IsSet(spec["dataSource"], "apiGroup") || IsSet(spec["dataSourceRef"], "apiGroup");
  FieldErrors problems;
  validation::ValidateLabelSelector(spec["selector"], FieldPath("selector"), problems);
  options.allow_invalid_label_value_in_selector = !problems.empty();
  return options;
}

bool IsPVCOrSnapshot(Value source) {
  const std::string_view kind = Text(source, "kind"), group = Text(source, "apiGroup");
  return (kind == "PersistentVolumeClaim" && group.empty()) ||
         (kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io");
}

// dataSource and dataSourceRef fill each other.
void NormalizeDataSources(base::Arena& arena, Value spec) {
  const auto copy = [&](Value from) {
    Value to = Value::Map(arena, 3);
    for (const std::string_view key : {"apiGroup", "kind", "name"}) CopyMember(arena, to, from, key);
    return to;
  };
  const Value source = spec["dataSource"], reference = spec["dataSourceRef"];
  if (!source.is_null() && reference.is_null()) {
    spec.Set(arena, "dataSourceRef", copy(source));
  } else if (source.is_null() && !reference.is_null() && Text(reference, "namespace").empty()) {
    spec.Set(arena, "dataSource", copy(reference));
  }
}

void PrepareDataSources(const Call& call, Value spec, Value old) {
  const bool reference_used = IsSet(old, "dataSourceRef"), used = reference_used || IsSet(old, "dataSource");
  if (!FeatureEnabled(call, "CrossNamespaceVolumeDataSource") && !Text(spec["dataSourceRef"], "namespace").empty() &&
      !reference_used) {
    spec.Erase("dataSourceRef");
  }
  if (!used && !IsSet(spec, "dataSourceRef") && !IsPVCOrSnapshot(spec["dataSource"])) spec.Erase("dataSource");
  NormalizeDataSources(call.arena, spec);
}

void CheckStatusKey(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  const Messages messages = validation::IsQualifiedName(name);
  AddInvalid(path, name, messages, errors);
  if (messages.empty() && IsNativeResource(name) && name != "storage")
    errors.push_back(NotSupported(path, Value(name), kStorage));
}

}  // namespace

void CheckAccessModes(Value modes, const FieldPath& path, FieldErrors& errors) {
  bool exclusive = false, shared = false;
  for (const Value mode : modes.items()) {
    const bool known = CheckOneOf(mode, kAccessModes, path, errors);
    if (mode.as_string() == "ReadWriteOncePod") {
      exclusive = true;
    } else if (known) {
      shared = true;
    }
  }
  if (exclusive && shared) errors.push_back(Forbidden(path, "may not use ReadWriteOncePod with other access modes"));
}

std::string AccessModesText(Value modes) {
  struct {
    std::string_view mode, shown;
  } constexpr kShown[] = {
      {"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}};
  std::string text;
  for (const auto& [mode, shown] : kShown) {
    const auto items = modes.items();
    if (std::ranges::none_of(items, [mode](const Value& item) { return item.as_string() == mode; })) continue;
    text.append(text.empty() ? "" : ",").append(shown);
  }
  return text;
}

void ValidateClaimSpec(Value spec, const ClaimOptions& options, const FieldPath& path, FieldErrors& errors) {
  const FieldPath modes = path.Child("accessModes"), resources = path.Child("resources");
  if (spec["accessModes"].empty()) errors.push_back(Required(modes, "at least 1 access mode is required"));
  if (IsSet(spec, "selector")) {
    validation::ValidateLabelSelector(spec["selector"], path.Child("selector"), errors,
                                      options.allow_invalid_label_value_in_selector);
  }
  CheckAccessModes(spec["accessModes"], modes, errors);
  const FieldPath storage = resources.Key("storage");
  if (const Value* size = spec["resources"]["requests"].Find("storage"); size == nullptr) {
    errors.push_back(Required(storage));
  } else {
    CheckPositiveQuantity(*size, storage, errors);
  }
  if (!Text(spec, "storageClassName").empty())
    CheckDNSSubdomain(Text(spec, "storageClassName"), path.Child("storageClassName"), errors);
  if (IsSet(spec, "volumeMode")) CheckOneOf(spec["volumeMode"], kVolumeModes, path.Child("volumeMode"), errors);
  const Value source = spec["dataSource"], reference = spec["dataSourceRef"];
  CheckDataSource(source, options, path.Child("dataSource"), errors);
  CheckDataSource(reference, options, path.Child("dataSourceRef"), errors);
  if (!Text(reference, "namespace").empty()) {
    if (!source.is_null())
      InvalidDataSource(path, "may not be specified when dataSourceRef.namespace is specified", errors);
  } else if (!source.is_null() && !reference.is_null() && !SameSource(source, reference)) {
    InvalidDataSource(path, "must match dataSourceRef", errors);
  }
  if (!Text(spec, "volumeAttributesClassName").empty()) {
    CheckDNSSubdomain(Text(spec, "volumeAttributesClassName"), path.Child("volumeAttributesClassName"), errors);
  }
}

void ValidateClaimTemplate(Value claim_template, const FieldPath& path, FieldErrors& errors) {
  const Value metadata = claim_template["metadata"];
  const FieldPath at = path.Child("metadata");
  validation::ValidateAnnotations(metadata["annotations"], at.Child("annotations"), errors);
  validation::ValidateLabels(metadata["labels"], at.Child("labels"), errors);
  for (const std::string_view key :
       {"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields"}) {
    const Value value = metadata[key];
    const bool zero = value.is_null() || (value.is_string() && value.as_string().empty()) ||
                      (key == "generation" && value.as_int() == 0);
    if (!zero)
      errors.push_back(
          Forbidden(at.Child(key == "uid" ? "uID" : key), "cannot be set"));  // Go's UID with a small first letter
  }
  ValidateClaimSpec(claim_template["spec"], {}, path.Child("spec"), errors);
}

void WarnClaimSpec(const Call& call, Value spec, const FieldPath& path) {
  const FieldPath resources = path.Child("resources");
  for (const std::string_view list : {"requests", "limits"}) {
    const Value size = spec["resources"][list]["storage"];
    if (QuantityOf(size).MilliValue() % 1000 == 0) continue;
    const FieldPath at = resources.Child(list);
    Warning(call, at.Key("storage"),
            "fractional byte value " + base::GoQuote(QuantityText(size)) + " is invalid, must be an integer");
  }
}

void DefaultClaim(base::Arena& arena, Value claim) {
  DefaultClaimSpec(arena, claim.EnsureMap(arena, "spec"));
  Value status = claim.EnsureMap(arena, "status");
  DefaultText(arena, status, "phase", "Pending");
  for (const std::string_view list : {"capacity", "allocatedResources"}) RoundResourceList(arena, status[list]);
}

void PrepareClaimForCreate(const Call& call, Value claim, Value) { PrepareDataSources(call, claim["spec"], {}); }

void PrepareClaimForUpdate(const Call& call, Value claim, Value old) {
  PrepareDataSources(call, claim["spec"], old["spec"]);
}

void ValidateClaim(const Call&, Value claim, Value old, FieldErrors& errors) {
  ValidateClaimSpec(claim["spec"], OptionsFor(old), FieldPath("spec"), errors);
}

void ValidateClaimUpdate(const Call& call, Value claim, Value old, FieldErrors& errors) {
  const FieldPath metadata("metadata"), path("spec");
  validation::ValidateObjectMetaUpdate(claim["metadata"], old["metadata"], metadata, errors);
  validation::ValidateObjectMeta(claim["metadata"], true, validation::NameIsDNSSubdomain, metadata, errors);
  ValidateClaim(call, claim, old, errors);

  base::Arena& arena = call.arena;
  Value now = claim["spec"].Clone(arena), was = old["spec"].Clone(arena);
  if (Text(was, "volumeName").empty()) CopyMember(arena, was, now, "volumeName");
  // The class may move from the annotation of old into the field, and may be set where there was none.
  const Value old_annotations = old["metadata"]["annotations"], new_annotations = claim["metadata"]["annotations"];
  const Value* old_class = old_annotations.Find(kBetaStorageClass);
  const Value* new_class = new_annotations.Find(kBetaStorageClass);
  const Value name = now["storageClassName"];
  const bool had_name = IsSet(was, "storageClassName");
  if (old_class != nullptr && !had_name && !name.is_null() && name.as_string() == old_class->as_string() &&
      (new_class == nullptr || new_class->as_string() == old_class->as_string())) {
    now.Erase("storageClassName");
  } else {
    const std::string_view now_text = new_class == nullptr ? "" : new_class->as_string();
    if (now_text != (old_class == nullptr ? "" : old_class->as_string())) {
      errors.push_back(Invalid(metadata.Child("annotations").Child(kBetaStorageClass), now_text, "field is immutable"));
    }
    if (!name.is_null() && !had_name && (old_class == nullptr || name.as_string() == old_class->as_string()))
      now.Erase("storageClassName");
  }
  if (Text(claim["status"], "phase") == "Bound") {
    if (IsSet(now["resources"], "requests"))
      CopyMember(arena, now["resources"]["requests"], was["resources"]["requests"], "storage");
    CopyMember(arena, now, was, "volumeAttributesClassName");
  }
  if (!SemanticEqual(now, was, schema::types::core_v1::kPersistentVolumeClaimSpec)) {
    errors.push_back(Forbidden(
        path,
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n" +
            CoreHubTypes().Diff(was, now, "PersistentVolumeClaimSpec")));
  }
  const Value size = claim["spec"]["resources"]["requests"]["storage"],
              old_size = old["spec"]["resources"]["requests"]["storage"];
  if (CompareQuantities(size, old_size) < 0 && CompareQuantities(size, old["status"]["capacity"]["storage"]) <= 0) {
    const FieldPath resources = path.Child("resources");
    errors.push_back(
        Forbidden(resources.Child("requests").Child("storage"), "field can not be less than status.capacity"));
  }
  validation::ValidateImmutableField(claim["spec"]["volumeMode"], old["spec"]["volumeMode"], FieldPath("volumeMode"),
                                     errors);
  const Value attributes = claim["spec"]["volumeAttributesClassName"],
              old_attributes = old["spec"]["volumeAttributesClassName"];
  if (!(attributes == old_attributes) && IsSet(old["status"], "currentVolumeAttributesClassName")) {
    const FieldPath at = path.Child("volumeAttributesClassName");
    if (attributes.is_null()) {
      errors.push_back(
          Forbidden(at, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"));
    } else if (attributes.as_string().empty()) {
      errors.push_back(
          Forbidden(at, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"));
    }
  }
}

void ValidateClaimStatusUpdate(const Call&, Value claim, Value old, FieldErrors& errors) {
  const FieldPath status("status");
  const FieldPath statuses = status.Child("allocatedResourceStatuses"), allocated = status.Child("allocatedResources"),
                  capacity = status.Child("capacity");
  validation::ValidateObjectMetaUpdate(claim["metadata"], old["metadata"], FieldPath("metadata"), errors);
  if (Text(claim["metadata"], "resourceVersion").empty()) errors.push_back(Required(FieldPath("resourceVersion")));
  if (claim["spec"]["accessModes"].empty()) errors.push_back(Required(FieldPath("Spec").Child("accessModes")));
  for (const object::Member& member : SortedMembers(claim["status"]["capacity"])) {
    CheckBasicResource(member.value, capacity.Key(member.key), errors);
  }
  for (const object::Member& member : SortedMembers(claim["status"]["allocatedResourceStatuses"])) {
    CheckStatusKey(member.key, statuses, errors);
    if (!Contains(kResizeStatuses, member.value.as_string())) {
      std::vector<std::string_view> sorted(std::begin(kResizeStatuses), std::end(kResizeStatuses));
      std::ranges::sort(sorted);
      errors.push_back(NotSupported(statuses, Value(member.key), sorted));  // the key is what upstream shows
    }
  }
  for (const object::Member& member : SortedMembers(claim["status"]["allocatedResources"])) {
    const std::size_t before = errors.size();
    CheckStatusKey(member.key, allocated, errors);
    if (errors.size() != before) continue;
    CheckBasicResource(member.value, allocated.Key(member.key), errors);
    if (errors.size() == before) CheckResourceQuantity("storage", member.value, allocated.Key(member.key), errors);
  }
}

void WarnClaim(const Call& call, Value claim, Value) {
  if (claim["metadata"]["annotations"].Has(kBetaStorageClass)) {
    Warning(call, FieldPath("metadata").Child("annotations").Key(kBetaStorageClass),
            "deprecated since v1.8; use \"storageClassName\" attribute instead");
  }
  WarnClaimSpec(call, claim["spec"], FieldPath("spec"));
}

void ClaimRow(base::Arena& arena, const base::Clock& clock, Value claim, Value cells) {
  const Value spec = claim["spec"], status = claim["status"];
  std::string capacity, modes;
  const std::string_view volume = Text(spec, "volumeName");
  if (!volume.empty()) {
    modes = AccessModesText(status["accessModes"]);
    capacity = QuantityText(status["capacity"]["storage"]);
  }
  const Value* beta = claim["metadata"]["annotations"].Find(kBetaStorageClass);
  Row(arena, cells)
      .Name(claim)
      .Add(IsSet(claim["metadata"], "deletionTimestamp") ? "Terminating" : Text(status, "phase"))
      .Add(volume)
      .Add(capacity)
      .Add(modes)
      .Add(beta != nullptr ? beta->as_string() : Text(spec, "storageClassName"))
      .Add(IsSet(spec, "volumeAttributesClassName") ? Text(spec, "volumeAttributesClassName") : "<unset>")
      .Age(clock, claim)
      .Add(IsSet(spec, "volumeMode") ? Text(spec, "volumeMode") : "<unset>");
}

}  // namespace keelson::registry::core
