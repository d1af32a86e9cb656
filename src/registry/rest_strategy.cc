#include "registry/rest_strategy.h"

namespace keelson::registry {

const UpdateRules& RESTStrategy::RulesOf(const Endpoint& endpoint) const {
  switch (endpoint.part) {
    case Endpoint::Part::kMain:
      return row_.update;
    case Endpoint::Part::kStatus:
      return row_.status;
    case Endpoint::Part::kOther:
      break;
  }
  return *endpoint.rules;
}

void RESTStrategy::Default(base::Arena& arena, Value object) const {
  if (row_.defaults != nullptr) row_.defaults(arena, object);
}

void RESTStrategy::PrepareForCreate(const Call& call, Value object) const {
  if (row_.has_status && !row_.keeps_status_on_create) object.Erase("status");
  if (row_.generation == Generation::kSpec) object["metadata"].Set(call.arena, "generation", 1);
  if (row_.prepare_for_create != nullptr) row_.prepare_for_create(call, object, Value());
}

void RESTStrategy::PrepareForUpdate(const Call& call, const Endpoint& endpoint, Value object, Value old) const {
  const auto keep = [&](std::string_view key) {
    if (old.Has(key)) {
      object.Set(call.arena, key, old[key]);
    } else {
      object.Erase(key);
    }
  };
  if (endpoint.part == Endpoint::Part::kMain && row_.has_status) keep("status");
  if (endpoint.part == Endpoint::Part::kStatus) keep("spec");
  const UpdateRules& rules = RulesOf(endpoint);
  if (rules.prepare_for_update != nullptr) rules.prepare_for_update(call, object, old);
}

void RESTStrategy::Validate(const Call& call, bool namespaced, Value object, FieldErrors& errors) const {
  if (row_.validate == nullptr || !row_.validates_metadata) {
    validation::ValidateObjectMeta(object["metadata"], namespaced, row_.name_rule, FieldPath("metadata"), errors,
                                   row_.core_finalizers);
  }
  if (row_.validate != nullptr) row_.validate(call, object, Value(), errors);
}

void RESTStrategy::ValidateUpdate(const Call& call, const Endpoint& endpoint, Value object, Value old,
                                  FieldErrors& errors) const {
  const UpdateRules& rules = RulesOf(endpoint);
  if (rules.validate_update != nullptr) rules.validate_update(call, object, old, errors);
}

void RESTStrategy::Warnings(const Call& call, const Endpoint& endpoint, Value object, Value old) const {
  const Warn warn = old.is_null() ? row_.warnings_on_create : RulesOf(endpoint).warnings_on_update;
  if (warn != nullptr) warn(call, object, old);
}

void RESTStrategy::Canonicalize(const Call& call, Value object, Value old) const {
  if (row_.canonicalize != nullptr) row_.canonicalize(call, object, old);
}

void RESTStrategy::MarkDeletion(const Call&, Value) const {}

bool RESTStrategy::TableRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) const {
  if (row_.table_row == nullptr) return false;
  row_.table_row(arena, clock, object, cells);
  return true;
}

Value RESTStrategy::RowConditions(base::Arena& arena, Value object) const {
  return row_.row_conditions != nullptr ? row_.row_conditions(arena, object) : Value();
}

}  // namespace keelson::registry
