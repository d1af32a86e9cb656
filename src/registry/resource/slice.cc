#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "object/time.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/resource/devices.h"
#include "registry/resource/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry {
namespace {

using namespace devices;  // NOLINT
using object::Quantity;
using rules::NameCell;
using rules::SemanticEqual;
using rules::ValidateMetaUpdate;
using validation::Forbidden;
using validation::Invalid;
using validation::Required;
using validation::TooLong;

constexpr std::int64_t kDevicesMax = 128;
constexpr std::int64_t kDevicesWithAdvancedFeaturesMax = 64;
constexpr std::int64_t kCounterSetsMax = 8;
constexpr std::int64_t kCountersMax = 32;
constexpr std::int64_t kConsumptionsMax = 2;
constexpr std::int64_t kAttributesAndCapacitiesMax = 32;
constexpr std::int64_t kAttributeValuesMax = 48;
constexpr std::size_t kAttributeBytesMax = 64;
constexpr std::int64_t kTaintsMax = 16;
constexpr std::int64_t kPolicyOptionsMax = 10;
constexpr std::size_t kKeyBytesShown = 63 + 1 + 32;
constexpr std::string_view kListAttributes[] = {"bools", "ints", "strings", "versions"};

// ---- Prepare

bool AnyDevice(const Value& object, bool (*test)(const Value& device)) {
  return std::ranges::any_of(object["spec"]["devices"].items(), test);
}

bool HasListAttributes(const Value& device) {
  return std::ranges::any_of(device["attributes"].members(), [](const object::Member& member) {
    return std::ranges::any_of(kListAttributes, [&](std::string_view list) { return !member.value[list].is_null(); });
  });
}

void PrepareSlice(const Call& call, Value object, Value old) {
  const bool mappings = FeatureEnabled(call, "DRANodeAllocatableResources") || AnyDevice(old, [](const Value& device) {
                          return !device["nodeAllocatableResourceMappings"].is_null();
                        });
  const bool lists = FeatureEnabled(call, "DRAListTypeAttributes") || AnyDevice(old, HasListAttributes);
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(call.clock.Now().time_since_epoch()).count();
  // A change of a field that is dropped counts as one.
  if (!old.is_null() &&
      !registry::SemanticEqual(object["spec"], old["spec"], schema::types::resource_v1::kResourceSliceSpec))
    object["metadata"].Set(call.arena, "generation", old["metadata"]["generation"].as_int() + 1);
  for (Value device : object["spec"]["devices"].items()) {
    if (!device.is_map()) continue;
    if (!mappings) device.Erase("nodeAllocatableResourceMappings");
    for (const auto& member : device["attributes"].members()) {
      Value attribute = member.value;
      if (lists || !attribute.is_map()) continue;
      for (const std::string_view list : kListAttributes) attribute.Erase(list);
    }
    for (Value taint : device["taints"].items()) {
      Default(call.arena, taint, "timeAdded", Value::String(call.arena, object::FormatTime(now)));
    }
  }
}

// ---- Validation

std::vector<object::Member> Sorted(const Value& map) {
  std::vector<object::Member> members(map.members().begin(), map.members().end());
  std::ranges::sort(members, {}, &object::Member::key);
  return members;
}

// A key as paths show it: the middle of an overlong one is left out.
std::string Shown(std::string_view key, std::size_t max) {
  if (key.size() <= max) return std::string(key);
  const std::size_t remaining = max - 3;
  return std::string(key.substr(0, (remaining + 1) / 2)) + "..." + std::string(key.substr(key.size() - remaining / 2));
}

bool IsNumericIdentifier(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) &&
         (text.size() == 1 || text[0] != '0');
}

bool IsIdentifierText(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

// semver.org 2.0.0.
bool IsSemanticVersion(std::string_view text) {
  const auto plus = text.find('+');
  if (plus != std::string_view::npos) {
    for (const std::string_view part : base::Split(text.substr(plus + 1), '.')) {
      if (!IsIdentifierText(part)) return false;
    }
    text = text.substr(0, plus);
  }
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    for (const std::string_view part : base::Split(text.substr(dash + 1), '.')) {
      const bool digits = std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
      if (!IsIdentifierText(part) || (digits && !IsNumericIdentifier(part))) return false;
    }
    text = text.substr(0, dash);
  }
  const auto parts = base::Split(text, '.');
  return parts.size() == 3 && std::ranges::all_of(parts, IsNumericIdentifier);
}

void ValidateStringValue(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.size() > kAttributeBytesMax) errors.push_back(TooLong(path, static_cast<std::int64_t>(kAttributeBytesMax)));
}

