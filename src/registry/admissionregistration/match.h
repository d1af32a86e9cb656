// Validation of the match criteria of webhooks, policies and bindings.
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

// Names that only static manifests may have: refused on create with the gate ManifestBasedAdmissionControlConfig, a
// warning without it. An update always warns.
void ValidateStaticSuffix(const Call& call, const Value& object, FieldErrors& errors);
void WarnAboutStaticSuffixOnCreate(const Call& call, Value object, Value old);
void WarnAboutStaticSuffix(const Call& call, Value object, Value old);

// A kind's rules on create, with ValidateStaticSuffix after them.
template <Validate kRules>
void ValidateCreate(const Call& call, Value object, Value old, FieldErrors& errors) {
  kRules(call, object, old, errors);
  ValidateStaticSuffix(call, object, errors);
}

}  // namespace keelson::registry::match
