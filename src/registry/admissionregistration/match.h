// What webhooks, policies and bindings say about the requests they are for.
#pragma once

#include "registry/strategy.h"

namespace keelson::registry::match {

void DefaultRules(base::Arena& arena, const Value& rules);        // scope
void DefaultMatchResources(base::Arena& arena, Value resources);  // of a policy or binding; nothing when it is null
void ValidateRuleWithOperations(const Value& rule, const FieldPath& path, FieldErrors& errors);
void ValidateMatchResources(const Value& resources, const FieldPath& path, FieldErrors& errors);
// `params`: conditions of a policy with paramKind may use `params`.
void ValidateMatchConditions(const Value& conditions, bool params, const FieldPath& path, FieldErrors& errors);
// Policies that change objects never see deletions. The path has no indices, as upstream's.
void ValidateMutatingOperations(const Value& resources, const FieldPath& path, FieldErrors& errors);
void WarnAboutStaticSuffix(const Call& call, Value object, Value old);

}  // namespace keelson::registry::match