void ValidateVersionValue(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (!IsSemanticVersion(text))
    errors.push_back(Invalid(path, text, "must be a string compatible with semver.org spec 2.0.0"));
  ValidateStringValue(text, path, errors);
}

void ValidateAttribute(const Value& attribute, const FieldPath& path, FieldErrors& errors) {
  int fields = 0;
  for (const std::string_view field : {"bool", "int"}) fields += attribute[field].is_null() ? 0 : 1;
  if (const Value text = attribute["string"]; !text.is_null()) {
    ++fields;
    ValidateStringValue(text.as_string(), path.Child("string"), errors);
  }
  if (const Value version = attribute["version"]; !version.is_null()) {
    ++fields;
    ValidateVersionValue(version.as_string(), path.Child("version"), errors);
  }
  for (const std::string_view field : kListAttributes) {
    const Value list = attribute[field];
    if (list.is_null()) continue;
    ++fields;
    const FieldPath list_path = path.Child(field);
    if (list.empty()) errors.push_back(Invalid(list_path, list, "must not be empty if specified"));
    if (field != "strings" && field != "versions") continue;
    std::int64_t index = 0;
    for (const Value& item : list.items()) {
      const FieldPath at = list_path.Index(index++);
      field == "strings" ? ValidateStringValue(item.as_string(), at, errors)
                         : ValidateVersionValue(item.as_string(), at, errors);
    }
  }
  if (fields == 0) errors.push_back(Invalid(path, "", "exactly one value must be specified"));
  if (fields > 1)
    errors.push_back(InvalidHub(path, Types(), attribute, "DeviceAttribute", "exactly one value must be specified"));
}

meta::FieldError InvalidQuantity(const FieldPath& path, const Quantity& quantity, const std::string& detail) {
  const std::string text = quantity.ToString();
  return Invalid(path, std::string_view(text), detail);
}

void ValidatePolicyValues(const Quantity& fallback, const Quantity& capacity, const Value& values,
                          const FieldPath& path, FieldErrors& errors) {
  std::vector<Quantity> quantities;
  for (const Value& value : values.items()) quantities.push_back(QuantityOf(value));
  for (std::size_t i = 0; i + 1 < quantities.size(); ++i) {
    if (quantities[i].Compare(quantities[i + 1]) > 0) {
      errors.push_back(InvalidQuantity(path.Index(static_cast<std::int64_t>(i + 1)), quantities[i + 1],
                                       "values must be sorted in ascending order"));
    }
  }
  bool found = false;
  ValidateSet(
      values, kPolicyOptionsMax,
      [&](const Value& value, const FieldPath& at, FieldErrors& out) {
        const Quantity option = QuantityOf(value);
        if (option.Compare(capacity) > 0)
          out.push_back(InvalidQuantity(at, option, "option is larger than capacity value: " + capacity.ToString()));
        found = found || option.Compare(fallback) == 0;
      },
      [](const Value& value) { return std::to_string(QuantityOf(value).Value()); }, path, errors);
  if (!found)
    errors.push_back(InvalidQuantity(path, fallback, "default value is not valid according to the requestPolicy"));
}

void ValidateStep(const Quantity& value, const Quantity& min, const Quantity& step, const FieldPath& path,
                  FieldErrors& errors) {
  // A step of nothing divides nothing.
  if (step.Value() == 0 || (value.Value() - min.Value()) % step.Value() != 0) {
    errors.push_back(InvalidQuantity(
        path, value,
        "value is not a multiple of a given step (" + step.ToString() + ") from (" + min.ToString() + ")"));
  }
}

void ValidatePolicyRange(const Quantity& fallback, const Quantity& capacity, const Value& range, const FieldPath& path,
                         FieldErrors& errors) {
  if (range["min"].is_null()) {
    errors.push_back(Required(path.Child("min"), "required when validRange is defined"));
    return;
  }
  const Quantity min = QuantityOf(range["min"]);
  const std::string capacity_text = capacity.ToString();
  if (min.Compare(capacity) > 0)
    errors.push_back(InvalidQuantity(path.Child("min"), min, "min is larger than capacity value: " + capacity_text));
  if (fallback.Compare(min) < 0)
    errors.push_back(InvalidQuantity(path.Child("min"), fallback, "default is less than min: " + min.ToString()));
  const bool has_max = !range["max"].is_null();
  const Quantity max = QuantityOf(range["max"]);
  if (has_max) {
    const FieldPath at = path.Child("max");
    if (min.Compare(max) > 0) errors.push_back(InvalidQuantity(at, min, "min is larger than max: " + max.ToString()));
    if (max.Compare(capacity) > 0)
      errors.push_back(InvalidQuantity(at, max, "max is larger than capacity value: " + capacity_text));
    if (fallback.Compare(max) > 0)
      errors.push_back(InvalidQuantity(at, fallback, "default is more than max: " + max.ToString()));
  }
  if (range["step"].is_null()) return;
  const Quantity step = QuantityOf(range["step"]);
  const FieldPath at = path.Child("step");
  Quantity added = min;
  added.Add(step);
  if (added.Compare(capacity) > 0) {
    errors.push_back(
        InvalidQuantity(at, step, "one step " + added.ToString() + " is larger than capacity value: " + capacity_text));
  }
  ValidateStep(fallback, min, step, at, errors);
  if (has_max) ValidateStep(max, min, step, at, errors);
}

