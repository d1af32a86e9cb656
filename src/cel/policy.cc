#include "cel/policy.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace keelson::cel {
namespace {

constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

// utilerrors.NewAggregate: one bare, several in brackets without repeats.
std::string Aggregate(const std::vector<std::string>& errors) {
  if (errors.size() == 1) return errors[0];
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (std::ranges::find(distinct, error) == distinct.end()) distinct.push_back(error);
  }
  if (distinct.size() == 1) return distinct[0];
  return "[" + base::Join(distinct, ", ") + "]";
}

PolicyExpression Made(std::string_view expression, const Outcome<CompilationPtr, std::string>& compiled) {
  PolicyExpression made;
  made.expression = expression;
  if (compiled.ok()) {
    made.ast = (*compiled)->ast;
    made.program = (*compiled)->program;
    made.error = (*compiled)->error;
  } else {
    made.error = compiled.error();
  }
  return made;
}

}  // namespace

PolicyExpression MakePolicyExpression(const EnvironmentPtr& env, std::string_view expression,
                                      std::initializer_list<const Type*> results, ResultWording wording) {
  return Made(expression, CompileExpression(env, expression, results, wording));
}

std::vector<PolicyVariable> AddPolicyVariables(
    PolicyCompiler& compiler, std::span<const std::pair<std::string_view, std::string_view>> variables) {
  std::vector<PolicyVariable> out;
  for (const auto& [name, expression] : variables)
    out.push_back({std::string(name), Made(expression, compiler.AddVariable(name, expression))});
  return out;
}

std::vector<PolicyVariable> AddPolicyVariables(PolicyCompiler& compiler, const object::Value& variables) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (const object::Value& variable : variables.items())
    pairs.emplace_back(variable["name"].as_string(), variable["expression"].as_string());
  return AddPolicyVariables(compiler, pairs);
}

std::vector<MatchCondition> MakeMatchConditions(const EnvironmentPtr& env, const object::Value& conditions) {
  std::vector<MatchCondition> made;
  for (const object::Value& condition : conditions.items())
    made.push_back({std::string(condition["name"].as_string()),
                    MakePolicyExpression(env, condition["expression"].as_string(), {&kBoolType})});
  return made;
}

AdmissionActivation::AdmissionActivation(const AdmissionInputs& inputs, std::span<const PolicyVariable> variables)
    : inputs_(inputs), variables_(variables), values_(variables.size()) {}

bool AdmissionActivation::Find(Arena& arena, std::string_view name, Val* out) {
  if (name == "object") {
    *out = FromObject(arena, inputs_.object);
  } else if (name == "oldObject") {
    *out = FromObject(arena, inputs_.old_object);
  } else if (name == "request") {
    *out = FromObject(arena, inputs_.request);
  } else if (name == "params") {
    *out = FromObject(arena, inputs_.params);
  } else if (name == "namespaceObject") {
    *out = FromObject(arena, inputs_.namespace_object);
  } else if (name == "variables") {
    Map* map = arena.New<Map>();
    map->form = Map::Form::kLazy;
    map->lazy = this;
    map->size = static_cast<std::uint32_t>(variables_.size());
    *out = Val::Of(map);
  } else if (name == "authorizer" && inputs_.authorizer != nullptr) {
    *out = NewAuthorizer(arena, inputs_.authorizer);
  } else if (name == "authorizer.requestResource" && inputs_.authorizer != nullptr) {
    *out = NewResourceAuthorizer(arena, inputs_.authorizer, inputs_.request_resource);
  } else {
    return false;
  }
  return true;
}

bool AdmissionActivation::FindMember(Arena& arena, std::string_view name, Val* out) {
  if (indexes_.empty()) {
    // The last variable of a name counts, as in a Go map.
    for (std::size_t i = 0; i < variables_.size(); ++i) indexes_.insert_or_assign(variables_[i].name, i);
  }
  const auto found = indexes_.find(name);
  if (found == indexes_.end()) return false;
  std::optional<Val>& value = values_[found->second];
  if (!value) value = Evaluate(arena, variables_[found->second]);
  *out = *value;
  return true;
}

