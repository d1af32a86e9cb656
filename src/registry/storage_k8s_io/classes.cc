// StorageClass and VolumeAttributesClass, and the group's table.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "registry/core/node_labels.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/storage_k8s_io/strategies.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Forbidden;
using validation::Invalid;
using validation::Required;
using validation::TooLong;

constexpr std::int64_t kParametersMax = 512;
constexpr std::int64_t kParametersBytesMax = 256 * 1024;

void SetStorageClassDefaults(base::Arena& arena, Value object) {
  Default(arena, object, "reclaimPolicy", "Delete");
  Default(arena, object, "volumeBindingMode", "Immediate");
}

void ValidateProvisioner(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
  } else {
    CheckQualifiedName(base::ToLower(text), path, errors);
  }
}

void ValidateParameters(const Value& parameters, bool allow_empty, FieldErrors& errors) {
  const FieldPath path("parameters");
  if (static_cast<std::int64_t>(parameters.size()) > kParametersMax) {
    errors.push_back(TooLong(path, kParametersMax));
    return;
  }
  std::int64_t bytes = 0;
  for (const auto& member : parameters.members()) {
    if (member.key.empty()) errors.push_back(Invalid(path, member.key, "field can not be empty."));
    bytes += static_cast<std::int64_t>(member.key.size() + member.value.as_string().size());
  }
  if (bytes > kParametersBytesMax) errors.push_back(TooLong(path, kParametersBytesMax));
  if (!allow_empty && parameters.empty()) errors.push_back(Required(path, "must contain at least one key/value pair"));
}

using TopologyTerm = std::map<std::string_view, std::set<std::string_view>>;

std::set<std::string_view> ValidateTopologyRequirement(const Value& requirement, const FieldPath& path,
                                                       FieldErrors& errors) {
  std::set<std::string_view> values;
  const FieldPath values_path = path.Child("values");
  if (requirement["values"].empty()) errors.push_back(Required(values_path));
  std::int64_t index = 0;
  for (const Value& value : requirement["values"].items()) {
    const FieldPath at = values_path.Index(index++);
    if (!values.insert(value.as_string()).second) errors.push_back(Duplicate(at, value));
  }
  validation::ValidateLabelName(requirement["key"].as_string(), path.Child("key"), errors);
  return values;
}

void ValidateAllowedTopologies(const Value& topologies, FieldErrors& errors) {
  const FieldPath path("allowedTopologies");
  std::map<TopologyTerm, std::size_t> terms;  // how often each was there
  std::int64_t index = 0;
  for (const Value& item : topologies.items()) {
    if (errors.full()) return;
    const FieldPath at = path.Index(index++);
    const FieldPath expressions_path = at.Child("matchLabelExpressions");
    TopologyTerm term;
    std::int64_t i = 0;
    for (const Value& requirement : item["matchLabelExpressions"].items()) {
      const FieldPath requirement_path = expressions_path.Index(i++);
      auto values = ValidateTopologyRequirement(requirement, requirement_path, errors);
      const std::string_view key = requirement["key"].as_string();
      if (term.contains(key)) errors.push_back(Duplicate(requirement_path.Child("key"), Value(key)));
      term[key] = std::move(values);
    }
    // Upstream compares with a list that it first fills with one empty term for each given one, so an empty term
    // repeats those too.
    const std::size_t empty_ones = term.empty() ? topologies.size() : 0;
    const std::size_t repeats = terms[std::move(term)]++ + empty_ones;
    for (std::size_t n = 0; n < repeats && !errors.full(); ++n) errors.push_back(Duplicate(expressions_path, ""));
  }
}

void ValidateStorageClassBody(const Value& object, FieldErrors& errors) {
  ValidateProvisioner(object["provisioner"].as_string(), FieldPath("provisioner"), errors);
  ValidateParameters(object["parameters"], true, errors);
  if (const std::string_view policy = object["reclaimPolicy"].as_string(); !policy.empty()) {
    CheckOneOf(policy, {"Delete", "Retain"}, FieldPath("reclaimPolicy"), errors);
  }
  if (const Value mode = object["volumeBindingMode"]; mode.is_null()) {
    errors.push_back(Required(FieldPath("volumeBindingMode")));
  } else {
    CheckOneOf(mode.as_string(), {"Immediate", "WaitForFirstConsumer"}, FieldPath("volumeBindingMode"), errors);
  }
  ValidateAllowedTopologies(object["allowedTopologies"], errors);
}

