#include "registry/core/scheduling.h"

#include <map>

#include "base/strings.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kEffects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kNotAnOperator = "not a valid selector operator";

void CheckRequirement(Value requirement, bool allow_invalid_values, const FieldPath& path, FieldErrors& errors) {
  const std::string_view op = Text(requirement, "operator");
  const Value values = requirement["values"];
  const FieldPath values_path = path.Child("values");
  if (op == "In" || op == "NotIn") {
    if (values.empty()) errors.push_back(Required(values_path, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty())
      errors.push_back(Forbidden(values_path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1)
      errors.push_back(Required(values_path, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
  } else {
    errors.push_back(Invalid(path.Child("operator"), op, kNotAnOperator));
  }
  validation::ValidateLabelName(Text(requirement, "key"), path.Child("key"), errors);
  if (allow_invalid_values) return;
  std::int64_t index = 0;
  for (const Value value : values.items()) {
    AddInvalid(values_path.Index(index++), value.as_string(), validation::IsValidLabelValue(value.as_string()), errors);
  }
}

void CheckFieldRequirement(Value requirement, const FieldPath& path, FieldErrors& errors) {
  const std::string_view op = Text(requirement, "operator");
  const Value values = requirement["values"];
  const FieldPath values_path = path.Child("values");
  if (op == "In" || op == "NotIn") {
    if (values.size() != 1) {
      errors.push_back(
          Required(values_path, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"));
    }
  } else {
    errors.push_back(Invalid(path.Child("operator"), op, kNotAnOperator));
  }
  if (Text(requirement, "key") != "metadata.name") {
    return errors.push_back(Invalid(path.Child("key"), Text(requirement, "key"), "not a valid field selector key"));
  }
  std::int64_t index = 0;
  for (const Value value : values.items()) CheckDNSSubdomain(value.as_string(), values_path.Index(index++), errors);
}

void CheckWeight(Value term, const FieldPath& path, FieldErrors& errors) {
  const std::int64_t weight = Int(term, "weight");
  if (weight <= 0 || weight > 100)
    errors.push_back(Invalid(path.Child("weight"), Value(weight), "must be in the range 1-100"));
}

void CheckLabelKeys(Value keys, Value selector, const FieldPath& path, FieldErrors& errors) {
  if (keys.empty()) return;
  if (selector.is_null())
    return errors.push_back(Forbidden(path, "must not be specified when labelSelector is not set"));
  std::int64_t index = 0;
  for (const Value key : keys.items()) validation::ValidateLabelName(key.as_string(), path.Index(index++), errors);
}

// matchLabelKeys were merged into the selector on create: a duplicate key was in both before.
void CheckMatchLabelKeys(Value term, const FieldPath& path, FieldErrors& errors) {
  const Value match = term["matchLabelKeys"], mismatch = term["mismatchLabelKeys"], selector = term["labelSelector"];
  const FieldPath match_path = path.Child("matchLabelKeys");
  CheckLabelKeys(match, selector, match_path, errors);
  CheckLabelKeys(mismatch, selector, path.Child("mismatchLabelKeys"), errors);
  if (!selector.is_null()) {
    std::map<std::string_view, std::int64_t> position;
    for (std::size_t i = 0; i < match.size(); ++i) position[match[i].as_string()] = static_cast<std::int64_t>(i);
    NameSet seen;
    for (const object::Member& label : selector["matchLabels"].members()) seen.emplace(label.key);
    for (const Value expression : selector["matchExpressions"].items()) {
      const std::string_view key = Text(expression, "key");
      if (const auto at = position.find(key); at != position.end() && seen.contains(key)) {
        errors.push_back(Invalid(path.Index(at->second), key, "exists in both matchLabelKeys and labelSelector"));
      }
      seen.emplace(key);
    }
  }
  NameSet mismatched;
  for (const Value key : mismatch.items()) mismatched.emplace(key.as_string());
  for (std::size_t i = 0; i < match.size(); ++i) {
    if (!mismatched.contains(match[i].as_string())) continue;
    errors.push_back(Invalid(match_path.Index(static_cast<std::int64_t>(i)), match[i],
                             "exists in both matchLabelKeys and mismatchLabelKeys"));
  }
}

// The rule of old, for pods that were created before keys were merged.
void CheckUnmergedMatchLabelKeys(Value constraint, const FieldPath& path, FieldErrors& errors) {
  const Value keys = constraint["matchLabelKeys"], selector = constraint["labelSelector"];
  if (keys.empty()) return;
  NameSet selected;
  if (selector.is_null()) {
    errors.push_back(Forbidden(path, "must not be specified when labelSelector is not set"));
  } else {
    for (const object::Member& label : selector["matchLabels"].members()) selected.emplace(label.key);
    for (const Value expression : selector["matchExpressions"].items()) selected.emplace(Text(expression, "key"));
  }
  std::int64_t index = 0;
  for (const Value key : keys.items()) {
    const FieldPath at = path.Index(index++);
    validation::ValidateLabelName(key.as_string(), at, errors);
    if (selected.contains(key.as_string()))
      errors.push_back(Invalid(at, key, "exists in both matchLabelKeys and labelSelector"));
  }
}

void CheckPodAffinityTerm(Value term, bool allow_invalid_values, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view key : {"labelSelector", "namespaceSelector"}) {
    validation::ValidateLabelSelector(term[key], path.Child(key), errors, allow_invalid_values);
  }
  for (const Value name : term["namespaces"].items()) CheckDNSLabel(name.as_string(), path.Child("namespace"), errors);
  CheckMatchLabelKeys(term, path, errors);
  const FieldPath key_path = path.Child("topologyKey");
  if (Text(term, "topologyKey").empty()) errors.push_back(Required(key_path, "can not be empty"));
  validation::ValidateLabelName(Text(term, "topologyKey"), key_path, errors);
}

void CheckPodAffinity(Value affinity, bool allow_invalid_values, const FieldPath& path, FieldErrors& errors) {
  const FieldPath required = path.Child(kRequired), preferred = path.Child(kPreferred);
  std::int64_t index = 0;
  for (const Value term : affinity[kRequired].items())
    CheckPodAffinityTerm(term, allow_invalid_values, required.Index(index++), errors);
  index = 0;
  for (const Value term : affinity[kPreferred].items()) {
    const FieldPath at = preferred.Index(index++);
    CheckWeight(term, at, errors);
    CheckPodAffinityTerm(term["podAffinityTerm"], allow_invalid_values, at.Child("podAffinityTerm"), errors);
  }
}

bool SelectorHasErrors(Value selector) {
  FieldErrors errors;
  validation::ValidateLabelSelector(selector, FieldPath("selector"), errors);
  return !errors.empty();
}

}  // namespace

void ValidateNodeSelectorTerm(Value term, bool allow_invalid_values, const FieldPath& path, FieldErrors& errors) {
  const FieldPath expressions = path.Child("matchExpressions"), fields = path.Child("matchFields");
  std::int64_t index = 0;
  for (const Value requirement : term["matchExpressions"].items()) {
    CheckRequirement(requirement, allow_invalid_values, expressions.Index(index++), errors);
  }
  index = 0;
  for (const Value requirement : term["matchFields"].items())
    CheckFieldRequirement(requirement, fields.Index(index++), errors);
}

void ValidateNodeSelector(Value selector, bool allow_invalid_values, const FieldPath& path, FieldErrors& errors) {
  const FieldPath terms = path.Child("nodeSelectorTerms");
  if (selector["nodeSelectorTerms"].empty())
    return errors.push_back(Required(terms, "must have at least one node selector term"));
  std::int64_t index = 0;
  for (const Value term : selector["nodeSelectorTerms"].items()) {
    ValidateNodeSelectorTerm(term, allow_invalid_values, terms.Index(index++), errors);
  }
}

void ValidateAffinity(Value affinity, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  if (const Value node = affinity["nodeAffinity"]; !node.is_null()) {
    const FieldPath at = path.Child("nodeAffinity");
    if (IsSet(node, kRequired)) {
      ValidateNodeSelector(node[kRequired], options.allow_invalid_label_value_in_required_node_affinity,
                           at.Child(kRequired), errors);
    }
    const FieldPath preferred = at.Child(kPreferred);
    std::int64_t index = 0;
    for (const Value term : node[kPreferred].items()) {
      const FieldPath one = preferred.Index(index++);
      CheckWeight(term, one, errors);
      ValidateNodeSelectorTerm(term["preference"], true, one.Child("preference"), errors);
    }
  }
  for (const std::string_view key : {"podAffinity", "podAntiAffinity"}) {
    CheckPodAffinity(affinity[key], options.allow_invalid_label_value_in_selector, path.Child(key), errors);
  }
}

void ValidateTaintEffect(Value effect, const FieldPath& path, FieldErrors& errors) {
  RequireOneOf(effect, kEffects, path, errors);
}

void ValidateTolerations(Value tolerations, bool allow_comparison, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kOperators[] = {"Equal", "Exists"};
  constexpr std::string_view kAllOperators[] = {"Equal", "Exists", "Lt", "Gt"};
  std::int64_t index = 0;
  for (const Value toleration : tolerations.items()) {
    const FieldPath at = path.Index(index++);
    const FieldPath op_path = at.Child("operator");
    const std::string_view key = Text(toleration, "key"), op = Text(toleration, "operator"),
                           value = Text(toleration, "value");
    if (!key.empty()) validation::ValidateLabelName(key, at.Child("key"), errors);
    if (key.empty() && op != "Exists") {
      errors.push_back(Invalid(
          op_path, op, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""));
    }
    if (IsSet(toleration, "tolerationSeconds") && Text(toleration, "effect") != "NoExecute") {
      errors.push_back(Invalid(at.Child("effect"), Text(toleration, "effect"),
                               "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    if (op == "Equal" || op.empty()) {
      if (const Messages messages = validation::IsValidLabelValue(value); !messages.empty()) {
        errors.push_back(Invalid(op_path, value, base::Join(messages, ";")));
      }
    } else if (op == "Exists") {
      if (!value.empty()) errors.push_back(Invalid(op_path, value, "value must be empty when `operator` is 'Exists'"));
    } else if (op == "Lt" || op == "Gt") {
      if (!allow_comparison) {
        errors.push_back(NotSupported(op_path, toleration["operator"], kAllOperators));
      } else if (!base::ParseInt64(value) || value != std::to_string(*base::ParseInt64(value))) {
        errors.push_back(Invalid(at.Child("value"), value, "must be a valid decimal integer in canonical form"));
      }
    } else {
      errors.push_back(NotSupported(op_path, toleration["operator"], kOperators));
    }
    if (!Text(toleration, "effect").empty()) CheckOneOf(toleration["effect"], kEffects, at.Child("effect"), errors);
  }
}

void ValidateTopologySpread(Value constraints, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kActions[] = {"DoNotSchedule", "ScheduleAnyway"};
  constexpr std::string_view kPolicies[] = {"Honor", "Ignore"};
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> later;  // how often a pair is still to come
  for (const Value constraint : constraints.items())
    ++later[{Text(constraint, "topologyKey"), Text(constraint, "whenUnsatisfiable")}];
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const Value constraint = constraints[i];
    const FieldPath at = path.Index(static_cast<std::int64_t>(i));
    const std::string_view key = Text(constraint, "topologyKey"), action = Text(constraint, "whenUnsatisfiable");
    validation::ValidatePositive(Int(constraint, "maxSkew"), at.Child("maxSkew"), errors);
    if (key.empty()) errors.push_back(Required(at.Child("topologyKey"), "can not be empty"));
    CheckOneOf(constraint["whenUnsatisfiable"], kActions, at.Child("whenUnsatisfiable"), errors);
    if (--later[{key, action}] > 0) {
      const std::string pair = "{" + std::string(key) + ", " + std::string(action) + "}";
      errors.push_back(Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), Value(pair.c_str())));
    }
    if (const Value least = constraint["minDomains"]; !least.is_null()) {
      const FieldPath least_path = at.Child("minDomains");
      validation::ValidatePositive(least.as_int(), least_path, errors);
      if (action != "DoNotSchedule") {
        errors.push_back(
            Invalid(least_path, least,
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + std::string(action)));
      }
    }
    for (const std::string_view policy : {"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
      if (IsSet(constraint, policy)) CheckOneOf(constraint[policy], kPolicies, at.Child(policy), errors);
    }
    if (options.allow_repeated_match_label_keys) {
      CheckUnmergedMatchLabelKeys(constraint, at.Child("matchLabelKeys"), errors);
    } else {
      CheckMatchLabelKeys(constraint, at, errors);
    }
    if (!options.allow_invalid_spread_selector) {
      validation::ValidateLabelSelector(constraint["labelSelector"], at.Child("labelSelector"), errors);
    }
  }
}

bool HasInvalidValueInRequiredNodeAffinity(Value spec) {
  for (const Value term : spec["affinity"]["nodeAffinity"][kRequired]["nodeSelectorTerms"].items()) {
    for (const Value expression : term["matchExpressions"].items()) {
      for (const Value value : expression["values"].items()) {
        if (!validation::IsValidLabelValue(value.as_string()).empty()) return true;
      }
    }
  }
  return false;
}

bool HasInvalidValueInAffinitySelector(Value spec) {
  for (const std::string_view key : {"podAffinity", "podAntiAffinity"}) {
    const Value affinity = spec["affinity"][key];
    for (const Value term : affinity[kRequired].items()) {
      if (SelectorHasErrors(term["labelSelector"]) || SelectorHasErrors(term["namespaceSelector"])) return true;
    }
    for (const Value term : affinity[kPreferred].items()) {
      const Value inner = term["podAffinityTerm"];
      if (SelectorHasErrors(inner["labelSelector"]) || SelectorHasErrors(inner["namespaceSelector"])) return true;
    }
  }
  return false;
}

bool HasInvalidSpreadSelector(Value spec) {
  for (const Value constraint : spec["topologySpreadConstraints"].items()) {
    if (SelectorHasErrors(constraint["labelSelector"])) return true;
  }
  return false;
}

bool HasRepeatedMatchLabelKeys(Value spec) {
  for (const Value constraint : spec["topologySpreadConstraints"].items()) {
    FieldErrors errors;
    CheckMatchLabelKeys(constraint, FieldPath("constraint"), errors);
    if (!errors.empty()) return true;
  }
  return false;
}

}  // namespace keelson::registry::core
