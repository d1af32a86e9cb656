// Compilation of expressions from simple to heavy: parse, check, validate literals, plan.
#include <benchmark/benchmark.h>

#include "cel/bench_cases_test.h"
#include "cel/compiler.h"
#include "cel/cost_estimator.h"
#include "cel/environment.h"
#include "cel/program_cache.h"

namespace keelson::cel {
namespace {

EnvironmentPtr Env() {
  return BaseEnvironment(ExpressionMode::kStored)->Extend({.variables = {{"object", &kDynType}}});
}

void BM_Compile(benchmark::State& state) {
  const auto env = Env();
  for (auto _ : state) {
    const CompilationPtr compiled = CompileProgram(env, BenchExpression(state.range(0)));
    KS_CHECK(compiled->program != nullptr);
  }
}
BENCHMARK(BM_Compile)->DenseRange(0, kBenchExpressions - 1);

void BM_EstimateCost(benchmark::State& state) {
  const auto ast = *Compile(Env(), BenchExpression(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(EstimateCost(*ast, {}));
}
BENCHMARK(BM_EstimateCost)->Arg(3);

void BM_CompileSyntaxError(benchmark::State& state) {
  const auto env = Env();
  for (auto _ : state) benchmark::DoNotOptimize(Compile(env, "object.spec.replicas <= 5 && (object.x"));
}
BENCHMARK(BM_CompileSyntaxError);

}  // namespace
}  // namespace keelson::cel
