// Scheduling constraints of pods: node selectors, affinity, tolerations, taints, topology spread. Also for other kinds.
#pragma once

#include "registry/core/pod_options.h"
#include "registry/fields.h"

namespace keelson::registry::core {

void ValidateNodeSelector(Value selector, bool allow_invalid_values, const FieldPath& path, FieldErrors& errors);
void ValidateNodeSelectorTerm(Value term, bool allow_invalid_values, const FieldPath& path, FieldErrors& errors);
void ValidateAffinity(Value affinity, const PodOptions& options, const FieldPath& path, FieldErrors& errors);
void ValidateTolerations(Value tolerations, bool allow_comparison, const FieldPath& path, FieldErrors& errors);
void ValidateTaintEffect(Value effect, const FieldPath& path, FieldErrors& errors);  // not empty
void ValidateTopologySpread(Value constraints, const PodOptions& options, const FieldPath& path, FieldErrors& errors);

// Does the old object break a rule that new ones must keep?
bool HasInvalidValueInRequiredNodeAffinity(Value spec);
bool HasInvalidValueInAffinitySelector(Value spec);
bool HasInvalidSpreadSelector(Value spec);
bool HasRepeatedMatchLabelKeys(Value spec);

}  // namespace keelson::registry::core
