// Admission policies and match conditions as apiserver evaluated them: KEELSON_SUITES/cel-kubernetes/policy.jsonl
// (default ../shared/testdata), kinds expr, match and vap; admission runs kind map. Prints "N of M"; skips where the
// folder is absent.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "cel/golden_policies_test.h"
#include "cel/golden_values_test.h"
#include "cel/policy.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using object::Value;

std::vector<std::pair<std::string_view, std::string_view>> Pairs(const Value& list) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (const Value& pair : list.items())
    out.emplace_back(pair[std::size_t{0}].as_string(), pair[std::size_t{1}].as_string());
  return out;
}

std::string RunExpression(Arena& arena, const Value& c, const AdmissionInputs& inputs) {
  PolicyCompiler compiler(ExpressionMode::kStored, c["paramKind"].as_bool(), /*composition=*/true);
  const auto variables = AddPolicyVariables(compiler, Pairs(c["variables"]));
  const EnvironmentPtr env = compiler.environment(!c["noAuthorizer"].as_bool());
  const std::string_view returns = c["returns"].as_string(), expression = c["expr"].as_string();
  const PolicyExpression made = returns == "bool"     ? MakePolicyExpression(env, expression, {&kBoolType})
                                : returns == "string" ? MakePolicyExpression(env, expression, {&kStringType})
                                : returns == "stringOrNull"
                                    ? MakePolicyExpression(env, expression, {&kStringType, &kNullType})
                                    : MakePolicyExpression(env, expression, {&kAnyType});
  if (made.program == nullptr) return "compile " + made.error;
  const std::int64_t budget = c.Has("budget") ? c["budget"].as_int() : kPolicyBudget;
  const PolicyExpression* const expressions[] = {&made};
  const auto evaluated = EvaluatePolicyExpressions(arena, expressions, inputs, variables, budget);
  if (!evaluated.fatal.empty()) return "fatal " + evaluated.fatal;
  const PolicyEvaluation& result = evaluated.results[0];
  return (result.error.empty() ? GoldenText(result.value) : "error " + result.error) + " cost " +
         std::to_string(budget - evaluated.remaining_budget);
}

std::string WantedExpression(const Value& out) {
  if (out.Has("compileError")) return "compile " + std::string(out["compileError"].as_string());
  if (out.Has("fatal")) return "fatal " + std::string(out["fatal"].as_string());
  return (out.Has("error") ? "error " + std::string(out["error"].as_string()) : NormalGoldenText(out["value"])) +
         " cost " + std::to_string(out["cost"].as_int());
}

std::string RunMatch(Arena& arena, const Value& c, const AdmissionInputs& inputs) {
  const EnvironmentPtr env = AdmissionEnvironment(
      ExpressionMode::kStored, {.params = c["paramKind"].as_bool(), .authorizer = !c["noAuthorizer"].as_bool()});
  std::vector<MatchCondition> conditions;
  for (const auto& [name, expression] : Pairs(c["conditions"]))
    conditions.push_back({std::string(name), MakePolicyExpression(env, expression, {&kBoolType})});
  const FailurePolicy policy =
      c["failurePolicy"].as_string() == "Ignore" ? FailurePolicy::kIgnore : FailurePolicy::kFail;
  const MatchResult result = EvaluateMatchConditions(arena, conditions, policy, inputs);
  return std::string(result.matches ? "matches" : "no match") + " error " + result.error + " failed " +
         result.failed_condition;
}

std::string WantedMatch(const Value& out) {
  return std::string(out["matches"].as_bool() ? "matches" : "no match") + " error " +
         std::string(out["error"].as_string()) + " failed " + std::string(out["failedCondition"].as_string());
}

std::string RunPolicy(Arena& arena, const Value& c, const AdmissionInputs& inputs) {
  const PolicyResult result = ValidatingPolicyProgram::New(c["spec"], ExpressionMode::kStored)->Evaluate(arena, inputs);
  std::string out;
  for (const PolicyDecision& decision : result.decisions) {
    constexpr const char* kEvaluations[] = {"admit", "error", "deny"};
    out += std::string(decision.action == PolicyDecision::Action::kAdmit ? "admit" : "deny") + " " +
           kEvaluations[static_cast<int>(decision.evaluation)] + " " + decision.reason + " " + decision.message + "\n";
  }
  for (const PolicyAuditAnnotation& annotation : result.audit_annotations) {
    constexpr const char* kActions[] = {"publish", "exclude", "error"};
    out += annotation.key + " " + kActions[static_cast<int>(annotation.action)] + " " + annotation.value + " " +
           annotation.error + "\n";
  }
  return out;
}

std::string WantedPolicy(const Value& out) {
  const auto text = [](const Value& value, const char* key) { return std::string(value[key].as_string()); };
  std::string wanted;
  for (const Value& d : out["decisions"].items())
    wanted +=
        text(d, "action") + " " + text(d, "evaluation") + " " + text(d, "reason") + " " + text(d, "message") + "\n";
  for (const Value& a : out["auditAnnotations"].items())
    wanted += text(a, "key") + " " + text(a, "action") + " " + text(a, "value") + " " + text(a, "error") + "\n";
  return wanted;
}

TEST(PolicyGoldens, Policies) {
  std::ifstream in(PolicyGoldensFolder() + "policy.jsonl");
  if (!in) GTEST_SKIP() << "no " << PolicyGoldensFolder();
  Arena fixtures_arena;
  PolicyFixtures fixtures(fixtures_arena);
  PolicyTally expressions{"expr"}, matches{"match"}, policies{"vap"}, questions{"asked"};
  for (std::string line; std::getline(in, line);) {
    Arena arena;
    const auto parsed = object::ParseJSON(arena, line);
    ASSERT_TRUE(parsed.has_value());
    const Value& c = *parsed;
    const Value& out = c["out"];
    ScriptedAuthorizer authorizer;
    const AdmissionInputs inputs = fixtures.Inputs(c, authorizer);
    const std::string_view kind = c["kind"].as_string();
    if (kind == "expr") {
      expressions.Add(c, WantedExpression(out), RunExpression(arena, c, inputs));
    } else if (kind == "match") {
      matches.Add(c, WantedMatch(out), RunMatch(arena, c, inputs));
    } else if (kind == "vap") {
      policies.Add(c, WantedPolicy(out), RunPolicy(arena, c, inputs));
    } else {
      continue;
    }
    if (out.Has("asked")) questions.Add(c, NormalAsked(out["asked"]), authorizer.Asked());
  }
  expressions.Report(0.995);
  matches.Report(0.995);
  policies.Report(0.995);
  questions.Report(0.995);
}

}  // namespace
}  // namespace keelson::cel
