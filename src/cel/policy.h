// Expressions of admission policies and match conditions at run time: the variables they see, composited variables,
// budgets, and the decisions of a validating policy. Pure; texts and order follow apiserver's admission/plugin/cel and
// policy/validating.
// Thread safety: compiled forms are immutable; an AdmissionActivation belongs to one evaluation.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "cel/kubernetes_environments.h"
#include "cel/library_values.h"
#include "cel/program.h"
#include "object/value.h"

namespace keelson::cel {

inline constexpr std::int64_t kPolicyBudget = 10'000'000;          // validations and messages of one binding and param
inline constexpr std::int64_t kMatchConditionsBudget = 2'500'000;  // all conditions of a webhook or policy
inline constexpr std::size_t kPolicyMessageBytesMax = 5 * 1024;

struct PolicyExpression {
  std::string expression;
  AstPtr ast;
  ProgramPtr program;  // null with an error
  std::string error;   // "compilation failed: …", "must evaluate to …", "program instantiation failed: …"
};
PolicyExpression MakePolicyExpression(const EnvironmentPtr& env, std::string_view expression,
                                      std::initializer_list<const Type*> results,
                                      ResultWording wording = ResultWording::kGot);

struct PolicyVariable {
  std::string name;
  PolicyExpression expression;
};

// Compiles the variables of a policy in order and declares them to `compiler`: {name, expression}.
std::vector<PolicyVariable> AddPolicyVariables(
    PolicyCompiler& compiler, std::span<const std::pair<std::string_view, std::string_view>> variables);
std::vector<PolicyVariable> AddPolicyVariables(PolicyCompiler& compiler, const object::Value& variables);

// The admission request as expressions see it. Values are objects as Go writes them; null where there is none.
struct AdmissionInputs {
  object::Value object;
  object::Value old_object;
  object::Value request;
  object::Value params;
  object::Value namespace_object;
  AuthorizerFunctions* authorizer = nullptr;  // null: not bound
  AuthorizerFunctions::Attributes request_resource;
  const TimeZones* time_zones = nullptr;
  const Interrupt* interrupt = nullptr;
  std::chrono::nanoseconds (*now)() = nullptr;  // a clock to measure expressions by; null: nothing is measured
};

// Resolves object, oldObject, request, params, namespaceObject, authorizer and variables. A variable is evaluated when
// it is first read, once.
class AdmissionActivation final : public Activation, private LazyMembers {
 public:
  // Maximum stack of variables that refer to each other. Beyond it the evaluation of a variable is an error.
  static constexpr std::ptrdiff_t kVariableStackBytesMax = std::ptrdiff_t{1} << 20;

  AdmissionActivation(const AdmissionInputs& inputs, std::span<const PolicyVariable> variables);
  bool Find(Arena& arena, std::string_view name, Val* out) override;
  std::uint64_t TakeVariableCost();  // spent on variables since the last call
  bool pending() const { return pending_; }