void ValidateCapacity(const Value& capacity, bool multiple, const FieldPath& path, FieldErrors& errors) {
  const Value policy = capacity["requestPolicy"];
  if (policy.is_null()) return;
  const FieldPath at = path.Child("requestPolicy");
  if (!multiple) {
    errors.push_back(Forbidden(at, "allowMultipleAllocations must be true"));
    return;
  }
  const Value values = policy["validValues"];
  const Value range = policy["validRange"];
  if (!values.empty() && !range.is_null()) {
    errors.push_back(Forbidden(
        at, "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time"));
    return;
  }
  const std::string_view which = !values.empty() ? "validValues" : "validRange";
  if (values.empty() && range.is_null()) return;
  if (policy["default"].is_null()) {
    errors.push_back(Required(at.Child("default"), "required when " + std::string(which) + " is defined"));
    return;
  }
  const Quantity fallback = QuantityOf(policy["default"]);
  const Quantity total = QuantityOf(capacity["value"]);
  if (!values.empty()) {
    ValidatePolicyValues(fallback, total, values, at.Child("validValues"), errors);
  } else {
    ValidatePolicyRange(fallback, total, range, at.Child("validRange"), errors);
  }
}

// Counters of a set or of a device that takes from one; the quantities themselves are free.
void ValidateCounters(const Value& counters, const FieldPath& path, FieldErrors& errors) {
  const auto count = static_cast<std::int64_t>(counters.size());
  if (count == 0) {
    errors.push_back(Required(path));
  } else if (count > kCountersMax) {
    errors.push_back(validation::TooMany(path, count, kCountersMax));
  } else {
    for (const auto& member : Sorted(counters)) ValidateDNSLabel(member.key, path, errors);
  }
}

void ValidateNamedCounters(const Value& owner, std::string_view name_field, const FieldPath& path,
                           FieldErrors& errors) {
  const std::string_view name = owner[name_field].as_string();
  if (name.empty()) {
    errors.push_back(Required(path.Child(name_field)));
  } else {
    ValidateDNSLabel(name, path.Child(name_field), errors);
  }
  ValidateCounters(owner["counters"], path.Child("counters"), errors);
}

// Validates the node fields of a slice or a device and returns those that are set.
std::vector<std::string> PlacementFields(const Value& owner, bool slice, const FieldPath& path, FieldErrors& errors) {
  std::vector<std::string> set;
  if (const Value node = owner["nodeName"]; !node.is_null()) {
    const std::string_view name = node.as_string();
    if (name.empty()) {
      errors.push_back(Invalid(path.Child("nodeName"), name,
                               slice ? "must be either unset or set to a non-empty string" : "must not be empty"));
    } else {
      set.emplace_back("`nodeName`");
      AddInvalid(path.Child("nodeName"), name, validation::NameIsDNSSubdomain(name, false), errors);
    }
  }
  if (const Value selector = owner["nodeSelector"]; !selector.is_null()) {
    set.emplace_back("`nodeSelector`");
    const FieldPath at = path.Child("nodeSelector");
    core::ValidateNodeSelector(selector, /*allow_invalid_values=*/false, at, errors);
    if (slice && selector["nodeSelectorTerms"].size() != 1) {
      errors.push_back(rules::InvalidRendered(at.Child("nodeSelectorTerms"),
                                              Types().JSON(selector["nodeSelectorTerms"], "[]NodeSelectorTerm"),
                                              "must have exactly one node selector term"));
    }
  }
  for (const std::string_view field : {"allNodes", "perDeviceNodeSelection"}) {
    if (!slice && field == "perDeviceNodeSelection") continue;
    const Value flag = owner[field];
    if (flag.is_null()) continue;
    if (flag.as_bool()) {
      set.push_back("`" + std::string(field) + "`");
    } else {
      errors.push_back(Invalid(path.Child(field), flag, "must be either unset or set to true"));
    }
  }
  return set;
}

