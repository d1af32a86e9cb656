// Compilation of expressions from simple to heavy: parse, check, validate literals.
#include <benchmark/benchmark.h>

#include "cel/compiler.h"
#include "cel/cost_estimator.h"
#include "cel/environment.h"

namespace keelson::cel {
namespace {

constexpr std::string_view kExpressions[] = {
    "object.spec.replicas <= 5",
    "has(object.metadata.labels) && 'app' in object.metadata.labels",
    "object.metadata.name.startsWith('web-') || object.metadata.name.matches('^[a-z][a-z0-9-]*$')",
    "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/') && "
    "has(c.resources.limits))",
    "object.spec.template.spec.containers.map(c, c.name).exists(n, n == 'main') ? "
    "size(object.spec.template.spec.containers) < 10 : true",
    "quantity(object.spec.size).isLessThan(quantity('10Gi')) && ip(object.spec.address).family() == 4",
    "object.spec.rules.exists_one(r, r.host == 'example.com' && r.paths.all(p, p.path.startsWith('/') && p.port > 0 && "
    "p.port < 65536))",
    "[1, 2, 3].map(x, x * 2).filter(y, y > 2).size() == 2 && {'a': 1, 'b': 2}.all(k, k.size() == 1)",
    "object.?metadata.?annotations[?'example.com/owner'].orValue('none') != 'none' && optional.of(1).optMap(v, v + "
    "1).value() == 2",
    "object.spec.a == 1 && object.spec.b == 2 && object.spec.c == 3 && object.spec.d == 4 && object.spec.e == 5 && "
    "object.spec.f == 6 && object.spec.g == 7 && object.spec.h == 8 && object.spec.i == 9 && object.spec.j == 10",
};

EnvironmentPtr Env() { return BaseEnvironment(ExpressionMode::kNew)->Extend({.variables = {{"object", &kDynType}}}); }

void BM_Compile(benchmark::State& state) {
  const auto env = Env();
  for (auto _ : state) benchmark::DoNotOptimize(Compile(env, kExpressions[state.range(0)]));
}
BENCHMARK(BM_Compile)->DenseRange(0, std::size(kExpressions) - 1);

void BM_EstimateCost(benchmark::State& state) {
  const auto ast = *Compile(Env(), kExpressions[state.range(0)]);
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
