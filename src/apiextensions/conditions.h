// The status that a definition should have. Pure functions over its object in v1.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

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

// The names that the definitions of one group have accepted. A definition comes, changes and goes in O(log n), however
// many the group has.
class GroupNames {
 public:
  void Add(const Names& accepted) { Count(accepted, 1); }
  void Remove(const Names& accepted) { Count(accepted, -1); }  // REQUIRES: added before.

  bool HasResource(std::string_view name) const { return resources_.contains(name); }  // plural, singular or short
  bool HasKind(std::string_view name) const { return kinds_.contains(name); }          // of an object or of a list

 private:
  using Uses = std::map<std::string, int, std::less<>>;
  static void Count(Uses& uses, const std::string& name, int by);
  void Count(const Names& names, int by);

  Uses resources_, kinds_;
};

// Names are accepted one by one: a name that another definition of the group has accepted keeps the old one. Sets
// acceptedNames, NamesAccepted and, until it is True, Established. `used`: of the definitions of the group, itself
// included. False: nothing changed.
bool AcceptNames(base::Arena& arena, Value definition, const GroupNames& used, std::string_view now);
// KubernetesAPIApprovalPolicyConformant of protected groups. False: nothing changed.
bool CheckApproval(base::Arena& arena, Value definition, std::string_view now);
// NonStructuralSchema: only definitions of old, which preserve unknown fields, can have such schemas; all others were
// refused when they were written. False: nothing changed.
bool CheckStructural(base::Arena& arena, Value definition, std::string_view now);
bool RemoveFinalizer(base::Arena& arena, Value definition);

}  // namespace keelson::apiextensions
