// Mutations of a MutatingAdmissionPolicy: an expression makes a patch, the caller applies it. Pure; texts and order
// follow apiserver's policy/mutating/patch.
// Thread safety: programs are immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cel/policy.h"
#include "object/value.h"

namespace keelson::cel {

enum class PatchType : std::uint8_t { kApplyConfiguration, kJSONPatch };

struct PolicyPatch {
  PatchType type = PatchType::kApplyConfiguration;
  object::Value value;   // an apply configuration with kind and apiVersion, or a list of operations
  std::string error;     // "" with a value
  bool pending = false;  // an authorizer has no answer yet
};

// spec of a MutatingAdmissionPolicy, compiled.
class MutatingPolicyProgram {
 public:
  static std::shared_ptr<const MutatingPolicyProgram> New(const object::Value& spec, ExpressionMode mode);

  FailurePolicy failure_policy() const { return failure_policy_; }
  bool has_match_conditions() const { return !match_conditions_.empty(); }
  MatchResult Match(Arena& arena, const AdmissionInputs& inputs) const;
  std::size_t mutation_count() const { return mutations_.size(); }
  // The patch of one mutation for inputs.object. REQUIRES: index < mutation_count().
  PolicyPatch Evaluate(Arena& arena, std::size_t index, const AdmissionInputs& inputs) const;

 private:
  struct Mutation {
    PatchType type;
    PolicyExpression expression;
  };
  FailurePolicy failure_policy_ = FailurePolicy::kFail;
  std::vector<PolicyVariable> variables_;
  std::vector<MatchCondition> match_conditions_;
  std::vector<Mutation> mutations_;
};

}  // namespace keelson::cel
