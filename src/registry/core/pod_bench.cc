// Cost of a pod between decoding and storage: defaults, preparation, validation; and its row of kubectl get.
#include <benchmark/benchmark.h>

#include "codec/json.h"
#include "registry/core/pod.h"
#include "schema/schema.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kPod =
    R"({"metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web","tier":"front"}},"spec":{
"serviceAccountName":"default","nodeSelector":{"kubernetes.io/os":"linux"},"volumes":[{"name":"config","configMap":{"name":"web"}},
{"name":"data","emptyDir":{}}],"containers":[{"name":"web","image":"registry.example/web:1.2.3","ports":[{"name":"http","containerPort":8080}],
"env":[{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"MODE","value":"fast"}],
"resources":{"requests":{"cpu":"250m","memory":"64Mi"},"limits":{"cpu":"500m","memory":"128Mi"}},
"volumeMounts":[{"name":"config","mountPath":"/etc/web"},{"name":"data","mountPath":"/data"}],
"readinessProbe":{"httpGet":{"path":"/healthz","port":"http"}},"livenessProbe":{"tcpSocket":{"port":8080}}},
{"name":"log","image":"registry.example/log:2"}],"tolerations":[{"key":"dedicated","operator":"Exists","effect":"NoSchedule"}],
"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname",
"labelSelector":{"matchLabels":{"app":"web"}}}]}}}})";

void BM_CreatePod(benchmark::State& state) {
  const schema::Struct& type = *schema::FindKind("", "v1", "Pod");
  std::vector<std::string> warnings;
  for (auto _ : state) {
    base::Arena arena;
    state.PauseTiming();
    Value pod = codec::DecodeJSON(arena, kPod, type)->value;
    state.ResumeTiming();
    const Call call{.arena = arena, .clock = base::Clock::Real(), .random = base::Random::Real(), .warnings = warnings};
    FieldErrors errors;
    DefaultPod(arena, pod);
    PreparePodForCreate(call, pod, {});
    ValidatePod(call, pod, {}, errors);
    WarnPodOnCreate(call, pod, {});
    benchmark::DoNotOptimize(errors);
  }
}
BENCHMARK(BM_CreatePod);

void BM_PodRow(benchmark::State& state) {
  base::Arena decoded;
  Value pod = codec::DecodeJSON(decoded, kPod, *schema::FindKind("", "v1", "Pod"))->value;
  for (auto _ : state) {
    base::Arena arena;
    Value cells = Value::List(arena, 9);
    PodRow(arena, base::Clock::Real(), pod, cells);
    benchmark::DoNotOptimize(cells);
  }
}
BENCHMARK(BM_PodRow);

}  // namespace
}  // namespace keelson::registry::core
