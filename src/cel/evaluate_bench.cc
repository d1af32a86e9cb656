// Evaluation of expressions from simple to heavy on a Deployment.
#include <benchmark/benchmark.h>

#include "cel/bench_cases_test.h"
#include "cel/environment.h"
#include "cel/program_cache.h"

namespace keelson::cel {
namespace {

void BM_Evaluate(benchmark::State& state) {
  const object::Value object = BenchCases()["object"];
  const auto env = BaseEnvironment(ExpressionMode::kStored)->Extend({.variables = {{"object", &kDynType}}});
  const auto compiled = CompileProgram(env, BenchExpression(state.range(0)));
  KS_CHECK(compiled->program != nullptr);
  for (auto _ : state) {
    base::Arena arena;
    ValueActivation activation;
    activation.Set("object", FromObject(arena, object));
    const EvalResult result = compiled->program->Evaluate(arena, activation);
    KS_CHECK(result.value.is_true());
  }
  state.counters["program_bytes"] = static_cast<double>(compiled->program->bytes());
}
BENCHMARK(BM_Evaluate)->DenseRange(0, kBenchExpressions - 1);

}  // namespace
}  // namespace keelson::cel
