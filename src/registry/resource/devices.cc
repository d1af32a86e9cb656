#include "registry/resource/devices.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "registry/fields.h"
#include "registry/rules/cel_expression.h"
#include "registry/rules/rules.h"

namespace keelson::registry::devices {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Invalid;
using validation::Required;
using validation::TooLong;

constexpr std::int64_t kPoolNameBytesMax = 253;
constexpr std::size_t kIdentifierBytesMax = 32;
constexpr std::size_t kExpressionBytesMax = 10 * 1024;
constexpr std::int64_t kBindingConditionsMax = 4;

constexpr std::string_view kTable = R"(
ResourceClaimSpec Devices:DeviceClaim
ResourceClaimTemplateSpec -=metadata:~ObjectMeta Spec:ResourceClaimSpec
DeviceClaim Requests:[]DeviceRequest Constraints:[]DeviceConstraint Config:[]DeviceClaimConfiguration
DeviceRequest Name:string Exactly:*ExactDeviceRequest FirstAvailable:[]DeviceSubRequest
ExactDeviceRequest DeviceClassName:string Selectors:[]DeviceSelector AllocationMode:string Count:int AdminAccess:*bool
    Tolerations:[]DeviceToleration Capacity:*CapacityRequirements
DeviceSubRequest Name:string DeviceClassName:string Selectors:[]DeviceSelector AllocationMode:string Count:int
    Tolerations:[]DeviceToleration Capacity:*CapacityRequirements
CapacityRequirements Requests:{}quantity
DeviceSelector CEL=cel:*CELDeviceSelector
CELDeviceSelector Expression:string
DeviceConstraint Requests:[]string MatchAttribute:*string DistinctAttribute:*string
DeviceClaimConfiguration Requests:[]string Opaque:*OpaqueDeviceConfiguration
DeviceAllocationConfiguration Source:string Requests:[]string Opaque:*OpaqueDeviceConfiguration
OpaqueDeviceConfiguration Driver:string Parameters:raw
DeviceToleration Key:string Operator:string Value:string Effect:string TolerationSeconds:*int
AllocationResult Devices:DeviceAllocationResult NodeSelector:*NodeSelector AllocationTimestamp:*time
DeviceAllocationResult Results:[]DeviceRequestAllocationResult Config:[]DeviceAllocationConfiguration
DeviceRequestAllocationResult Request:string Driver:string Pool:string Device:string AdminAccess:*bool Tolerations:[]DeviceToleration
    BindingConditions:[]string BindingFailureConditions:[]string ShareID:*string ConsumedCapacity:{}quantity
NodeSelector NodeSelectorTerms:[]NodeSelectorTerm
NodeSelectorTerm MatchExpressions:[]NodeSelectorRequirement MatchFields:[]NodeSelectorRequirement
NodeSelectorRequirement Key:string Operator:string Values:[]string
DeviceAttribute IntValue=int:*int BoolValue=bool:*bool StringValue=string:*string VersionValue=version:*string IntValues=ints:[]int
    BoolValues=bools:[]bool StringValues=strings:[]string VersionValues=versions:[]string
~ObjectMeta name:string generateName:string namespace:string uid:string resourceVersion:string generation:int creationTimestamp:time
    deletionTimestamp:time deletionGracePeriodSeconds:*int labels:{}string annotations:{}string ownerReferences:[]~OwnerReference
    finalizers:[]string
~OwnerReference apiVersion:!string kind:!string name:!string uid:!string controller:*bool blockOwnerDeletion:*bool
)";

}  // namespace

const HubTypes& Types() {
  static const HubTypes types(kTable);
  return types;
}

void ValidateSlice(const Value& list, std::int64_t max, const ValidateItem& validate, const FieldPath& path,
                   FieldErrors& errors) {
  const auto count = static_cast<std::int64_t>(list.size());
  if (max >= 0 && count > max) {
    errors.push_back(validation::TooMany(path, count, max));
    return;
  }
  std::int64_t index = 0;
  for (const Value& item : list.items()) validate(item, path.Index(index++), errors);
}

void ValidateSet(const Value& list, std::int64_t max, const ValidateItem& validate, const ItemKey& key,
                 const FieldPath& path, FieldErrors& errors) {
  ValidateSlice(list, max, validate, path, errors);
  if (max >= 0 && static_cast<std::int64_t>(list.size()) > max) return;
  std::set<std::string> seen;
  std::int64_t index = 0;
  for (const Value& item : list.items()) {
    const FieldPath at = path.Index(index++);
    std::string text = key(item);
    if (seen.contains(text)) errors.push_back(Duplicate(at, Value(std::string_view(text))));
    seen.insert(std::move(text));
  }
}

