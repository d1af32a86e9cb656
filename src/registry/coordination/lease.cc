#include "base/strings.h"
#include "registry/coordination/lease_strategy_name.h"
#include "registry/coordination/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT: the vocabulary of every rule here
using validation::Forbidden;
using validation::Invalid;

// spec.strategy and spec.preferredHolder belong to CoordinatedLeaderElection: dropped while the gate is off, unless
// already in use.
void DropDisabledFields(const Call& call, Value object, Value old) {
  if (call.feature_enabled != nullptr && call.feature_enabled("CoordinatedLeaderElection")) return;
  Value spec = object["spec"];
  if (!spec.is_map()) return;
  if (old["spec"]["strategy"].is_null()) spec.Erase("strategy");
  if (old["spec"]["preferredHolder"].is_null()) spec.Erase("preferredHolder");
}

}  // namespace

void ValidateStrategyName(std::string_view text, const FieldPath& path, validation::FieldErrors& errors) {
  // The path repeats the field's name; upstream does, and the text is API.
  const FieldPath at = path.Child("strategy");
  if (text.find('/') == std::string_view::npos) {
    CheckOneOf(text, {kOldestEmulationVersion}, at, errors);
  } else {
    CheckQualifiedName(text, at, errors);
  }
}

namespace {

void ValidateSpec(const Value& spec, FieldErrors& errors) {
  const FieldPath path("spec");
  if (const Value seconds = spec["leaseDurationSeconds"]; !seconds.is_null() && seconds.as_int() <= 0) {
    errors.push_back(Invalid(path.Child("leaseDurationSeconds"), seconds, "must be greater than 0"));
  }
  if (const Value transitions = spec["leaseTransitions"]; !transitions.is_null() && transitions.as_int() < 0) {
    errors.push_back(Invalid(path.Child("leaseTransitions"), transitions, "must be greater than or equal to 0"));
  }
  const Value strategy = spec["strategy"];
  if (!strategy.is_null()) ValidateStrategyName(strategy.as_string(), path.Child("strategy"), errors);
  if (!spec["preferredHolder"].as_string().empty() && strategy.as_string().empty()) {
    errors.push_back(Forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined"));
  }
}

void ValidateLease(const Call&, Value object, Value, FieldErrors& errors) { ValidateSpec(object["spec"], errors); }

void ValidateLeaseUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors, false);
  ValidateSpec(object["spec"], errors);
}

void LeaseRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["spec"]["holderIdentity"].is_null() ? Value("") : object["spec"]["holderIdentity"]);
  cells.Append(arena, Age(arena, clock, object));
}

constexpr Strategy kLease{
    .group = "coordination.k8s.io",
    .kind = "Lease",
    .allow_create_on_update = true,
    .allow_unconditional_update = false,
    .core_finalizers = false,
    .prepare_for_create = DropDisabledFields,
    .validate = ValidateLease,
    .update = {.prepare_for_update = DropDisabledFields, .validate_update = ValidateLeaseUpdate},
    .table_row = LeaseRow,
};

}  // namespace

std::span<const Strategy> CoordinationStrategies() {
  static const Strategy strategies[] = {kLease, LeaseCandidateStrategy()};
  return strategies;
}

}  // namespace keelson::registry
