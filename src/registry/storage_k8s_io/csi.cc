// CSIDriver, CSINode, CSIStorageCapacity.
#include <set>
#include <string>
#include <string_view>

#include "registry/core/hub.h"
#include "registry/core/node_labels.h"
#include "registry/core/resources.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/storage_k8s_io/strategies.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Invalid;
using validation::Required;

// ---- CSIDriver

constexpr std::int64_t kTokenSecondsMin = 600;
constexpr std::int64_t kTokenSecondsMax = std::int64_t{1} << 32;
constexpr std::int64_t kUpdatePeriodSecondsMin = 10;

void SetDriverDefaults(base::Arena& arena, Value object) {
  Value spec = object["spec"];
  if (!spec.is_map()) spec = object.EnsureMap(arena, "spec");
  Default(arena, spec, "attachRequired", true);
  Default(arena, spec, "podInfoOnMount", false);
  Default(arena, spec, "storageCapacity", false);
  Default(arena, spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
  if (spec["volumeLifecycleModes"].empty()) {
    Value modes = Value::List(arena, 1);
    modes.Append(arena, "Persistent");
    spec.Set(arena, "volumeLifecycleModes", modes);
  }
  Default(arena, spec, "requiresRepublish", false);
  Default(arena, spec, "seLinuxMount", false);
}

bool VolumeLimitScaling(const Call& call) {
  return call.feature_enabled != nullptr && call.feature_enabled("VolumeLimitScaling");
}

void PrepareDriver(const Call& call, Value object, Value old) {
  Value spec = object["spec"];
  if (spec.is_map() && old["spec"]["preventPodSchedulingIfMissing"].is_null() && !VolumeLimitScaling(call)) {
    spec.Erase("preventPodSchedulingIfMissing");
  }
  // Starts at what the client sent (nothing, as a rule) and counts changes from there.
  if (!old.is_null() && !SemanticEqual(spec, old["spec"])) {
    object.EnsureMap(call.arena, "metadata").Set(call.arena, "generation", old["metadata"]["generation"].as_int() + 1);
  }
}

void ValidateTokenRequests(const Value& requests, const FieldPath& path, FieldErrors& errors) {
  std::set<std::string_view> audiences;
  std::int64_t index = 0;
  for (const Value& request : requests.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view audience = request["audience"].as_string();
    if (!audiences.insert(audience).second) {
      errors.push_back(Duplicate(at.Child("audience"), Value(audience)));
      continue;
    }
    const Value seconds = request["expirationSeconds"];
    if (seconds.is_null()) continue;
    if (seconds.as_int() < kTokenSecondsMin) {
      errors.push_back(
          Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"));
    }
    if (seconds.as_int() > kTokenSecondsMax) {
      errors.push_back(
          Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"));
    }
  }
}

void ValidateDriverSpec(const Call& call, const Value& spec, FieldErrors& errors) {
  const FieldPath path("spec");
  if (spec["attachRequired"].is_null())
    errors.push_back(Required(path.Child("attachedRequired")));  // Upstream's spelling.
  if (spec["podInfoOnMount"].is_null()) errors.push_back(Required(path.Child("podInfoOnMount")));
  if (spec["storageCapacity"].is_null()) errors.push_back(Required(path.Child("storageCapacity")));
  if (const Value policy = spec["fsGroupPolicy"]; !policy.is_null()) {
    CheckOneOf(policy.as_string(), {"File", "None", "ReadWriteOnceWithFSType"}, path.Child("fsGroupPolicy"), errors);
  }
  ValidateTokenRequests(spec["tokenRequests"], path.Child("tokenRequests"), errors);
  for (const Value& mode : spec["volumeLifecycleModes"].items()) {
    CheckOneOf(mode.as_string(), {"Persistent", "Ephemeral"}, path.Child("volumeLifecycleModes"), errors);
  }
  if (spec["seLinuxMount"].is_null()) errors.push_back(Required(path.Child("seLinuxMount")));
  if (const Value period = spec["nodeAllocatableUpdatePeriodSeconds"];
      !period.is_null() && period.as_int() < kUpdatePeriodSecondsMin) {
    errors.push_back(Invalid(path.Child("nodeAllocatableUpdatePeriodSeconds"), period,
                             "must be greater than or equal to 10 seconds"));
  }
  if (const Value in_secrets = spec["serviceAccountTokenInSecrets"];
      !in_secrets.is_null() && spec["tokenRequests"].empty()) {
    errors.push_back(Invalid(path.Child("serviceAccountTokenInSecrets"), in_secrets,
                             "serviceAccountTokenInSecrets is set but no tokenRequests are specified"));
  }
  if (spec["preventPodSchedulingIfMissing"].is_null() && VolumeLimitScaling(call)) {
    errors.push_back(Required(path.Child("preventPodSchedulingIfMissing")));
  }
}

void ValidateDriver(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateDriverSpec(call, object["spec"], errors);
}

void ValidateDriverUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  ValidateDriverSpec(call, object["spec"], errors);
  const FieldPath path("spec");
  const Value now = object["spec"]["attachRequired"];
  const Value before = old["spec"]["attachRequired"];
  if (now.is_null() != before.is_null() || now.as_bool() != before.as_bool()) {
    errors.push_back(Invalid(path.Child("attachedRequired"), now, "field is immutable"));
  }
  Immutable(object["spec"]["volumeLifecycleModes"], old["spec"]["volumeLifecycleModes"],
            path.Child("volumeLifecycleModes"), errors);
}

void DriverWarnings(const Call& call, Value object, Value old) {
  const Value spec = object["spec"];
  if (!old.is_null() && SemanticEqual(spec["tokenRequests"], old["spec"]["tokenRequests"])) return;
  if (!spec["tokenRequests"].empty() && spec["serviceAccountTokenInSecrets"].is_null()) {
    call.warnings.push_back(
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
        "logging of tokens in "
        "volume attributes");
  }
}

std::string JoinTexts(const Value& list, std::string_view member) {
  std::string text;
  bool first = true;
  for (const Value& item : list.items()) {
    if (!first) text += ',';
    first = false;
    text += member.empty() ? item.as_string() : item[member].as_string();
  }
  return text;
}

void DriverRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  const std::string modes = JoinTexts(spec["volumeLifecycleModes"], {});
  cells.Append(arena, NameCell(object));
  cells.Append(arena, spec["attachRequired"].as_bool(true));
  cells.Append(arena, spec["podInfoOnMount"].as_bool());
  cells.Append(arena, spec["storageCapacity"].as_bool());
  cells.Append(arena, spec["tokenRequests"].empty()
                          ? Value("<unset>")
                          : Value::String(arena, JoinTexts(spec["tokenRequests"], "audience")));
  cells.Append(arena, spec["requiresRepublish"].as_bool());
  cells.Append(arena, modes.empty() ? Value("<none>") : Value::String(arena, modes));
  cells.Append(arena, Age(arena, clock, object));
}

// ---- CSINode

constexpr std::size_t kNodeIDBytesMax = 256;
constexpr GoField kDriver[] = {
    {"name", "Name"},
    {"nodeID", "NodeID"},
    {"topologyKeys", "TopologyKeys", GoField::Zero::kNull},
    // Left out of the comparison, so always nil in the text.
    {"", "Allocatable", GoField::Zero::kNull},
};

void ValidateNodeDriver(const Value& driver, std::set<std::string_view>& names, const FieldPath& path,
                        FieldErrors& errors) {
  const std::string_view name = driver["name"].as_string();
  ValidateCSIDriverName(name, path.Child("name"), errors);
  const std::string_view id = driver["nodeID"].as_string();
  if (id.empty()) errors.push_back(Required(path.Child("nodeID")));
  if (id.size() > kNodeIDBytesMax)
    errors.push_back(Invalid(path.Child("nodeID"), id, "must be 256 characters or less"));
  if (const Value count = driver["allocatable"]["count"]; !count.is_null()) {
    const FieldPath allocatable = path.Child("allocatable");
    validation::ValidateNonnegative(count.as_int(), allocatable.Child("count"), errors);
  }
  if (!names.insert(name).second) errors.push_back(Duplicate(path.Child("name"), Value(name)));
  std::set<std::string_view> keys;
  for (const Value& key : driver["topologyKeys"].items()) {
    if (key.as_string().empty()) errors.push_back(Required(path));
    if (!keys.insert(key.as_string()).second) errors.push_back(Duplicate(path, key));
    CheckQualifiedName(key.as_string(), path, errors);
  }
}

void ValidateNodeSpec(const Value& object, FieldErrors& errors) {
  const FieldPath spec("spec");
  const FieldPath path = spec.Child("drivers");
  std::set<std::string_view> names;
  std::int64_t index = 0;
  for (const Value& driver : object["spec"]["drivers"].items())
    ValidateNodeDriver(driver, names, path.Index(index++), errors);
}

void ValidateNode(const Call&, Value object, Value, FieldErrors& errors) { ValidateNodeSpec(object, errors); }

void ValidateNodeUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors);
  ValidateNodeSpec(object, errors);
  const FieldPath spec("spec");
  for (const Value& before : old["spec"]["drivers"].items()) {
    for (const Value& now : object["spec"]["drivers"].items()) {
      if (before["name"].as_string() != now["name"].as_string()) continue;
      if (before["nodeID"].as_string() == now["nodeID"].as_string() &&
          SemanticEqual(before["topologyKeys"], now["topologyKeys"]))
        continue;
      errors.push_back(InvalidRendered(spec.Child("drivers"), RenderGoStruct(now, kDriver), "field is immutable"));
    }
  }
}

void NodeRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, static_cast<std::int64_t>(object["spec"]["drivers"].size()));
  cells.Append(arena, Age(arena, clock, object));
}

// ---- CSIStorageCapacity

void ValidateCapacityBody(const Value& object, bool allow_invalid_values, FieldErrors& errors) {
  validation::ValidateLabelSelector(object["nodeTopology"], FieldPath("nodeTopology"), errors, allow_invalid_values);
  const std::string_view name = object["storageClassName"].as_string();
  AddInvalid(FieldPath("storageClassName"), name, validation::NameIsDNSSubdomain(name, false), errors);
  if (const Value capacity = object["capacity"]; !capacity.is_null())
    core::CheckNonnegativeQuantity(capacity, FieldPath("capacity"), errors);
}

void ValidateCapacity(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateCapacityBody(object, false, errors);
}

void ValidateCapacityUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, true, validation::NameIsDNSSubdomain, errors);
  ValidateCapacityBody(object, IsInvalidSelector(old["nodeTopology"]), errors);
  ValidateMetaUpdate(object, old, errors);
  const Value now = object["nodeTopology"];
  const Value before = old["nodeTopology"];
  if (now.is_null() != before.is_null() || !SemanticEqual(now, before)) {
    errors.push_back(
        InvalidHub(FieldPath("nodeTopology"), core::CoreHubTypes(), now, "*~LabelSelector", "field is immutable"));
  }
  ImmutableText(object["storageClassName"], old["storageClassName"], FieldPath("storageClassName"), errors);
}