std::string TextKey(const Value& item) { return std::string(item.as_string()); }
std::string NameKey(const Value& item) { return std::string(item["name"].as_string()); }

void ValidateDNSLabel(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  AddInvalid(path, text, validation::IsDNS1123Label(text), errors);
}

void ValidatePoolName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  if (name.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (static_cast<std::int64_t>(name.size()) > kPoolNameBytesMax) errors.push_back(TooLong(path, kPoolNameBytesMax));
  for (const std::string_view part : base::Split(name, '/'))
    AddInvalid(path, part, validation::IsDNS1123Subdomain(part), errors);
}

void ValidateUID(std::string_view uid, const FieldPath& path, FieldErrors& errors) {
  bool hex = uid.size() == 36;
  bool lower = true;
  for (std::size_t i = 0; hex && i < uid.size(); ++i) {
    const char c = uid[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      hex = c == '-';
    } else {
      lower = lower && !(c >= 'A' && c <= 'F');
      hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    }
  }
  if (!hex) {
    const std::string why =
        uid.size() == 36 ? "invalid UUID format" : "invalid UUID length: " + std::to_string(uid.size());
    errors.push_back(Invalid(path, uid, "error validating uid: " + why));
  } else if (!lower) {
    errors.push_back(Invalid(
        path, uid,
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
        "characters"));
  }
}

namespace {

void ValidateIdentifier(std::string_view id, const FieldPath& path, FieldErrors& errors) {
  if (id.size() > kIdentifierBytesMax) errors.push_back(TooLong(path, static_cast<std::int64_t>(kIdentifierBytesMax)));
  AddInvalid(path, id, validation::IsCIdentifier(id), errors);
}

}  // namespace

void ValidateQualifiedAttribute(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  const auto parts = base::Split(name, '/');
  if (parts.size() == 1) {
    ValidateIdentifier(parts[0], path, errors);
  } else if (parts.size() == 2) {
    if (parts[0].empty()) {
      errors.push_back(Invalid(path, "", "the domain must not be empty"));
    } else {
      ValidateCSIDriverName(parts[0], path, errors);
    }
    if (parts[1].empty()) {
      errors.push_back(Invalid(path, "", "the name must not be empty"));
    } else {
      ValidateIdentifier(parts[1], path, errors);
    }
  }  // With more slashes upstream says nothing here.
}

