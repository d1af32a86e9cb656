// ResourceQuota usage of an object: which quotas match it, and how much of each resource it uses. For admission and the
// quota controller. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "admission/plugins/amounts.h"
#include "base/clock.h"

namespace keelson::admission::quota {

std::string ToString(const Amounts& amounts);  // "cpu=1,pods=2"

// Is this a request that may change usage at all?
bool Handles(const Attributes& attributes);
// The names in `hard` that count objects of this resource (upstream's MatchingResources), sorted.
std::vector<std::string> MatchingNames(const Attributes& attributes, const Amounts& hard);
// Do all scopes of the quota hold for the object?
bool ScopesMatch(const Attributes& attributes, Value quota_spec, Value object);
// Scope requirements (ScopedResourceSelectorRequirement): those of `terms` that hold for the object.
std::vector<Value> MatchingScopes(const Attributes& attributes, const std::vector<Value>& terms, Value object);
// Upstream's Constraints: the error if the object lacks requests or limits that a quota on `names` requires ("must
// specify limits.cpu for: a,b"); empty if it has them all.
std::string MissingConstraints(const Attributes& attributes, const std::vector<std::string>& names, Value object);
Amounts Usage(const Attributes& attributes, Value object, base::Clock::SystemTime now);

}  // namespace keelson::admission::quota
