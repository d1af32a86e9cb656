#include <string>

#include "registry/core/hub.h"
#include "registry/policy/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT

void ValidateSpec(const Value& spec, bool allow_invalid_values, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value min = spec["minAvailable"];
  const Value max = spec["maxUnavailable"];
  if (!min.is_null() && !max.is_null()) {
    errors.push_back(InvalidHub(path, core::CoreHubTypes(), spec, "PodDisruptionBudgetSpec",
                                "minAvailable and maxUnavailable cannot be both set"));
  }
  if (!min.is_null()) {
    ValidatePositiveIntOrPercent(min, path.Child("minAvailable"), errors);
    IsNotMoreThan100Percent(min, path.Child("minAvailable"), errors);
  }
  if (!max.is_null()) {
    ValidatePositiveIntOrPercent(max, path.Child("maxUnavailable"), errors);
    IsNotMoreThan100Percent(max, path.Child("maxUnavailable"), errors);
  }
  validation::ValidateLabelSelector(spec["selector"], path.Child("selector"), errors, allow_invalid_values);
  if (const Value policy = spec["unhealthyPodEvictionPolicy"]; !policy.is_null()) {
    CheckOneOf(policy.as_string(), {"AlwaysAllow", "IfHealthyBudget"}, path.Child("unhealthyPodEvictionPolicy"),
               errors);
  }
}

void ValidatePDB(const Call&, Value object, Value, FieldErrors& errors) { ValidateSpec(object["spec"], false, errors); }

void ValidatePDBUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateSpec(object["spec"], IsInvalidSelector(old["spec"]["selector"]), errors);
}

void ValidatePDBStatusUpdate(const Call&, Value object, Value, FieldErrors& errors) {
  const FieldPath path("status");
  const Value status = object["status"];
  validation::ValidateConditions(status["conditions"], path.Child("conditions"), errors);
  for (const std::string_view field : {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    validation::ValidateNonnegative(status[field].as_int(), path.Child(field), errors);
  }
}

Value IntOrStringText(base::Arena& arena, const Value& value) {
  if (value.is_null()) return "N/A";
  return value.is_int() ? Value::String(arena, std::to_string(value.as_int())) : value;
}

void PDBRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, IntOrStringText(arena, object["spec"]["minAvailable"]));
  cells.Append(arena, IntOrStringText(arena, object["spec"]["maxUnavailable"]));
  cells.Append(arena, object["status"]["disruptionsAllowed"].as_int());
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"spec"};

constexpr Strategy kStrategies[] = {{
    .group = "policy",
    .kind = "PodDisruptionBudget",
    // Its own rules do not validate metadata: only the generic name rule applies.
    .name_rule = validation::NameIsPathSegment,
    .allow_unconditional_update = false,
    .generation = Generation::kSpec,
    .has_status = true,
    .validate = ValidatePDB,
    .validates_metadata = true,
    .update = {.validate_update = ValidatePDBUpdate, .reset_fields = kMainReset},
    .status = {.validate_update = ValidatePDBStatusUpdate, .reset_fields = kStatusReset},
    .table_row = PDBRow,
}};

}  // namespace

std::span<const Strategy> PolicyStrategies() { return kStrategies; }

}  // namespace keelson::registry