void ValidateFullyQualifiedAttribute(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  ValidateQualifiedAttribute(name, path, errors);
  if (name.find('/') == std::string_view::npos) {
    errors.push_back(Invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash"));
  }
}

namespace {

void ValidateCELSelector(std::string_view expression, const SelectorOptions& options, const FieldPath& path,
                         FieldErrors& errors) {
  const auto mode = options.stored ? cel::ExpressionMode::kStored : cel::ExpressionMode::kNew;
  const cel::DeviceFeatures features{.list_type_attributes = options.list_type_attributes};
  const auto selector = cel::CompileDeviceSelector(expression, mode, features);
  if (!selector.ok()) {
    errors.push_back(Invalid(path, expression, selector.error()));
    return;
  }
  if (!selector->error.empty()) {
    errors.push_back(validation::InternalError(path, selector->error));
  } else if (selector->max_cost > cel::kDeviceSelectorCostMax) {
    errors.push_back(Forbidden(path, "too complex, exceeds cost limit"));
  }
}

}  // namespace

SelectorOptions SelectorOptionsOf(const Call& call) {
  return {.list_type_attributes = FeatureEnabled(call, "DRAListTypeAttributes")};
}

void ValidateSelectors(const Value& selectors, const SelectorOptions& options, const FieldPath& path,
                       FieldErrors& errors) {
  ValidateSlice(
      selectors, kSelectorsMax,
      [&options](const Value& selector, const FieldPath& at, FieldErrors& out) {
        const Value cel = selector["cel"];
        const FieldPath cel_path = at.Child("cel");
        if (cel.is_null()) {
          out.push_back(Required(cel_path));
          return;
        }
        const FieldPath expression_path = cel_path.Child("expression");
        const std::string_view expression = cel["expression"].as_string();
        if (expression.size() > kExpressionBytesMax) {
          out.push_back(TooLong(expression_path, static_cast<std::int64_t>(kExpressionBytesMax)));
        } else {
          ValidateCELSelector(expression, options, expression_path, out);
        }
      },
      path, errors);
}

void ValidateRaw(const Value& raw, std::int64_t bytes_max, const FieldPath& path, FieldErrors& errors) {
  const std::string_view text = base::Trim(raw.as_raw());
  // Decoded raw values are valid JSON; this requires an object.
  if (raw.is_null() || (raw.is_raw() && (text.empty() || text == "null"))) {
    errors.push_back(Required(path));
  } else if (static_cast<std::int64_t>(text.size()) > bytes_max) {
    errors.push_back(TooLong(path, bytes_max));
  } else if (!raw.is_map() && (!raw.is_raw() || text[0] != '{')) {
    errors.push_back(Invalid(path, std::string_view("<value omitted>"), "must be a valid JSON object"));
  }
}

void ValidateConfiguration(const Value& config, const FieldPath& path, FieldErrors& errors) {
  const Value opaque = config["opaque"];
  const FieldPath opaque_path = path.Child("opaque");
  if (opaque.is_null()) {
    errors.push_back(Required(opaque_path));
    return;
  }
  ValidateCSIDriverName(opaque["driver"].as_string(), opaque_path.Child("driver"), errors);
  ValidateRaw(opaque["parameters"], kOpaqueParametersBytesMax, opaque_path.Child("parameters"), errors);
}

void ValidateTaint(const Value& taint, const FieldPath& path, FieldErrors& errors) {
  validation::ValidateLabelName(taint["key"].as_string(), path.Child("key"), errors);
  if (const std::string_view value = taint["value"].as_string(); !value.empty()) {
    AddInvalid(path.Child("value"), value, validation::IsValidLabelValue(value), errors);
  }
  RequireOneOf(taint["effect"].as_string(), {"NoExecute", "NoSchedule", "None"}, path.Child("effect"), errors);
}

void ValidateToleration(const Value& toleration, const FieldPath& path, FieldErrors& errors) {
  if (const std::string_view key = toleration["key"].as_string(); !key.empty())
    validation::ValidateLabelName(key, path.Child("key"), errors);
  const std::string_view op = toleration["operator"].as_string();
  const std::string_view value = toleration["value"].as_string();
  if (op == "Exists") {
    if (!value.empty()) errors.push_back(Invalid(path.Child("value"), value, "must be empty for operator `Exists`"));
  } else if (op == "Equal") {
    AddInvalid(path.Child("value"), value, validation::IsValidLabelValue(value), errors);
  } else {
    RequireOneOf(op, {"Equal", "Exists"}, path.Child("operator"), errors);
  }
  if (const std::string_view effect = toleration["effect"].as_string(); !effect.empty()) {
    CheckOneOf(effect, {"NoExecute", "NoSchedule", "None"}, path.Child("effect"), errors);
  }
}

void ValidateBindingConditions(const Value& owner, const FieldPath& path, FieldErrors& errors) {
  const Value conditions = owner["bindingConditions"];
  const Value failures = owner["bindingFailureConditions"];
  const FieldPath conditions_path = path.Child("bindingConditions");
  const FieldPath failures_path = path.Child("bindingFailureConditions");
  const auto label = [](const Value& item, const FieldPath& at, FieldErrors& out) {
    validation::ValidateLabelName(item.as_string(), at, out);
  };
  ValidateSlice(conditions, kBindingConditionsMax, label, conditions_path, errors);
  ValidateSlice(failures, kBindingConditionsMax, label, failures_path, errors);
  std::set<std::string_view> seen;
  std::int64_t index = 0;
  for (const Value& item : conditions.items()) {
    const FieldPath at = conditions_path.Index(index++);
    if (!seen.insert(item.as_string()).second) errors.push_back(Duplicate(at, item));
  }
  std::set<std::string_view> seen_failures;
  index = 0;
  for (const Value& item : failures.items()) {
    const FieldPath at = failures_path.Index(index++);
    if (!seen_failures.insert(item.as_string()).second) errors.push_back(Duplicate(at, item));
    if (seen.contains(item.as_string())) {
      errors.push_back(Invalid(at, item, "bindingFailureConditions must not overlap with bindingConditions"));
    }
  }
  if (conditions.empty() && !failures.empty()) {
    errors.push_back(
        Invalid(conditions_path, conditions, "bindingConditions are required to use bindingFailureConditions"));
  }
  if (failures.empty() && !conditions.empty()) {
    errors.push_back(
        Invalid(failures_path, failures, "bindingFailureConditions are required to use bindingConditions"));
  }
}

}  // namespace keelson::registry::devices
