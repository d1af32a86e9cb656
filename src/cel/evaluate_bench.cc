// Evaluation of expressions from simple to heavy on a Deployment, beside cel-go with the same ones (interop/cel).
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "cel/environment.h"
#include "cel/program_cache.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

constexpr std::string_view kObject = R"({"metadata":{"name":"web-1","labels":{"app":"web","tier":"front"},
"annotations":{"example.com/owner":"alice"}},"spec":{"replicas":5,"size":"5Gi","address":"10.1.2.3",
"template":{"spec":{"containers":[
{"name":"main","image":"registry.example.com/web:v2","resources":{"limits":{"cpu":"500m"}},"ports":[{"containerPort":8080}]},
{"name":"side","image":"registry.example.com/side:v1","resources":{"limits":{"cpu":"100m"}},"ports":[{"containerPort":9090}]}]}},
"rules":[{"host":"example.com","paths":[{"path":"/a","port":80},{"path":"/b","port":443}]},
{"host":"other.com","paths":[{"path":"/","port":8080}]}],
"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10}})";

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
    "lists.range(100).all(i, lists.range(20).all(j, i + j >= 0))",
};

void BM_Evaluate(benchmark::State& state) {
  base::Arena object_arena;
  const auto object = object::ParseJSON(object_arena, kObject);
  KS_CHECK(object.has_value());
  const auto env = BaseEnvironment(ExpressionMode::kStored)->Extend({.variables = {{"object", &kDynType}}});
  const auto compiled = CompileProgram(env, kExpressions[state.range(0)]);
  KS_CHECK(compiled->program != nullptr);
  for (auto _ : state) {
    base::Arena arena;
    ValueActivation activation;
    activation.Set("object", FromObject(arena, *object));
    const EvalResult result = compiled->program->Evaluate(arena, activation);
    KS_CHECK(result.ok());
    benchmark::DoNotOptimize(result);
  }
  state.counters["program_bytes"] = static_cast<double>(compiled->program->bytes());
}
BENCHMARK(BM_Evaluate)->DenseRange(0, std::size(kExpressions) - 1);

}  // namespace
}  // namespace keelson::cel