 private:
  bool FindMember(Arena& arena, std::string_view name, Val* out) override;
  Val Evaluate(Arena& arena, const PolicyVariable& variable);
  std::string_view MemberName(std::size_t index) const override { return variables_[index].name; }
  std::string_view type_name() const override { return "kubernetes.variables"; }
  const AdmissionInputs& inputs_;
  std::span<const PolicyVariable> variables_;
  std::vector<std::optional<Val>> values_;
  base::StringViewMap<std::size_t> indexes_;  // of variables_ by name, made on first use
  const char* outermost_frame_ = nullptr;     // of the variable that is being evaluated
  std::uint64_t variable_cost_ = 0;
  bool pending_ = false;
};

struct PolicyEvaluation {
  bool evaluated = false;  // false for the place of an absent expression
  Val value;
  std::string error;  // "expression '…' resulted in error: …", "compilation error: …"
  std::chrono::nanoseconds took{0};
};

struct PolicyEvaluations {
  std::vector<PolicyEvaluation> results;
  std::string fatal;  // out of budget: no result counts
  std::int64_t remaining_budget = 0;
  bool pending = false;  // an authorizer has no answer yet: no result counts, evaluate again
};

// Evaluates expressions in order with one set of variables; null entries keep their place.
PolicyEvaluations EvaluatePolicyExpressions(Arena& arena, std::span<const PolicyExpression* const> expressions,
                                            const AdmissionInputs& inputs, std::span<const PolicyVariable> variables,
                                            std::int64_t budget);

enum class FailurePolicy : std::uint8_t { kFail, kIgnore };

struct MatchCondition {
  std::string name;
  PolicyExpression expression;
};

// matchConditions of a policy or webhook: [{name, expression}].
std::vector<MatchCondition> MakeMatchConditions(const EnvironmentPtr& env, const object::Value& conditions);

struct MatchResult {
  bool matches = false;
  std::string error;             // with kFail
  std::string failed_condition;  // the first condition that is false
  std::size_t failures = 0;      // conditions that could not be evaluated, before the first that is false
  bool pending = false;
};

// All conditions are evaluated; a false one decides even if others fail. namespaceObject is always null here.
MatchResult EvaluateMatchConditions(Arena& arena, std::span<const MatchCondition> conditions,
                                    FailurePolicy failure_policy, AdmissionInputs inputs,
                                    std::span<const PolicyVariable> variables = {});

struct PolicyDecision {
  enum class Action : std::uint8_t { kAdmit, kDeny };
  enum class Evaluation : std::uint8_t { kAdmit, kError, kDeny };
  Action action = Action::kAdmit;
  Evaluation evaluation = Evaluation::kAdmit;
  std::string message;
  std::string reason;
  std::chrono::nanoseconds took{0};
};

struct PolicyAuditAnnotation {
  enum class Action : std::uint8_t { kPublish, kExclude, kError };
  std::string key;
  std::string value;
  Action action = Action::kExclude;
  std::string error;
  std::chrono::nanoseconds took{0};
};

struct PolicyResult {
  std::vector<PolicyDecision> decisions;  // one a validation, in order; none where the match conditions do not hold
  std::vector<PolicyAuditAnnotation> audit_annotations;
  bool pending = false;
};

// spec of a ValidatingAdmissionPolicy, compiled.
class ValidatingPolicyProgram {
 public:
  static std::shared_ptr<const ValidatingPolicyProgram> New(const object::Value& spec, ExpressionMode mode);
  // Match, Unmatched and Validate in one.
  PolicyResult Evaluate(Arena& arena, const AdmissionInputs& inputs) const;
  bool has_match_conditions() const { return !match_conditions_.empty(); }
  MatchResult Match(Arena& arena, const AdmissionInputs& inputs) const;
  PolicyResult Unmatched(const MatchResult& match) const;  // REQUIRES: !match.matches
  PolicyResult Validate(Arena& arena, const AdmissionInputs& inputs) const;
  FailurePolicy failure_policy() const { return failure_policy_; }

 private:
  struct Validation {
    PolicyExpression expression;
    std::string message;
    std::string reason;
    std::optional<PolicyExpression> message_expression;
  };
  struct AuditAnnotation {
    std::string key;
    PolicyExpression value;
  };
  PolicyDecision ErrorDecision(std::string message) const;
  PolicyDecision Decide(const Validation& validation, const PolicyEvaluation& evaluation,
                        const PolicyEvaluation* message) const;
  PolicyAuditAnnotation Annotate(const AuditAnnotation& annotation, const PolicyEvaluation& evaluation) const;

  FailurePolicy failure_policy_ = FailurePolicy::kFail;
  std::vector<PolicyVariable> variables_;
  std::vector<MatchCondition> match_conditions_;
  std::vector<Validation> validations_;
  bool has_messages_ = false;  // any messageExpression
  std::vector<AuditAnnotation> audit_annotations_;
};

}  // namespace keelson::cel