Val AdmissionActivation::Evaluate(Arena& arena, const PolicyVariable& variable) {
  const std::string quoted = base::GoQuote(variable.name);
  if (variable.expression.program == nullptr)
    return ErrorIn(arena, "composited variable ", quoted, " fails to compile: ", variable.expression.error);
  const char* const frame = static_cast<const char*>(__builtin_frame_address(0));
  const bool outermost = outermost_frame_ == nullptr;
  if (outermost) outermost_frame_ = frame;
  if (outermost_frame_ - frame > kVariableStackBytesMax) {
    return ErrorIn(arena, "composited variable ", quoted,
                   " fails to evaluate: ", "too many variables that refer to each other");
  }
  const EvalResult result = variable.expression.program->Evaluate(
      arena, *this, {.time_zones = inputs_.time_zones, .interrupt = inputs_.interrupt});
  if (outermost) outermost_frame_ = nullptr;
  variable_cost_ += result.cost;
  pending_ = pending_ || result.pending;
  return result.ok() ? result.value
                     : ErrorIn(arena, "composited variable ", quoted, " fails to evaluate: ", result.error());
}

std::uint64_t AdmissionActivation::TakeVariableCost() { return std::exchange(variable_cost_, 0); }

PolicyEvaluations EvaluatePolicyExpressions(Arena& arena, std::span<const PolicyExpression* const> expressions,
                                            const AdmissionInputs& inputs, std::span<const PolicyVariable> variables,
                                            std::int64_t budget) {
  PolicyEvaluations out;
  out.remaining_budget = budget;
  AdmissionActivation activation(inputs, variables);
  const auto pay = [&out](std::uint64_t cost) {
    if (cost > static_cast<std::uint64_t>(out.remaining_budget)) return false;
    out.remaining_budget -= static_cast<std::int64_t>(cost);
    return true;
  };
  for (const PolicyExpression* expression : expressions) {
    PolicyEvaluation& evaluation = out.results.emplace_back();
    if (expression == nullptr) continue;
    evaluation.evaluated = true;
    if (expression->program == nullptr) {
      evaluation.error = "compilation error: " + expression->error;
      continue;
    }
    const auto began = inputs.now == nullptr ? std::chrono::nanoseconds(0) : inputs.now();
    const EvalResult result = expression->program->Evaluate(
        arena, activation, {.time_zones = inputs.time_zones, .interrupt = inputs.interrupt});
    if (inputs.now != nullptr) evaluation.took = inputs.now() - began;
    if (result.pending || activation.pending()) {
      out.pending = true;
      out.results.clear();
      return out;
    }
    if (!pay(activation.TakeVariableCost()) || !pay(result.cost)) {
      out.results.clear();
      out.fatal = kOutOfBudget;
      out.remaining_budget = -1;
      return out;
    }
    if (result.ok()) {
      evaluation.value = result.value;
    } else {
      evaluation.error =
          "expression '" + expression->expression + "' resulted in error: " + std::string(result.error());
    }
  }
  return out;
}