void ValidateDevicePlacement(const Value& device, bool per_device, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kExactlyOne =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
      "true in the ResourceSlice "
      "spec";
  if (per_device) {
    const auto set = PlacementFields(device, false, path, errors);
    if (set.empty()) errors.push_back(Required(path, kExactlyOne));
    if (set.size() > 1) {
      const std::string fields = "{" + base::Join(set, ", ") + "}";
      errors.push_back(Invalid(path, std::string_view(fields), kExactlyOne));
    }
  } else if (!device["nodeName"].is_null() || !device["nodeSelector"].is_null() || !device["allNodes"].is_null()) {
    errors.push_back(Invalid(
        path, Value(),
        "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
        "ResourceSlice spec"));
  }
}

void ValidateMappings(const Value& device, const FieldPath& path, FieldErrors& errors) {
  for (const auto& member : Sorted(device["nodeAllocatableResourceMappings"])) {
    const FieldPath at = path.Key(member.key);
    const Value mapping = member.value;
    if (!core::IsNativeResource(member.key))
      errors.push_back(Invalid(at, member.key, "must be a node allocatable resource name"));
    const Value multiplier = mapping["allocationMultiplier"];
    const Value key = mapping["capacityKey"];
    if (multiplier.is_null() && key.is_null()) {
      errors.push_back(Invalid(at, "", "at least one of allocationMultiplier or capacityKey must be set"));
      continue;
    }
    if (!multiplier.is_null() && QuantityOf(multiplier).Sign() <= 0) {
      errors.push_back(InvalidQuantity(at.Child("allocationMultiplier"), QuantityOf(multiplier), "must be positive"));
    }
    if (key.is_null()) continue;
    if (key.as_string().empty()) {
      errors.push_back(Invalid(at.Child("capacityKey"), "", "capacityKey must not be an empty string"));
    } else if (!device["capacity"].Has(key.as_string())) {
      errors.push_back(validation::NotFound(at.Child("capacityKey"), key));
    }
  }
}

std::int64_t AttributeValues(const Value& device) {
  std::int64_t count = 0;
  for (const auto& member : device["attributes"].members()) {
    std::int64_t items = 0;
    for (const std::string_view list : kListAttributes) items += static_cast<std::int64_t>(member.value[list].size());
    count += items == 0 ? 1 : items;
  }
  return count;
}

void ValidateDevice(const Value& device, const Value& old_device, bool per_device, const FieldPath& path,
                    FieldErrors& errors) {
  ValidateDNSLabel(device["name"].as_string(), path.Child("name"), errors);
  const auto count = static_cast<std::int64_t>(device["attributes"].size() + device["capacity"].size());
  if (count > kAttributesAndCapacitiesMax) {
    errors.push_back(Invalid(path, Value(count), "the total number of attributes and capacities must not exceed 32"));
  }
  if (const std::int64_t values = AttributeValues(device); values > kAttributeValuesMax) {
    errors.push_back(Invalid(path, Value(values), "the total number of attribute values must not exceed 48"));
  }
  const FieldPath attributes = path.Child("attributes");
  for (const auto& member : Sorted(device["attributes"])) {
    const std::string shown = Shown(member.key, kKeyBytesShown);
    ValidateQualifiedAttribute(member.key, attributes, errors);
    ValidateAttribute(member.value, attributes.Key(shown), errors);
  }
  const FieldPath capacity = path.Child("capacity");
  for (const auto& member : Sorted(device["capacity"])) {
    const std::string shown = Shown(member.key, kKeyBytesShown);
    ValidateQualifiedAttribute(member.key, capacity, errors);
    ValidateCapacity(member.value, device["allowMultipleAllocations"].as_bool(), capacity.Key(shown), errors);
  }
  if (old_device.is_null() || !SemanticEqual(old_device["taints"], device["taints"])) {
    ValidateSlice(device["taints"], kTaintsMax, ValidateTaint, path.Child("taints"), errors);
  }
  ValidateSet(
      device["consumesCounters"], kConsumptionsMax,
      [](const Value& item, const FieldPath& at, FieldErrors& out) {
        ValidateNamedCounters(item, "counterSet", at, out);
      },
      [](const Value& item) { return std::string(item["counterSet"].as_string()); }, path.Child("consumesCounters"),
      errors);
  ValidateDevicePlacement(device, per_device, path, errors);
  ValidateBindingConditions(device, path, errors);
  ValidateMappings(device, path.Child("nodeAllocatableResourceMappings"), errors);
}

