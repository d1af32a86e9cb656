#include "registry/fields.h"

#include <algorithm>

#include "meta/selector.h"

namespace keelson::registry {

bool Contains(Names names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

std::vector<object::Member> SortedMembers(Value map) {
  const auto members = map.members();
  std::vector<object::Member> sorted(members.begin(), members.end());
  std::ranges::sort(sorted, {}, &object::Member::key);
  return sorted;
}

void AddInvalid(const FieldPath& path, std::string_view text, const Messages& messages, FieldErrors& errors) {
  for (const std::string& message : messages) errors.push_back(Invalid(path, text, message));
}

bool RequireText(Value object, std::string_view key, const FieldPath& path, FieldErrors& errors) {
  if (!Text(object, key).empty()) return true;
  errors.push_back(Required(path.Child(key)));
  return false;
}

void RequireTexts(Value object, std::initializer_list<std::string_view> keys, const FieldPath& path,
                  FieldErrors& errors) {
  for (const std::string_view key : keys) RequireText(object, key, path, errors);
}

bool CheckOneOf(Value value, Names supported, const FieldPath& path, FieldErrors& errors) {
  if (Contains(supported, value.as_string())) return true;
  errors.push_back(NotSupported(path, value.is_null() ? Value("") : value, supported));
  return false;
}

void RequireOneOf(Value value, Names supported, const FieldPath& path, FieldErrors& errors) {
  if (value.as_string().empty()) {
    errors.push_back(Required(path));
  } else {
    CheckOneOf(value, supported, path, errors);
  }
}

bool CheckOneOf(std::string_view text, std::initializer_list<std::string_view> supported, const FieldPath& path,
                FieldErrors& errors) {
  return CheckOneOf(Value(text), Names(supported.begin(), supported.size()), path, errors);
}

void RequireOneOf(std::string_view text, std::initializer_list<std::string_view> supported, const FieldPath& path,
                  FieldErrors& errors) {
  RequireOneOf(Value(text), Names(supported.begin(), supported.size()), path, errors);
}

void CheckDNSLabel(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  AddInvalid(path, text, validation::IsDNS1123Label(text), errors);
}

void CheckDNSSubdomain(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  AddInvalid(path, text, validation::IsDNS1123Subdomain(text), errors);
}

void CheckQualifiedName(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  AddInvalid(path, text, validation::IsQualifiedName(text), errors);
}

void CheckPortNumOrName(Value port, const FieldPath& path, FieldErrors& errors) {
  if (port.is_string()) {
    AddInvalid(path, port.as_string(), validation::IsValidPortName(port.as_string()), errors);
    return;
  }
  for (const std::string& message : validation::IsValidPortNum(port.as_int())) {
    errors.push_back(Invalid(path, Value(port.as_int()), message));
  }
}

void CheckNonnegative(Value object, std::string_view key, const FieldPath& parent, FieldErrors& errors) {
  validation::ValidateNonnegative(Int(object, key), parent.Child(key), errors);
}

std::string RangeMessage(std::int64_t min, std::int64_t max) {
  return "must be between " + std::to_string(min) + " and " + std::to_string(max) + ", inclusive";
}

void Default(base::Arena& arena, Value object, std::string_view key, Value value) {
  if (object.is_map() && !IsSet(object, key)) object.Set(arena, key, value);
}

void DefaultText(base::Arena& arena, Value object, std::string_view key, std::string_view text) {
  if (Text(object, key).empty()) object.Set(arena, key, Value(text));
}

void CopyMember(base::Arena& arena, Value to, Value from, std::string_view key) {
  if (Value* member = from.Find(key); member != nullptr && !member->is_null()) {
    to.Set(arena, key, member->Clone(arena));
  } else {
    to.Erase(key);
  }
}

bool FeatureEnabled(const Call& call, std::string_view gate) {
  return call.feature_enabled != nullptr && call.feature_enabled(gate);
}

void Warning(const Call& call, const FieldPath& path, std::string_view text) {
  call.warnings.push_back(path.ToString() + ": " + std::string(text));
}

bool SetMatches(Value selector, Value labels) {
  for (const object::Member& wanted : selector.members()) {
    const Value* have = labels.Find(wanted.key);
    if (have == nullptr || have->as_string() != wanted.value.as_string()) return false;
  }
  return true;
}

namespace {

bool RequirementParses(Value requirement) {
  const std::string_view op = Text(requirement, "operator");
  const std::size_t values = requirement["values"].size();
  if (op == "In" || op == "NotIn") {
    if (values == 0) return false;
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (values != 0) return false;
  } else {
    return false;
  }
  if (!validation::IsQualifiedName(Text(requirement, "key")).empty()) return false;
  for (const Value value : requirement["values"].items()) {
    if (!validation::IsValidLabelValue(value.as_string()).empty()) return false;
  }
  return true;
}

bool RequirementMatches(Value requirement, Value labels) {
  const std::string_view op = Text(requirement, "operator");
  const Value* have = labels.Find(Text(requirement, "key"));
  if (op == "Exists") return have != nullptr;
  if (op == "DoesNotExist") return have == nullptr;
  bool listed = false;
  if (have != nullptr) {
    for (const Value value : requirement["values"].items()) listed |= value.as_string() == have->as_string();
  }
  return op == "In" ? listed : !listed;
}

}  // namespace

bool LabelSelectorParses(Value selector) {
  for (const object::Member& member : selector["matchLabels"].members()) {
    if (!validation::IsQualifiedName(member.key).empty() ||
        !validation::IsValidLabelValue(member.value.as_string()).empty())
      return false;
  }
  for (const Value requirement : selector["matchExpressions"].items()) {
    if (!RequirementParses(requirement)) return false;
  }
  return true;
}

bool LabelSelectorEmpty(Value selector) {
  return selector["matchLabels"].empty() && selector["matchExpressions"].empty();
}

bool LabelSelectorMatches(Value selector, Value labels) {
  if (selector.is_null() || !LabelSelectorParses(selector)) return false;  // a nil selector matches nothing
  if (!SetMatches(selector["matchLabels"], labels)) return false;
  for (const Value requirement : selector["matchExpressions"].items()) {
    if (!RequirementMatches(requirement, labels)) return false;
  }
  return true;
}

std::string LabelSelectorText(Value selector) {
  using Requirement = meta::LabelSelector::Requirement;
  using Operator = meta::LabelSelector::Operator;
  if (selector.is_null() || LabelSelectorEmpty(selector)) return "<none>";
  std::vector<Requirement> requirements;
  for (const object::Member& member : selector["matchLabels"].members()) {
    requirements.push_back({std::string(member.key), Operator::kEquals, {std::string(member.value.as_string())}});
  }
  for (const Value expression : selector["matchExpressions"].items()) {
    const std::string_view op = Text(expression, "operator");
    Requirement requirement{std::string(Text(expression, "key")),
                            op == "In"       ? Operator::kIn
                            : op == "NotIn"  ? Operator::kNotIn
                            : op == "Exists" ? Operator::kExists
                                             : Operator::kDoesNotExist,
                            {}};
    for (const Value value : expression["values"].items()) requirement.values.emplace_back(value.as_string());
    std::ranges::sort(requirement.values);
    requirements.push_back(std::move(requirement));
  }
  std::ranges::sort(requirements, {}, &Requirement::key);
  return meta::LabelSelector::Of(std::move(requirements)).ToString();
}

std::string LabelsText(Value labels) {
  if (labels.empty()) return "<none>";
  std::string text;
  for (const object::Member& member : SortedMembers(labels)) {
    if (!text.empty()) text += ',';
    text.append(member.key).append("=").append(member.value.as_string());
  }
  return text;
}

}  // namespace keelson::registry