MatchResult EvaluateMatchConditions(Arena& arena, std::span<const MatchCondition> conditions,
                                    FailurePolicy failure_policy, AdmissionInputs inputs,
                                    std::span<const PolicyVariable> variables) {
  inputs.namespace_object = {};
  std::vector<const PolicyExpression*> expressions;
  for (const MatchCondition& condition : conditions) expressions.push_back(&condition.expression);
  const PolicyEvaluations evaluations =
      EvaluatePolicyExpressions(arena, expressions, inputs, variables, kMatchConditionsBudget);
  MatchResult result;
  if (evaluations.pending) {
    result.pending = true;
    return result;
  }
  std::vector<std::string> errors;
  if (!evaluations.fatal.empty()) errors.push_back(evaluations.fatal);
  for (std::size_t i = 0; i < evaluations.results.size(); ++i) {
    const PolicyEvaluation& evaluation = evaluations.results[i];
    if (!evaluation.error.empty()) {
      errors.push_back(evaluation.error);
      ++result.failures;
    }
    if (!evaluation.error.empty() || !evaluation.value.is_false()) continue;
    result.failed_condition = conditions[i].name;
    return result;
  }
  if (errors.empty()) {
    result.matches = true;
  } else if (failure_policy == FailurePolicy::kFail) {
    result.error = Aggregate(errors);
  }
  return result;
}

std::shared_ptr<const ValidatingPolicyProgram> ValidatingPolicyProgram::New(const object::Value& spec,
                                                                            ExpressionMode mode) {
  auto program = std::make_shared<ValidatingPolicyProgram>();
  if (spec["failurePolicy"].as_string() == "Ignore") program->failure_policy_ = FailurePolicy::kIgnore;
  PolicyCompiler compiler(mode, spec["paramKind"].is_map(), !spec["variables"].empty());
  program->variables_ = AddPolicyVariables(compiler, spec["variables"]);
  const EnvironmentPtr env = compiler.environment(/*authorizer=*/true);
  const EnvironmentPtr message_env = compiler.environment(/*authorizer=*/false);
  program->match_conditions_ = MakeMatchConditions(env, spec["matchConditions"]);
  for (const object::Value& validation : spec["validations"].items()) {
    Validation made;
    made.expression = MakePolicyExpression(env, validation["expression"].as_string(), {&kBoolType});
    made.message = validation["message"].as_string();
    made.reason = validation["reason"].as_string();
    if (const std::string_view message = validation["messageExpression"].as_string(); !message.empty())
      made.message_expression = MakePolicyExpression(message_env, message, {&kStringType});
    program->has_messages_ = program->has_messages_ || made.message_expression.has_value();
    program->validations_.push_back(std::move(made));
  }
  for (const object::Value& annotation : spec["auditAnnotations"].items())
    program->audit_annotations_.push_back(
        {std::string(annotation["key"].as_string()),
         MakePolicyExpression(env, annotation["valueExpression"].as_string(), {&kStringType, &kNullType})});
  return program;
}

PolicyDecision ValidatingPolicyProgram::ErrorDecision(std::string message) const {
  PolicyDecision decision;
  decision.action =
      failure_policy_ == FailurePolicy::kIgnore ? PolicyDecision::Action::kAdmit : PolicyDecision::Action::kDeny;
  decision.evaluation = PolicyDecision::Evaluation::kError;
  decision.message = std::move(message);
  return decision;
}

PolicyDecision ValidatingPolicyProgram::Decide(const Validation& validation, const PolicyEvaluation& evaluation,
                                               const PolicyEvaluation* message) const {
  if (evaluation.value.is_true()) return {};
  PolicyDecision decision;
  decision.action = PolicyDecision::Action::kDeny;
  decision.evaluation = PolicyDecision::Evaluation::kDeny;
  decision.reason = validation.reason.empty() ? "Invalid" : validation.reason;
  if (message != nullptr && message->evaluated && message->error.empty() && message->value.is_string()) {
    const std::string_view text = base::Trim(message->value.text());
    if (text.size() <= kPolicyMessageBytesMax && text.find('\n') == std::string_view::npos) decision.message = text;
  }
  if (decision.message.empty()) decision.message = base::Trim(validation.message);
  if (decision.message.empty())
    decision.message = "failed expression: " + std::string(base::Trim(validation.expression.expression));
  return decision;
}