Value FindDevice(const Value& spec, std::string_view name) {
  for (const Value& device : spec["devices"].items()) {
    if (device["name"].as_string() == name) return device;
  }
  return {};
}

void ImmutableNodeName(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors) {
  if (now.is_null() != old.is_null() || now.as_string() != old.as_string())
    errors.push_back(Invalid(path, now, "field is immutable"));
}

void ValidateSpec(const Value& object, const Value& old, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"];
  const Value old_spec = old["spec"];
  const FieldPath pool = path.Child("pool");
  rules::ValidateCSIDriverName(spec["driver"].as_string(), path.Child("driver"), errors);
  ValidatePoolName(spec["pool"]["name"].as_string(), pool.Child("name"), errors);
  const Value count(spec["pool"]["resourceSliceCount"].as_int());
  const Value generation(spec["pool"]["generation"].as_int());
  if (count.as_int() <= 0)
    errors.push_back(Invalid(pool.Child("resourceSliceCount"), count, "must be greater than zero"));
  if (generation.as_int() < 0)
    errors.push_back(Invalid(pool.Child("generation"), generation, "must be greater than or equal to zero"));
  if (!old.is_null()) {
    rules::ImmutableText(spec["pool"]["name"], old_spec["pool"]["name"], pool.Child("name"), errors);
    rules::ImmutableText(spec["driver"], old_spec["driver"], path.Child("driver"), errors);
    ImmutableNodeName(spec["nodeName"], old_spec["nodeName"], path.Child("nodeName"), errors);
  }
  constexpr std::string_view kExactlyOne =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  const auto set = PlacementFields(spec, true, path, errors);
  if (set.empty()) errors.push_back(Required(path, kExactlyOne));
  if (set.size() > 1) {
    const std::string fields = "{" + base::Join(set, ", ") + "}";
    errors.push_back(
        Invalid(path, std::string_view(fields), std::string(kExactlyOne) + ", but multiple fields are set"));
  }
  if (!spec["sharedCounters"].is_null() && !spec["devices"].is_null()) {
    errors.push_back(Invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"));
  }
  const bool advanced = AnyDevice(object, [](const Value& device) {
    return !device["taints"].empty() || !device["consumesCounters"].empty() || HasListAttributes(device);
  });
  const bool per_device = spec["perDeviceNodeSelection"].as_bool();
  ValidateSet(
      spec["devices"], advanced ? kDevicesWithAdvancedFeaturesMax : kDevicesMax,
      [&](const Value& device, const FieldPath& at, FieldErrors& out) {
        ValidateDevice(device, FindDevice(old_spec, device["name"].as_string()), per_device, at, out);
      },
      NameKey, path.Child("devices"), errors);
  ValidateSet(
      spec["sharedCounters"], kCounterSetsMax,
      [](const Value& item, const FieldPath& at, FieldErrors& out) { ValidateNamedCounters(item, "name", at, out); },
      NameKey, path.Child("sharedCounters"), errors);
}

void ValidateResourceSlice(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateSpec(object, Value(), errors);
}

void ValidateResourceSliceUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  ValidateSpec(object, old, errors);
}

void Warnings(const Call& call, Value object, Value) {
  const std::string_view driver = object["spec"]["driver"].as_string();
  if (driver != base::ToLower(driver)) {
    call.warnings.push_back("spec.driver: driver names should be lowercase; " + base::GoQuote(driver) +
                            " contains uppercase characters");
  }
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  cells.Append(arena, NameCell(object));
  cells.Append(arena, spec["nodeName"].as_string());
  cells.Append(arena, spec["driver"].as_string());
  cells.Append(arena, spec["pool"]["name"].as_string());
  cells.Append(arena, rules::Age(arena, clock, object));
}

constexpr SelectableField kSelectable[] = {{.name = "spec.nodeName", .path = "spec.nodeName"},
                                           {.name = "spec.driver", .path = "spec.driver"}};

}  // namespace

constexpr Strategy kResourceSliceStrategy = {
    .group = "resource.k8s.io",
    .kind = "ResourceSlice",
    .return_deleted_object = true,
    .generation = Generation::kSpec,
    .prepare_for_create = PrepareSlice,
    .validate = ValidateResourceSlice,
    .warnings_on_create = Warnings,
    .update = {.prepare_for_update = PrepareSlice,
               .validate_update = ValidateResourceSliceUpdate,
               .warnings_on_update = Warnings},
    .selectable_fields = kSelectable,
    .selects_namespace = false,
    .table_row = Row,
};

}  // namespace keelson::registry
