#include "registry/rules/rules.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace keelson::registry::rules {

using validation::Invalid;
using validation::NotSupported;
using validation::Required;

bool IsZero(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return true;
    case Value::Kind::kBool:
      return !value.as_bool();
    case Value::Kind::kInt:
      return value.as_int() == 0;
    case Value::Kind::kDouble:
      return value.as_double() == 0;
    case Value::Kind::kString:
      return value.as_string().empty();
    case Value::Kind::kRaw:
      return value.as_raw().empty() || value.as_raw() == "null";
    case Value::Kind::kList:
      return value.empty();
    case Value::Kind::kMap:
      // A struct whose members are all zero is a zero struct; a map of texts with one empty text is not, but is never
      // compared to none.
      return std::ranges::all_of(value.members(), [](const object::Member& member) { return IsZero(member.value); });
  }
  return false;
}

bool SemanticEqual(const Value& a, const Value& b) { return validation::SemanticEqual(a, b); }

void Default(base::Arena& arena, Value object, std::string_view key, Value value) {
  if (object.is_map() && object[key].is_null()) object.Set(arena, key, value);
}

void DefaultIfZero(base::Arena& arena, Value object, std::string_view key, Value value) {
  if (object.is_map() && IsZero(object[key])) object.Set(arena, key, value);
}

void AddInvalid(const Messages& messages, const FieldPath& path, std::string_view text, FieldErrors& errors) {
  for (const std::string& message : messages) errors.push_back(Invalid(path, text, message));
}

bool OneOf(std::string_view text, std::initializer_list<std::string_view> supported) {
  return std::find(supported.begin(), supported.end(), text) != supported.end();
}

void NotSupportedValue(const FieldPath& path, std::string_view text, std::initializer_list<std::string_view> supported,
                       FieldErrors& errors) {
  errors.push_back(
      NotSupported(path, Value(text), std::span<const std::string_view>(supported.begin(), supported.size())));
}

void RequireOneOf(std::string_view text, std::initializer_list<std::string_view> supported, const FieldPath& path,
                  FieldErrors& errors) {
  if (!OneOf(text, supported)) NotSupportedValue(path, text, supported, errors);
}

void RequireEnum(std::string_view text, std::initializer_list<std::string_view> supported, const FieldPath& path,
                 FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
  } else {
    RequireOneOf(text, supported, path, errors);
  }
}

void Immutable(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors) {
  if (!SemanticEqual(now, old)) errors.push_back(Invalid(path, now, "field is immutable"));
}

void ImmutableText(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors) {
  if (now.as_string() != old.as_string()) errors.push_back(Invalid(path, now.as_string(), "field is immutable"));
}

meta::FieldError InvalidRendered(const FieldPath& path, std::string rendered, std::string_view detail) {
  return {.type = meta::FieldError::Type::kInvalid,
          .field = path.ToString(),
          .value = std::move(rendered),
          .detail = std::string(detail)};
}

meta::FieldError DuplicateRendered(const FieldPath& path, std::string rendered) {
  return {
      .type = meta::FieldError::Type::kDuplicate, .field = path.ToString(), .value = std::move(rendered), .detail = {}};
}

void ValidateMeta(const Value& object, bool namespaced, validation::NameRule rule, FieldErrors& errors,
                  bool core_finalizers) {
  validation::ValidateObjectMeta(object["metadata"], namespaced, rule, FieldPath("metadata"), errors, core_finalizers);
}

void ValidateMetaUpdate(const Value& object, const Value& old, FieldErrors& errors, bool core_finalizers) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors,
                                       core_finalizers);
}

void Restore(base::Arena& arena, Value object, const Value& old, std::string_view key) {
  if (const Value* before = old.Find(key); before != nullptr) {
    object.Set(arena, key, before->Clone(arena));
  } else {
    object.Erase(key);
  }
}

void ResetMetaForStatus(base::Arena& arena, Value object, const Value& old) {
  Value now = object.EnsureMap(arena, "metadata");
  const Value before = old["metadata"];
  for (const std::string_view key :
       {"deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"}) {
    Restore(arena, now, before, key);
  }
}