PolicyAuditAnnotation ValidatingPolicyProgram::Annotate(const AuditAnnotation& annotation,
                                                        const PolicyEvaluation& evaluation) const {
  using Action = PolicyAuditAnnotation::Action;
  PolicyAuditAnnotation out;
  out.key = annotation.key;
  out.took = evaluation.took;
  if (!evaluation.error.empty()) {
    out.action = failure_policy_ == FailurePolicy::kIgnore ? Action::kExclude : Action::kError;
    out.error = evaluation.error;
  } else if (evaluation.value.is_string()) {
    out.value = base::Trim(evaluation.value.text());
    if (!out.value.empty()) out.action = Action::kPublish;
  } else if (!evaluation.value.is_null()) {
    out.action = Action::kError;
    out.error = "valueExpression '" + annotation.value.expression +
                "' resulted in unsupported return type: " + std::string(TypeNameOf(evaluation.value)) +
                ". Return type must be either string or null.";
  }
  return out;
}

MatchResult ValidatingPolicyProgram::Match(Arena& arena, const AdmissionInputs& inputs) const {
  return EvaluateMatchConditions(arena, match_conditions_, failure_policy_, inputs, variables_);
}

PolicyResult ValidatingPolicyProgram::Unmatched(const MatchResult& match) const {
  PolicyResult out;
  out.pending = match.pending;
  if (!match.error.empty()) out.decisions.push_back(ErrorDecision(match.error));
  return out;
}

PolicyResult ValidatingPolicyProgram::Evaluate(Arena& arena, const AdmissionInputs& inputs) const {
  if (has_match_conditions()) {
    const MatchResult match = Match(arena, inputs);
    if (!match.matches) return Unmatched(match);
  }
  return Validate(arena, inputs);
}

PolicyResult ValidatingPolicyProgram::Validate(Arena& arena, const AdmissionInputs& inputs) const {
  PolicyResult out;
  std::vector<const PolicyExpression*> expressions, messages, annotations;
  for (const Validation& validation : validations_) {
    expressions.push_back(&validation.expression);
    messages.push_back(validation.message_expression ? &*validation.message_expression : nullptr);
  }
  for (const AuditAnnotation& annotation : audit_annotations_) annotations.push_back(&annotation.value);
  const PolicyEvaluations evaluated = EvaluatePolicyExpressions(arena, expressions, inputs, variables_, kPolicyBudget);
  if (evaluated.pending) {
    out.pending = true;
    return out;
  }
  if (!evaluated.fatal.empty()) {
    out.decisions.push_back(ErrorDecision(evaluated.fatal));
    return out;
  }
  AdmissionInputs without_authorizer = inputs;
  without_authorizer.authorizer = nullptr;
  PolicyEvaluations texts;
  if (has_messages_)
    texts = EvaluatePolicyExpressions(arena, messages, without_authorizer, variables_, evaluated.remaining_budget);
  for (std::size_t i = 0; i < validations_.size(); ++i) {
    const PolicyEvaluation& evaluation = evaluated.results[i];
    if (!evaluation.error.empty()) {
      out.decisions.push_back(ErrorDecision(evaluation.error));
    } else if (!texts.fatal.empty()) {
      out.decisions.push_back(ErrorDecision("failed messageExpression: " + texts.fatal));
    } else {
      out.decisions.push_back(
          Decide(validations_[i], evaluation, i < texts.results.size() ? &texts.results[i] : nullptr));
    }
    out.decisions.back().took = evaluation.took;
  }
  if (audit_annotations_.empty()) return out;
  const PolicyEvaluations values =
      EvaluatePolicyExpressions(arena, annotations, without_authorizer, variables_, kPolicyBudget);
  if (!values.fatal.empty()) {
    out.decisions = {ErrorDecision(values.fatal)};
    return out;
  }
  for (std::size_t i = 0; i < audit_annotations_.size(); ++i)
    out.audit_annotations.push_back(Annotate(audit_annotations_[i], values.results[i]));
  return out;
}

}  // namespace keelson::cel
