// Decisions and changes with 5,000 nodes and 100,000 pods, and the memory of that graph.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <string>

#include "auth/node/node_authorizer.h"

namespace keelson::auth::node {
namespace {

constexpr int kNodes = 5000;
constexpr int kPods = 100'000;
constexpr int kNamespaces = 1000;

std::string Name(const char* prefix, int number) { return prefix + std::to_string(number); }

PodReferences References(int pod) {
  return {.node_name = Name("node-with-a-usual-name-", pod % kNodes),
          .references = {{ReferenceType::kServiceAccount, Name("account-", pod % 5)},
                         {ReferenceType::kSecret, Name("secret-of-a-deployment-", pod / 3)},
                         {ReferenceType::kConfigMap, "kube-root-ca.crt"},
                         {ReferenceType::kConfigMap, Name("config-of-a-deployment-", pod / 3)},
                         {ReferenceType::kPersistentVolumeClaim, Name("data-of-pod-", pod)}}};
}

std::shared_ptr<Graph> Full(double* megabytes = nullptr) {
  const auto before = mallinfo2().uordblks;
  auto graph = std::make_shared<Graph>();
  for (int pod = 0; pod < kPods; ++pod)
    graph->SetPod(Name("namespace-", pod % kNamespaces), Name("deployment-7c9d5f7d8b-", pod), References(pod));
  if (megabytes != nullptr) *megabytes = static_cast<double>(mallinfo2().uordblks - before) / 1e6;
  return graph;
}

void BM_NodeDecision(benchmark::State& state) {
  double megabytes = 0;
  const NodeAuthorizer authorizer({.graph = Full(&megabytes)});
  Attributes attributes;
  attributes.user = {.name = "system:node:node-with-a-usual-name-77",
                     .groups = {"system:nodes", "system:authenticated"}};
  attributes.verb = "get";
  attributes.resource_request = true;
  attributes.resource = "secrets";
  int pod = 77;
  for (auto _ : state) {
    attributes.name_space = Name("namespace-", pod % kNamespaces);
    attributes.name = Name("secret-of-a-deployment-", pod / 3);
    benchmark::DoNotOptimize(authorizer.Decide(attributes));
    pod = (pod + kNodes) % kPods;
  }
  state.counters["MB"] = megabytes;
}
BENCHMARK(BM_NodeDecision);

void BM_NodePodChange(benchmark::State& state) {
  const auto graph = Full();
  int pod = 0;
  for (auto _ : state) {
    graph->SetPod(Name("namespace-", pod % kNamespaces), Name("deployment-7c9d5f7d8b-", pod), References(pod));
    pod = (pod + 7919) % kPods;
  }
}
BENCHMARK(BM_NodePodChange);

}  // namespace
}  // namespace keelson::auth::node
