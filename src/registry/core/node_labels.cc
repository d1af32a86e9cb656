#include "registry/core/node_labels.h"

namespace keelson::registry::core {

std::string_view DeprecatedNodeLabel(std::string_view label) {
  struct {
    std::string_view label, message;
  } constexpr kDeprecated[] = {
      {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
      {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
      {"failure-domain.beta.kubernetes.io/region",
       "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
      {"failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
      {"beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
      {"app.kubernetes.io/created-by", "deprecated since v1.9"},
      {"scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"},
      {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"},
  };
  for (const auto& entry : kDeprecated) {
    if (entry.label == label) return entry.message;
  }
  return {};
}

void WarnNodeSelectorTerm(const Call& call, Value term, bool check_values, const FieldPath& path) {
  const FieldPath expressions = path.Child("matchExpressions");
  std::int64_t i = 0;
  for (const Value expression : term["matchExpressions"].items()) {
    const FieldPath at = expressions.Index(i++);
    const std::string key(Text(expression, "key"));
    if (const std::string_view message = DeprecatedNodeLabel(key); !message.empty()) {
      Warning(call, at.Child("key"), key + " is " + std::string(message));
    }
    if (!check_values) continue;
    const FieldPath values = at.Child("values");
    std::int64_t j = 0;
    for (const Value value : expression["values"].items()) {
      const FieldPath one = values.Index(j++);
      for (const std::string& message : validation::IsValidLabelValue(value.as_string())) {
        Warning(call, one, std::string(value.as_string()) + " is invalid, " + message);
      }
    }
  }
}

}  // namespace keelson::registry::core