std::optional<std::int64_t> ParsePercent(std::string_view text) {
  if (text.size() < 2 || text.back() != '%') return std::nullopt;
  text.remove_suffix(1);
  if (!std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return base::ParseInt64(text);
}

void ValidatePositiveIntOrPercent(const Value& value, const FieldPath& path, FieldErrors& errors) {
  if (value.is_string()) {
    for (const std::string& message : validation::IsValidPercent(value.as_string()))
      errors.push_back(Invalid(path, value, message));
  } else if (value.is_int()) {
    validation::ValidateNonnegative(value.as_int(), path, errors);
  }
}

void IsNotMoreThan100Percent(const Value& value, const FieldPath& path, FieldErrors& errors) {
  const auto percent = ParsePercent(value.as_string());
  if (percent.has_value() && *percent > 100) errors.push_back(Invalid(path, value, "must not be greater than 100%"));
}

void ValidateCSIDriverName(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  constexpr std::int64_t kDriverNameBytesMax = 63;
  if (text.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (static_cast<std::int64_t>(text.size()) > kDriverNameBytesMax)
    errors.push_back(validation::TooLong(path, kDriverNameBytesMax));
  for (const std::string& message : validation::IsDNS1123Subdomain(base::ToLower(text)))
    errors.push_back(Invalid(path, text, message));
}

void ValidateQualifiedName(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  AddInvalid(validation::IsQualifiedName(text), path, text, errors);
}

bool IsInvalidSelector(const Value& selector) {
  FieldErrors errors;
  validation::ValidateLabelSelector(selector, FieldPath("selector"), errors);
  return !errors.empty();
}

void ValidateTolerations(const Value& tolerations, const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  for (const Value& toleration : tolerations.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view key = toleration["key"].as_string();
    const std::string_view op = toleration["operator"].as_string();
    const std::string_view value = toleration["value"].as_string();
    const std::string_view effect = toleration["effect"].as_string();
    if (!key.empty()) validation::ValidateLabelName(key, at.Child("key"), errors);
    if (key.empty() && op != "Exists") {
      errors.push_back(
          Invalid(at.Child("operator"), op,
                  "operator must be Exists when `key` is empty, which means \"match all values and all keys\""));
    }
    if (!toleration["tolerationSeconds"].is_null() && effect != "NoExecute") {
      errors.push_back(
          Invalid(at.Child("effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    if (op == "Equal" || op.empty()) {
      if (const Messages messages = validation::IsValidLabelValue(value); !messages.empty()) {
        std::string joined;
        for (const std::string& message : messages) joined += (joined.empty() ? "" : ";") + message;
        errors.push_back(Invalid(at.Child("operator"), value, joined));
      }
    } else if (op == "Exists") {
      if (!value.empty())
        errors.push_back(Invalid(at.Child("operator"), value, "value must be empty when `operator` is 'Exists'"));
    } else if (op == "Lt" || op == "Gt") {
      NotSupportedValue(at.Child("operator"), op, {"Equal", "Exists", "Lt", "Gt"}, errors);
    } else {
      NotSupportedValue(at.Child("operator"), op, {"Equal", "Exists"}, errors);
    }
    if (!effect.empty())
      RequireOneOf(effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, at.Child("effect"), errors);
  }
}

namespace {

void ValidateNodeSelectorRequirement(const Value& requirement, const FieldPath& path, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].as_string();
  const Value values = requirement["values"];
  const FieldPath at = path.Child("values");
  if (op == "In" || op == "NotIn") {
    if (values.empty()) errors.push_back(Required(at, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty())
      errors.push_back(validation::Forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1)
      errors.push_back(Required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
  } else {
    errors.push_back(Invalid(path.Child("operator"), op, "not a valid selector operator"));
  }
  validation::ValidateLabelName(requirement["key"].as_string(), path.Child("key"), errors);
  std::int64_t index = 0;
  for (const Value& value : values.items()) {
    AddInvalid(validation::IsValidLabelValue(value.as_string()), at.Index(index++), value.as_string(), errors);
  }
}

void ValidateNodeFieldRequirement(const Value& requirement, const FieldPath& path, FieldErrors& errors) {
  const std::string_view op = requirement["operator"].as_string();
  const Value values = requirement["values"];
  if (op == "In" || op == "NotIn") {
    if (values.size() != 1) {
      errors.push_back(Required(path.Child("values"),
                                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"));
    }
  } else {
    errors.push_back(Invalid(path.Child("operator"), op, "not a valid selector operator"));
  }
  const std::string_view key = requirement["key"].as_string();
  if (key != "metadata.name") {
    errors.push_back(Invalid(path.Child("key"), key, "not a valid field selector key"));
    return;
  }
  std::int64_t index = 0;
  for (const Value& value : values.items()) {
    AddInvalid(validation::NameIsDNSSubdomain(value.as_string(), false), path.Child("values").Index(index++),
               value.as_string(), errors);
  }
}

}  // namespace

void ValidateNodeSelector(const Value& selector, const FieldPath& path, FieldErrors& errors) {
  const Value terms = selector["nodeSelectorTerms"];
  const FieldPath terms_path = path.Child("nodeSelectorTerms");
  if (terms.empty()) {
    errors.push_back(Required(terms_path, "must have at least one node selector term"));
    return;
  }
  std::int64_t index = 0;
  for (const Value& term : terms.items()) {
    const FieldPath at = terms_path.Index(index++);
    std::int64_t i = 0;
    const FieldPath expressions = at.Child("matchExpressions");
    for (const Value& requirement : term["matchExpressions"].items())
      ValidateNodeSelectorRequirement(requirement, expressions.Index(i++), errors);
    i = 0;
    const FieldPath fields = at.Child("matchFields");
    for (const Value& requirement : term["matchFields"].items())
      ValidateNodeFieldRequirement(requirement, fields.Index(i++), errors);
  }
}

std::optional<GroupVersionText> ParseGroupVersion(std::string_view text) {
  if (text.empty() || text == "/") return GroupVersionText{};
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return GroupVersionText{{}, text};
  if (text.find('/', slash + 1) != std::string_view::npos) return std::nullopt;
  return GroupVersionText{text.substr(0, slash), text.substr(slash + 1)};
}

std::string_view DeprecatedNodeLabelMessage(std::string_view label) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kDeprecated = {{
      {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
      {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
      {"failure-domain.beta.kubernetes.io/region",
       "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
      {"failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
      {"beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
      {"app.kubernetes.io/created-by", "deprecated since v1.9"},
      {"scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"},
  }};
  for (const auto& [name, message] : kDeprecated) {
    if (name == label) return message;
  }
  return {};
}

}  // namespace keelson::registry::rules
