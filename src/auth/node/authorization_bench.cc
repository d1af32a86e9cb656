// Latency of single authorization decisions, p50 and p99, with 50,000 bindings and with a Node graph of 5,000 nodes and
// 100,000 pods; the same while another thread changes the data; the cost of a change; the memory of both.
// Every decision is timed on its own, with the cost of reading the clock left in. No two decisions in a row are about
// the same user, namespace or object, so that the caches of the CPU are as cold as in a server.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "auth/node/node_authorizer.h"
#include "auth/rbac/index.h"

namespace keelson::auth {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBindings = 50'000;
constexpr int kNodes = 5000;
constexpr int kPods = 100'000;
constexpr int kNamespaces = 1000;
constexpr int kQuestions = 20'000;  // different ones, made before the measurement
constexpr int kDecisions = 400'000;
constexpr int kChanges = 20'000;
constexpr std::chrono::milliseconds kChangePause{1};  // of the thread that changes while others decide

std::string Name(const char* prefix, int number) { return prefix + std::to_string(number); }

double MegabytesInUse() { return static_cast<double>(mallinfo2().uordblks) / 1e6; }

void Report(const char* name, std::vector<std::int64_t> nanoseconds) {
  std::ranges::sort(nanoseconds);
  const auto at = [&](double part) {
    const auto place = static_cast<std::size_t>(part * static_cast<double>(nanoseconds.size() - 1));
    return static_cast<double>(nanoseconds[place]) / 1000;
  };
  std::printf("%-44s p50 %7.2f µs  p99 %7.2f µs  p99.9 %8.2f µs  (%zu samples)\n", name, at(0.5), at(0.99), at(0.999),
              nanoseconds.size());
}

std::vector<std::int64_t> Time(int times, const std::function<void(int)>& work) {
  std::vector<std::int64_t> taken;
  taken.reserve(static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    work(i);
    taken.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
  }
  return taken;
}

// Decisions alone, and while `change` is called once a millisecond by another thread.
void Decide(const char* name, const ImmediateAuthorizer& authorizer, const std::vector<Attributes>& questions,
            const std::function<void(int)>& change) {
  int allowed = 0;
  const auto decide = [&](int i) {
    const Attributes& question = questions[static_cast<std::size_t>(i) % questions.size()];
    allowed += authorizer.Decide(question).decision == Decision::kAllow ? 1 : 0;
  };
  Time(kQuestions, decide);
  allowed = 0;
  Report(name, Time(kDecisions, decide));
  std::printf("%44s %.1f %% allowed\n", "", 100.0 * allowed / kDecisions);
  std::atomic<bool> over{false};
  std::thread changing([&] {
    for (int i = 0; !over; ++i) {
      change(i);
      std::this_thread::sleep_for(kChangePause);
    }
  });
  Report((std::string(name) + ", 1,000 changes/s").c_str(), Time(kDecisions, decide));
  over = true;
  changing.join();
}

// RBAC.

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

// One in ten is a ClusterRoleBinding; half are for users, half for service accounts.
rbac::Index::Change BindingChange(base::Arena& arena, int number) {
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
  return {cluster ? rbac::Kind::kClusterRoleBinding : rbac::Kind::kRoleBinding,
          cluster ? "" : Name("namespace-", number % kNamespaces), Name("binding-", number), binding};
}

// Three in four are allowed by a binding of their user, the others by nothing.
std::vector<Attributes> RBACQuestions() {
  std::mt19937 random(1);
  std::vector<Attributes> questions;
  for (int i = 0; i < kQuestions; ++i) {
    const int number = static_cast<int>(random() % kBindings);
    Attributes question;
    const char* const prefix = number % 2 == 0 ? "user-" : "system:serviceaccount:tools:account-";
    question.user =
        request::User{.name = Name(prefix, number), .groups = {"developers", "team-blue", "system:authenticated"}};
    question.verb = "get";
    question.resource_request = true;
    question.api_group = "apps";
    question.resource = i % 4 == 0 ? "daemonsets" : "deployments";
    question.name_space = Name("namespace-", number % kNamespaces);
    question.name = Name("deployment-", i);
    questions.push_back(std::move(question));
  }
  return questions;
}

void RBAC() {
  base::Arena arena;
  std::vector<rbac::Index::Change> changes = {{rbac::Kind::kClusterRole, "", "edit", EditRole(arena)}};
  for (int i = 0; i < kBindings; ++i) changes.push_back(BindingChange(arena, i));
  const double before = MegabytesInUse();
  rbac::RBACAuthorizer authorizer;
  authorizer.Publish(base::MakeRef<rbac::Index>()->With(changes));
  std::printf("RBAC index of %d bindings: %.1f MB\n", kBindings, MegabytesInUse() - before);
  const auto change = [&authorizer](int i) {
    base::Arena one;
    const std::vector<rbac::Index::Change> made = {
        BindingChange(one, static_cast<int>(std::int64_t{i} * 7919 % kBindings))};
    authorizer.Publish(authorizer.index()->With(made));
  };
  Decide("RBAC decision", authorizer, RBACQuestions(), change);
  Report("RBAC change of a binding", Time(kChanges, change));
}

// Node.

node::PodReferences References(int pod) {
  using enum node::ReferenceType;
  return {.node_name = Name("node-with-a-usual-name-", pod % kNodes),
          .references = {{kServiceAccount, Name("account-", pod % 5)},
                         {kSecret, Name("secret-of-a-deployment-", pod / 3)},
                         {kConfigMap, "kube-root-ca.crt"},
                         {kConfigMap, Name("config-of-a-deployment-", pod / 3)},
                         {kPersistentVolumeClaim, Name("data-of-pod-", pod)}}};
}

void SetPod(node::Graph& graph, int pod) {
  graph.SetPod(Name("namespace-", pod % kNamespaces), Name("deployment-7c9d5f7d8b-", pod), References(pod));
}

// A kubelet gets a secret or a config map of one of its pods; one in four gets one of another node.
std::vector<Attributes> NodeQuestions() {
  std::mt19937 random(1);
  std::vector<Attributes> questions;
  for (int i = 0; i < kQuestions; ++i) {
    const int pod = static_cast<int>(random() % kPods);
    const int node = i % 4 == 0 ? (pod + 1234) % kNodes : pod % kNodes;
    Attributes question;
    question.user = request::User{.name = Name("system:node:node-with-a-usual-name-", node),
                                  .groups = {"system:nodes", "system:authenticated"}};
    question.verb = "get";
    question.resource_request = true;
    question.resource = i % 2 == 0 ? "secrets" : "configmaps";
    question.name_space = Name("namespace-", pod % kNamespaces);
    question.name = Name(i % 2 == 0 ? "secret-of-a-deployment-" : "config-of-a-deployment-", pod / 3);
    questions.push_back(std::move(question));
  }
  return questions;
}

void Node() {
  const double before = MegabytesInUse();
  const auto graph = std::make_shared<node::Graph>();
  for (int pod = 0; pod < kPods; ++pod) SetPod(*graph, pod);
  std::printf("Node graph of %d nodes and %d pods: %.1f MB\n", kNodes, kPods, MegabytesInUse() - before);
  const node::NodeAuthorizer authorizer({.graph = graph});
  const auto change = [&graph](int i) {
    const int pod = static_cast<int>(std::int64_t{i} * 7919 % kPods);
    graph->DeletePod(Name("namespace-", pod % kNamespaces), Name("deployment-7c9d5f7d8b-", pod));
    SetPod(*graph, pod);
  };
  Decide("Node decision", authorizer, NodeQuestions(), change);
  Report("Node deletion and creation of a pod", Time(kChanges, change));
}

}  // namespace
}  // namespace keelson::auth

int main() {
  keelson::auth::RBAC();
  keelson::auth::Node();
  return 0;
}