void ValidateStorageClass(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateStorageClassBody(object, errors);
}

void ValidateStorageClassUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors);
  ValidateStorageClassBody(object, errors);
  ValidateMetaUpdate(object, old, errors);
  Immutable(object["parameters"], old["parameters"], FieldPath("parameters"), errors);
  ImmutableText(object["provisioner"], old["provisioner"], FieldPath("provisioner"), errors);
  Immutable(object["reclaimPolicy"], old["reclaimPolicy"], FieldPath("reclaimPolicy"), errors);
  Immutable(object["volumeBindingMode"], old["volumeBindingMode"], FieldPath("volumeBindingMode"), errors);
}

void StorageClassWarnings(const Call& call, Value object, Value) {
  const FieldPath path("allowedTopologies");
  std::int64_t i = 0;
  for (const Value& term : object["allowedTopologies"].items()) {
    const FieldPath term_path = path.Index(i++);
    const FieldPath expressions = term_path.Child("matchLabelExpressions");
    std::int64_t j = 0;
    for (const Value& requirement : term["matchLabelExpressions"].items()) {
      const FieldPath at = expressions.Index(j++);
      if (const std::string_view message = core::DeprecatedNodeLabel(requirement["key"].as_string());
          !message.empty()) {
        call.warnings.push_back(at.Child("key").ToString() + ": " + std::string(message));
      }
    }
  }
}

void StorageClassRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::string name(object["metadata"]["name"].as_string());
  const Value annotations = object["metadata"]["annotations"];
  if (annotations["storageclass.kubernetes.io/is-default-class"].as_string() == "true" ||
      annotations["storageclass.beta.kubernetes.io/is-default-class"].as_string() == "true") {
    name += " (default)";
  }
  cells.Append(arena, Value::String(arena, name));
  cells.Append(arena, object["provisioner"].as_string());
  cells.Append(arena, object["reclaimPolicy"].is_null() ? Value("Delete") : object["reclaimPolicy"]);
  cells.Append(arena, object["volumeBindingMode"].is_null() ? Value("Immediate") : object["volumeBindingMode"]);
  cells.Append(arena, object["allowVolumeExpansion"].as_bool());
  cells.Append(arena, Age(arena, clock, object));
}

void ValidateVolumeAttributesClassBody(const Value& object, FieldErrors& errors) {
  ValidateProvisioner(object["driverName"].as_string(), FieldPath("driverName"), errors);
  ValidateParameters(object["parameters"], false, errors);
}

void ValidateVolumeAttributesClass(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateVolumeAttributesClassBody(object, errors);
}

void ValidateVolumeAttributesClassUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  if (object["driverName"].as_string() != old["driverName"].as_string()) {
    errors.push_back(Forbidden(FieldPath("driverName"), "updates to driverName are forbidden."));
  }
  if (!SemanticEqual(object["parameters"], old["parameters"])) {
    errors.push_back(Forbidden(FieldPath("parameters"), "updates to parameters are forbidden."));
  }
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors);
  ValidateVolumeAttributesClassBody(object, errors);
}

void VolumeAttributesClassRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["driverName"].as_string());
  cells.Append(arena, Age(arena, clock, object));
}

}  // namespace

constexpr Strategy kStorageClassStrategy = {
    .group = "storage.k8s.io",
    .kind = "StorageClass",
    .return_deleted_object = true,
    .defaults = SetStorageClassDefaults,
    .validate = ValidateStorageClass,
    .warnings_on_create = StorageClassWarnings,
    .update = {.validate_update = ValidateStorageClassUpdate, .warnings_on_update = StorageClassWarnings},
    .table_row = StorageClassRow,
};

constexpr Strategy kVolumeAttributesClassStrategy = {
    .group = "storage.k8s.io",
    .kind = "VolumeAttributesClass",
    .return_deleted_object = true,
    .validate = ValidateVolumeAttributesClass,
    .update = {.validate_update = ValidateVolumeAttributesClassUpdate},
    .table_row = VolumeAttributesClassRow,
};

std::span<const Strategy> StorageStrategies() {
  static const Strategy kStrategies[] = {kStorageClassStrategy,     kVolumeAttributesClassStrategy,
                                         kVolumeAttachmentStrategy, kCSIDriverStrategy,
                                         kCSINodeStrategy,          kCSIStorageCapacityStrategy};
  return kStrategies;
}

}  // namespace keelson::registry
