#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/scheduling/bootstrap.h"
#include "registry/scheduling/strategies.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;

constexpr std::int64_t kHighestUserDefinablePriority = 1'000'000'000;

struct SystemClass {
  std::string_view name;
  std::int64_t value;
  std::string_view description;
};
constexpr std::array kSystemClasses = {
    SystemClass{"system-node-critical", 2'000'001'000,
                "Used for system critical pods that must not be moved from their current node."},
    SystemClass{
        "system-cluster-critical", 2'000'000'000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
};

void SetDefaults(base::Arena& arena, Value object) {
  Default(arena, object, "preemptionPolicy", "PreemptLowerPriority");
}

// Why a name with the reserved prefix is refused; empty when it is one of the server's own classes as the server makes
// it.
std::string SystemClassProblem(std::string_view name, std::int64_t value, bool global_default) {
  for (const SystemClass& known : kSystemClasses) {
    if (known.name != name) continue;
    if (known.value != value)
      return "value of " + std::string(name) + " PriorityClass must be " + std::to_string(known.value);
    if (global_default) return "globalDefault of " + std::string(name) + " PriorityClass must be false";
    return {};
  }
  return std::string(name) + " is not a known system priority class";
}

void PrepareForCreate(const Call& call, Value object, Value) {
  object.EnsureMap(call.arena, "metadata").Set(call.arena, "generation", 1);
}

void ValidatePriorityClass(const Call&, Value object, Value, FieldErrors& errors) {
  const std::string_view name = object["metadata"]["name"].as_string();
  const std::int64_t value = object["value"].as_int();
  if (name.starts_with("system-")) {
    if (const std::string why = SystemClassProblem(name, value, object["globalDefault"].as_bool()); !why.empty()) {
      const FieldPath metadata("metadata");
      errors.push_back(
          Forbidden(metadata.Child("name"),
                    "priority class names with 'system-' prefix are reserved for system use only. error: " + why));
    }
  } else if (value > kHighestUserDefinablePriority) {
    errors.push_back(Forbidden(FieldPath("value"), "maximum allowed value of a user defined priority is " +
                                                       std::to_string(kHighestUserDefinablePriority)));
  }
  if (const Value policy = object["preemptionPolicy"]; !policy.is_null()) {
    RequireOneOf(policy.as_string(), {"PreemptLowerPriority", "Never"}, FieldPath("preemptionPolicy"), errors);
  }
}

void ValidatePriorityClassUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  if (object["value"].as_int() != old["value"].as_int())
    errors.push_back(Forbidden(FieldPath("value"), "may not be changed in an update."));
  Immutable(object["preemptionPolicy"], old["preemptionPolicy"], FieldPath("preemptionPolicy"), errors);
}

void PriorityClassRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["value"].as_int());
  cells.Append(arena, object["globalDefault"].as_bool());
  cells.Append(arena, Age(arena, clock, object));
  cells.Append(arena, object["preemptionPolicy"].as_string());
}

std::string_view DeleteForbidden(std::string_view name) {
  const bool system = std::ranges::any_of(kSystemClasses, [&](const SystemClass& known) { return known.name == name; });
  return system ? "this is a system priority class and cannot be deleted" : std::string_view();
}

constexpr Strategy kStrategies[] = {{
    .group = "scheduling.k8s.io",
    .kind = "PriorityClass",
    .delete_forbidden = DeleteForbidden,
    .generation = Generation::kCustom,
    .defaults = SetDefaults,
    .prepare_for_create = PrepareForCreate,
    .validate = ValidatePriorityClass,
    .update = {.validate_update = ValidatePriorityClassUpdate},
    .table_row = PriorityClassRow,
}};

}  // namespace

std::span<const Strategy> SchedulingStrategies() { return kStrategies; }

std::vector<Value> BootstrapPriorityClasses(base::Arena& arena) {
  std::vector<Value> objects;
  for (const SystemClass& system : kSystemClasses) {
    Value metadata = Value::Map(arena, 1);
    metadata.Set(arena, "name", system.name);
    Value object = Value::Map(arena, 6);
    object.Set(arena, "kind", "PriorityClass");
    object.Set(arena, "apiVersion", "scheduling.k8s.io/v1");
    object.Set(arena, "metadata", metadata);
    object.Set(arena, "value", system.value);
    object.Set(arena, "description", system.description);
    object.Set(arena, "preemptionPolicy", "PreemptLowerPriority");
    objects.push_back(object);
  }
  return objects;
}

}  // namespace keelson::registry