void CapacityWarnings(const Call& call, Value object, Value) {
  const FieldPath path("nodeTopology");
  const FieldPath expressions = path.Child("matchExpressions");
  std::int64_t index = 0;
  for (const Value& expression : object["nodeTopology"]["matchExpressions"].items()) {
    const FieldPath at = expressions.Index(index++);
    const std::string_view key = expression["key"].as_string();
    if (const std::string_view message = core::DeprecatedNodeLabel(key); !message.empty()) {
      call.warnings.push_back(at.Child("key").ToString() + ": " + std::string(key) + " is " + std::string(message));
    }
  }
  const FieldPath labels = path.Child("matchLabels");
  for (const auto& member : object["nodeTopology"]["matchLabels"].members()) {
    if (const std::string_view message = core::DeprecatedNodeLabel(member.key); !message.empty()) {
      call.warnings.push_back(labels.Child(member.key).ToString() + ": " + std::string(message));
    }
  }
}

}  // namespace

constexpr Strategy kCSIDriverStrategy = {
    .group = "storage.k8s.io",
    .kind = "CSIDriver",
    .allow_unconditional_update = false,
    .return_deleted_object = true,
    .generation = Generation::kCustom,
    .defaults = SetDriverDefaults,
    .prepare_for_create = PrepareDriver,
    .validate = ValidateDriver,
    .warnings_on_create = DriverWarnings,
    .update = {.prepare_for_update = PrepareDriver,
               .validate_update = ValidateDriverUpdate,
               .warnings_on_update = DriverWarnings},
    .table_row = DriverRow,
};

constexpr Strategy kCSINodeStrategy = {
    .group = "storage.k8s.io",
    .kind = "CSINode",
    .allow_unconditional_update = false,
    .return_deleted_object = true,
    .validate = ValidateNode,
    .update = {.validate_update = ValidateNodeUpdate},
    .table_row = NodeRow,
};

constexpr Strategy kCSIStorageCapacityStrategy = {
    .group = "storage.k8s.io",
    .kind = "CSIStorageCapacity",
    .allow_unconditional_update = false,
    .validate = ValidateCapacity,
    .warnings_on_create = CapacityWarnings,
    .update = {.validate_update = ValidateCapacityUpdate, .warnings_on_update = CapacityWarnings},
    // No row: upstream's storage for this kind has the default table, though a printer exists.
};

}  // namespace keelson::registry
