#include "cel/program.h"

#include <gtest/gtest.h>

#include <string>

#include "cel/environment.h"
#include "cel/kubernetes_environments.h"
#include "cel/policy.h"
#include "cel/program_cache.h"
#include "object/json_text.h"
#include "schema/structural/structural.h"

namespace keelson::cel {
namespace {

EnvironmentPtr Env() {
  return BaseEnvironment(ExpressionMode::kStored)
      ->Extend({.variables = {{"self", &kDynType}, {"other", &kDynType}, {"authorizer", &kAuthorizerType}}});
}

ProgramPtr MustPlan(std::string_view expression) {
  const CompilationPtr compiled = CompileProgram(Env(), expression);
  EXPECT_EQ(compiled->error, "");
  return compiled->program;
}

class After final : public Interrupt {
 public:
  explicit After(int checks) : left_(checks) {}
  bool Requested() const override { return --left_ < 0; }

 private:
  mutable int left_;
};

TEST(Program, InterruptIsCheckedEveryHundredIterations) {
  const ProgramPtr program = MustPlan("lists.range(1000).all(i, i >= 0)");
  Arena arena;
  ValueActivation activation;
  const After never(1000), soon(3);
  EXPECT_TRUE(program->Evaluate(arena, activation, {.interrupt = &never}).ok());
  const EvalResult stopped = program->Evaluate(arena, activation, {.interrupt = &soon});
  EXPECT_EQ(stopped.error(), "operation interrupted");
  EXPECT_FALSE(stopped.cost_exceeded);
}

class Undecided final : public AuthorizerFunctions {
 public:
  std::optional<Decision> Authorize(const Attributes&) override {
    if (!known) return std::nullopt;
    return Decision{Decision::Verdict::kAllow, "known now", std::nullopt};
  }
  bool known = false;
};

TEST(Program, UnknownAuthorizerDecisionEndsTheEvaluationAsPending) {
  const ProgramPtr program = MustPlan("true && authorizer.path('/x').check('get').allowed()");
  Arena arena;
  Undecided authorizer;
  ValueActivation activation;
  activation.Set("authorizer", NewAuthorizer(arena, &authorizer));
  EXPECT_TRUE(program->Evaluate(arena, activation).pending);
  authorizer.known = true;
  const EvalResult again = program->Evaluate(arena, activation);
  EXPECT_FALSE(again.pending);
  EXPECT_TRUE(again.value.is_true());
}

TEST(Program, SchemaDecidesEqualityAndConcatenationOfLists) {
  schema::structural::Pool pool;
  const auto schema = pool.Build(std::string_view(R"({"type":"object","properties":{
    "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
           "items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"integer"}}}},
    "a-b":{"type":"string"},"bytes":{"type":"string","format":"byte"}}})"));
  ASSERT_TRUE(schema.ok());
  Arena arena;
  const auto self = object::ParseJSON(
      arena, R"({"set":["a","b"],"map":[{"k":"x","v":1},{"k":"y","v":2}],"a-b":"dash","bytes":"aGk=","unknown":1})");
  const auto other = object::ParseJSON(arena, R"({"set":["b","a"],"map":[{"k":"y","v":2},{"k":"x","v":1}]})");
  ValueActivation activation;
  activation.Set("self", FromObject(arena, *self, {.node = schema->root()}));
  activation.Set("other", FromObject(arena, *other, {.node = schema->root()}));
  for (const char* expression :
       {"self.set == other.set", "self.map == other.map", "(self.set + ['a', 'c']) == ['a', 'b', 'c']",
        "(self.map + other.map).size() == 2", "self.a__dash__b == 'dash'", "self.bytes == b'hi'", "!has(self.unknown)",
        "['b', 'a'] != ['a', 'b']"}) {
    SCOPED_TRACE(expression);
    const EvalResult result = MustPlan(expression)->Evaluate(arena, activation);
    EXPECT_EQ(result.error(), "");
    EXPECT_TRUE(result.value.is_true());
  }
}

TEST(ProgramCache, KeepsTheMostRecentlyUsed) {
  ProgramCache cache(2);
  const EnvironmentPtr env = Env();
  const CompilationPtr one = cache.Get(env, "1 == 1");
  cache.Get(env, "2 == 2");
  EXPECT_EQ(cache.Get(env, "1 == 1"), one);
  cache.Get(env, "3 == 3");  // drops 2 == 2
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.Get(env, "1 == 1"), one);
  EXPECT_TRUE(cache.Get(env, "1 +")->error.starts_with("compilation failed: "));
  EXPECT_EQ(cache.Get(env, "int('x') == 1")->error,
            "program instantiation failed: type conversion error from 'string' to 'int'");
}

TEST(ProgramCache, BytesAreBounded) {
  const EnvironmentPtr env = Env();
  const std::size_t one = ProgramCache().Get(env, "1 == 1")->bytes() + 1024;
  ProgramCache cache(100, 3 * one);
  for (int i = 0; i < 20; ++i) cache.Get(env, std::to_string(i) + " == 1");
  EXPECT_GE(cache.size(), 1u);
  EXPECT_LE(cache.size(), 3u);
  EXPECT_LE(cache.bytes(), 3 * one);
}

TEST(CompileShared, KeepsProgramsOfPermanentEnvironmentsOnly) {
  const auto env = AdmissionEnvironment(ExpressionMode::kStored, {.authorizer = true});
  const CompilationPtr first = CompileShared(env, "request.name == 'a'");
  EXPECT_EQ(CompileShared(env, "request.name == 'a'"), first);
  EXPECT_NE(CompileShared(env, "request.name == 'b'"), first);
  const auto other = AdmissionEnvironment(ExpressionMode::kNew, {.authorizer = true});
  EXPECT_NE(CompileShared(other, "request.name == 'a'"), first);
  const auto extended = env->Extend({.variables = {{"x", &kIntType}}});
  EXPECT_NE(CompileShared(extended, "x == 1"), CompileShared(extended, "x == 1"));
  for (const auto& shared : {ClaimsEnvironment(), UserEnvironment(), SubjectAccessReviewEnvironment(),
                             DeviceEnvironment(ExpressionMode::kNew, {})})
    EXPECT_TRUE(shared->permanent());
  // Match conditions of two webhooks have one program.
  const auto one = MakePolicyExpression(env, "object.spec.x == 1", {&kBoolType});
  EXPECT_EQ(MakePolicyExpression(env, "object.spec.x == 1", {&kBoolType}).program, one.program);
}

}  // namespace
}  // namespace keelson::cel
