// The status that a definition should have. Pure functions over its object in v1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiextensions/definition.h"
#include "base/arena.h"
#include "object/value.h"

namespace keelson::apiextensions {

inline constexpr std::string_view kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

struct Condition {
  std::string_view type, status, reason;
  std::string message;
};
// Sets the condition; its time changes with its status only. `now` must outlive the arena's use. False: it was so.
bool SetCondition(base::Arena& arena, Value definition, const Condition& condition, std::string_view now);
bool RemoveCondition(base::Arena& arena, Value definition, std::string_view type);

// Names are accepted one by one: a name that another definition of the group has accepted keeps the old one. Sets
// acceptedNames, NamesAccepted and, until it is True, Established. `others`: the definitions of the group, itself
// included. False: nothing changed.
bool AcceptNames(base::Arena& arena, Value definition, const std::vector<DefinitionPtr>& others, std::string_view now);
// KubernetesAPIApprovalPolicyConformant of protected groups. False: nothing changed.
bool CheckApproval(base::Arena& arena, Value definition, std::string_view now);
// NonStructuralSchema: only definitions of old, which preserve unknown fields, can have such schemas; all others were
// refused when they were written. False: nothing changed.
bool CheckStructural(base::Arena& arena, Value definition, std::string_view now);
bool RemoveFinalizer(base::Arena& arena, Value definition);

}  // namespace keelson::apiextensions
