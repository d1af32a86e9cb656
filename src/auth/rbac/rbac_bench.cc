// A decision and a change with 50,000 bindings.
#include <benchmark/benchmark.h>

#include <string>

#include "auth/rbac/index.h"

namespace keelson::auth::rbac {
namespace {

constexpr int kBindings = 50'000;
constexpr int kNamespaces = 1000;

std::string Name(const char* prefix, int number) { return prefix + std::to_string(number); }

Value Texts(base::Arena& arena, std::initializer_list<std::string_view> texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string_view text : texts) list.Append(arena, text);
  return list;
}

Value EditRole(base::Arena& arena) {
  Value role = Value::Map(arena);
  Value rules = role.EnsureList(arena, "rules");
  for (const std::string_view group : {"", "apps", "batch", "autoscaling", "policy", "networking.k8s.io"}) {
    for (int i = 0; i < 5; ++i) {
      Value rule = Value::Map(arena);
      rule.Set(arena, "apiGroups", Texts(arena, {group}));
      rule.Set(arena, "resources", Texts(arena, {"pods", "services", "deployments", "jobs", "ingresses", "pods/log"}));
      rule.Set(arena, "verbs", Texts(arena, {"create", "delete", "get", "list", "patch", "update", "watch"}));
      rules.Append(arena, rule);
    }
  }
  return role;
}

Index::Change BindingChange(base::Arena& arena, int number) {
  Value binding = Value::Map(arena);
  Value ref = binding.EnsureMap(arena, "roleRef");
  ref.Set(arena, "kind", "ClusterRole");
  ref.Set(arena, "name", "edit");
  Value subject = Value::Map(arena);
  subject.Set(arena, "kind", number % 2 == 0 ? "User" : "ServiceAccount");
  subject.Set(arena, "name", Value::String(arena, Name(number % 2 == 0 ? "user-" : "account-", number)));
  subject.Set(arena, "namespace", "tools");
  binding.EnsureList(arena, "subjects").Append(arena, subject);
  const bool cluster = number % 10 == 0;
  return {cluster ? Kind::kClusterRoleBinding : Kind::kRoleBinding,
          cluster ? "" : Name("namespace-", number % kNamespaces), Name("binding-", number), binding};
}

base::Ref<const Index> Full(base::Arena& arena) {
  std::vector<Index::Change> changes = {{Kind::kClusterRole, "", "edit", EditRole(arena)}};
  for (int i = 0; i < kBindings; ++i) changes.push_back(BindingChange(arena, i));
  return base::MakeRef<Index>()->With(changes);
}

void BM_RBACDecision(benchmark::State& state) {
  base::Arena arena;
  const auto index = Full(arena);
  const bool allowed = state.range(0) != 0;
  Attributes attributes;
  attributes.user = {.name = "user-4242", .groups = {"developers", "team-blue", "system:authenticated"}};
  attributes.verb = "get";
  attributes.resource_request = true;
  attributes.api_group = "apps";
  attributes.resource = allowed ? "deployments" : "nodes";
  attributes.name_space = "namespace-242";
  for (auto _ : state) benchmark::DoNotOptimize(index->Authorize(attributes));
  state.SetLabel(allowed ? "allowed" : "refused");
}
BENCHMARK(BM_RBACDecision)->Arg(1)->Arg(0);

void BM_RBACChange(benchmark::State& state) {
  base::Arena arena;
  auto index = Full(arena);
  int number = 0;
  for (auto _ : state) {
    base::Arena one;
    const std::vector<Index::Change> changes = {BindingChange(one, number)};
    index = index->With(changes);
    number = (number + 7919) % kBindings;
  }
}
BENCHMARK(BM_RBACChange);

}  // namespace
}  // namespace keelson::auth::rbac
