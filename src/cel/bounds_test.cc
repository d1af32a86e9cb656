// Bounds on what an expression or an object can cost: recursion, size, iterations, memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/scaling_test.h"
#include "cel/compiler.h"
#include "cel/environment.h"
#include "cel/policy.h"
#include "cel/program_cache.h"
#include "cel/testing/unparser.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

EnvironmentPtr Env() {
  return BaseEnvironment(ExpressionMode::kStored)->Extend({.variables = {{"self", &kDynType}, {"other", &kDynType}}});
}

std::string Repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

EvalResult Evaluate(Arena& arena, std::string_view expression, ValueActivation& activation,
                    const EvalOptions& options = {}) {
  const CompilationPtr compiled = CompileProgram(Env(), expression);
  EXPECT_EQ(compiled->error, "") << expression.substr(0, 80);
  return compiled->program == nullptr ? EvalResult{.value = Val::Error("no program")}
                                      : compiled->program->Evaluate(arena, activation, options);
}

TEST(Bounds, NestingAndChainsEndAtTheReferencesLimits) {
  struct Case {
    const char* name;
    std::string expression;
    const char* error;  // "" where it compiles
  };
  const Case cases[] = {
      {"parentheses", Repeated("(", 300) + "1" + Repeated(")", 300), "expression recursion limit exceeded: 250"},
      {"lists", Repeated("[", 300) + Repeated("]", 300), "expression recursion limit exceeded: 250"},
      {"open brackets", Repeated("[", 90'000), "expression recursion limit exceeded: 250"},
      {"additions", "1" + Repeated(" + 1", 300), "max recursion depth exceeded"},
      {"selections", "self" + Repeated(".a", 300), "max recursion depth exceeded"},
      {"conditionals", Repeated("true ? 1 : ", 300) + "1", "expression recursion limit exceeded: 250"},
      {"and", "true" + Repeated(" && true", 5'000), ""},
      {"not", Repeated("!", 5'000) + "true", ""},
      {"code points", Repeated(" ", 100'000) + "1", "expression code point size exceeds limit: size: 100001"},
      {"copies by macros", "optional.of(1)" + Repeated(".optMap(a, a + 1)", 100), "expands to too many nodes"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto compiled = Compile(Env(), c.expression);
    if (*c.error == '\0') {
      ASSERT_TRUE(compiled.ok()) << compiled.error();
      Arena arena;
      ValueActivation activation;
      EXPECT_TRUE(Evaluate(arena, c.expression, activation).value.is_true());
    } else {
      ASSERT_FALSE(compiled.ok());
      EXPECT_NE(compiled.error().find(c.error), std::string::npos) << compiled.error().substr(0, 300);
    }
  }
}

TEST(Bounds, DeepObjectsAreComparedAndPrinted) {
  Arena arena;
  std::string text = "1";
  for (int i = 0; i < object::kJSONDepthMax - 2; ++i) text = i % 2 == 0 ? "[" + text + "]" : "{\"a\":" + text + "}";
  const auto object = object::ParseJSON(arena, text);
  ASSERT_TRUE(object.has_value());
  ValueActivation activation;
  activation.Set("self", FromObject(arena, *object));
  activation.Set("other", FromObject(arena, object->Clone(arena)));
  EXPECT_TRUE(Evaluate(arena, "self == other", activation).value.is_true());
  EXPECT_TRUE(Evaluate(arena, "self in [other]", activation).value.is_true());
  EXPECT_TRUE(Evaluate(arena, "sets.contains([self], [other])", activation).value.is_true());
  EXPECT_FALSE(Evaluate(arena, "'%s'.format([self]) == ''", activation).cost_exceeded);
}

class After final : public Interrupt {
 public:
  explicit After(int checks) : left_(checks) {}
  bool Requested() const override { return --left_ < 0; }

 private:
  mutable int left_;
};

TEST(Bounds, InterruptEndsNestedComprehensions) {
  constexpr const char* kExpression = "lists.range(500).all(i, lists.range(500).all(j, i + j >= 0))";
  Arena arena;
  ValueActivation activation;
  const After soon(2);
  const EvalResult stopped = Evaluate(arena, kExpression, activation, {.interrupt = &soon});
  EXPECT_EQ(stopped.error(), "operation interrupted");
  EXPECT_LT(stopped.cost, 5'000u);
}

TEST(Bounds, CostEndsEvaluationsBeforeMemoryDoes) {
  constexpr const char* kExpressions[] = {
      "lists.range(9223372036854775807).size() > 0",
      "lists.range(1000000).map(i, [i, i]).size() > 0",
      "lists.range(1000).map(i, lists.range(1000)).map(l, l + l).size() > 0",
      "lists.range(400).all(a, lists.range(400).all(b, lists.range(400).all(c, a + b + c >= 0)))",
      "'aaaaaaaaaaaaaaaaaaaa'.split('').map(c, 'bbbbbbbbbbbbbbbbbbbb'.replace('', c)).join('').replace('', "
      "'x').replace('', "
      "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx').replace('', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx').size() > 0",
  };
  for (const char* expression : kExpressions) {
    SCOPED_TRACE(expression);
    Arena arena;
    ValueActivation activation;
    const EvalResult result = Evaluate(arena, expression, activation);
    EXPECT_TRUE(result.cost_exceeded || result.ok()) << result.error();
    EXPECT_LT(arena.reserved_bytes(), std::size_t{256} << 20);
  }
}

std::vector<PolicyDecision> DecisionsOf(std::size_t variables) {
  std::string spec = R"({"variables":[{"name":"v0","expression":"1"})";
  for (std::size_t i = 1; i < variables; ++i) {
    spec += R"(,{"name":"v)" + std::to_string(i) + R"(","expression":"variables.v)" + std::to_string(i - 1) + "\"}";
  }
  spec += R"(],"validations":[{"expression":"variables.v)" + std::to_string(variables - 1) + R"( == 1"}]})";
  Arena arena;
  const auto program = ValidatingPolicyProgram::New(*object::ParseJSON(arena, spec), ExpressionMode::kStored);
  return program->Evaluate(arena, {}).decisions;
}

// Without the bound a chain of 4,000 variables overflows the thread's stack and ends the server.
TEST(Bounds, VariablesThatReferToEachOtherEnd) {
  const auto some = DecisionsOf(20);
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].evaluation, PolicyDecision::Evaluation::kAdmit) << some[0].message;
  const auto many = DecisionsOf(20'000);
  ASSERT_EQ(many.size(), 1U);
  EXPECT_EQ(many[0].evaluation, PolicyDecision::Evaluation::kError);
  EXPECT_NE(many[0].message.find("too many variables that refer to each other"), std::string::npos);
}

TEST(WorstCase, ManyVariablesAreLookedUpByHash) {
  const auto scaling = base::Measure(
      [](std::size_t n) {
        std::string variables, validations;
        for (std::size_t i = 0; i < n; ++i) {
          const std::string number = std::to_string(i), comma = i == 0 ? "" : ",";
          variables += comma + R"({"name":"v)" + number + R"(","expression":"1"})";
          validations += comma + R"({"expression":"variables.v)" + number + R"( == 1"})";
        }
        Arena arena;
        const auto spec =
            object::ParseJSON(arena, R"({"variables":[)" + variables + R"(],"validations":[)" + validations + "]}");
        const auto program = ValidatingPolicyProgram::New(*spec, ExpressionMode::kStored);
        EXPECT_EQ(program->Evaluate(arena, {}).decisions.size(), n);
      },
      2'000, 10'000);
  EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
}

}  // namespace
}  // namespace keelson::cel
