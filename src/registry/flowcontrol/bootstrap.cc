#include "registry/flowcontrol/bootstrap.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "base/check.h"

namespace keelson::registry {
namespace {

using base::Arena;
using Texts = std::initializer_list<std::string_view>;

constexpr std::string_view kAPIVersion = "flowcontrol.apiserver.k8s.io/v1";
constexpr std::string_view kAutoUpdateAnnotation = "apf.kubernetes.io/autoupdate-spec";

struct Level {
  std::string_view name;
  std::int64_t shares;
  std::int64_t lendable_percent;
  std::int64_t queues;  // 0: rejects
  std::int64_t hand_size;
};
constexpr std::int64_t kQueueLengthLimit = 50;
constexpr Level kLevels[] = {
    {"catch-all", 5, 0, 0, 0},          {"system", 30, 33, 64, 6},         {"node-high", 40, 25, 64, 6},
    {"leader-election", 10, 0, 16, 4},  {"workload-high", 40, 50, 128, 6}, {"workload-low", 100, 90, 128, 6},
    {"global-default", 20, 50, 128, 6},
};

Value TextList(Arena& arena, Texts texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string_view text : texts) list.Append(arena, text);
  return list;
}

Value Object(Arena& arena, std::string_view kind, std::string_view name, Value spec) {
  Value annotations = Value::Map(arena, 1);
  annotations.Set(arena, kAutoUpdateAnnotation, "true");
  Value metadata = Value::Map(arena, 2);
  metadata.Set(arena, "name", name);
  metadata.Set(arena, "annotations", annotations);
  Value object = Value::Map(arena, 4);
  object.Set(arena, "kind", kind);
  object.Set(arena, "apiVersion", kAPIVersion);
  object.Set(arena, "metadata", metadata);
  object.Set(arena, "spec", spec);
  return object;
}

Value ExemptLevel(Arena& arena, std::string_view name) {
  Value exempt = Value::Map(arena, 2);
  exempt.Set(arena, "nominalConcurrencyShares", 0);
  exempt.Set(arena, "lendablePercent", 0);
  Value spec = Value::Map(arena, 2);
  spec.Set(arena, "type", "Exempt");
  spec.Set(arena, "exempt", exempt);
  return Object(arena, "PriorityLevelConfiguration", name, spec);
}

Value LimitedLevel(Arena& arena, std::string_view name) {
  const Level* const level = std::ranges::find(kLevels, name, &Level::name);
  KS_CHECK(level != std::end(kLevels));
  Value response = Value::Map(arena, 2);
  response.Set(arena, "type", level->queues > 0 ? "Queue" : "Reject");
  if (level->queues > 0) {
    Value queuing = Value::Map(arena, 3);
    queuing.Set(arena, "queues", level->queues);
    queuing.Set(arena, "handSize", level->hand_size);
    queuing.Set(arena, "queueLengthLimit", kQueueLengthLimit);
    response.Set(arena, "queuing", queuing);
  }
  Value limited = Value::Map(arena, 3);
  limited.Set(arena, "nominalConcurrencyShares", level->shares);
  limited.Set(arena, "limitResponse", response);
  limited.Set(arena, "lendablePercent", level->lendable_percent);
  Value spec = Value::Map(arena, 2);
  spec.Set(arena, "type", "Limited");
  spec.Set(arena, "limited", limited);
  return Object(arena, "PriorityLevelConfiguration", name, spec);
}

void AddSubject(Arena& arena, Value subjects, std::string_view kind, std::string_view field, std::string_view name) {
  Value body = Value::Map(arena, 1);
  if (kind == "ServiceAccount") body.Set(arena, "namespace", "kube-system");
  body.Set(arena, "name", name);
  Value subject = Value::Map(arena, 2);
  subject.Set(arena, "kind", kind);
  subject.Set(arena, field, body);
  subjects.Append(arena, subject);
}

void AddResourceRule(Arena& arena, Value rule, Texts verbs, Texts groups, Texts resources, bool cluster_scope) {
  Value resource_rule = Value::Map(arena, 5);
  resource_rule.Set(arena, "verbs", TextList(arena, verbs));
  resource_rule.Set(arena, "apiGroups", TextList(arena, groups));
  resource_rule.Set(arena, "resources", TextList(arena, resources));
  if (cluster_scope) resource_rule.Set(arena, "clusterScope", true);
  resource_rule.Set(arena, "namespaces", TextList(arena, {"*"}));
  rule.EnsureList(arena, "resourceRules").Append(arena, resource_rule);
}

void AddNonResourceRule(Arena& arena, Value rule, Texts verbs, Texts urls) {
  Value url_rule = Value::Map(arena, 2);
  url_rule.Set(arena, "verbs", TextList(arena, verbs));
  url_rule.Set(arena, "nonResourceURLs", TextList(arena, urls));
  rule.EnsureList(arena, "nonResourceRules").Append(arena, url_rule);
}

void AddEverything(Arena& arena, Value rule) {
  AddResourceRule(arena, rule, {"*"}, {"*"}, {"*"}, true);
  AddNonResourceRule(arena, rule, {"*"}, {"*"});
}

struct Schema {
  std::string_view name;
  std::string_view level;
  std::int64_t precedence;
  std::string_view distinguisher;
  std::string_view groups[2];
  std::string_view users[2];
  bool kube_system_accounts;
  void (*rules)(Arena& arena, Value rule);
};

constexpr std::string_view kUnauthenticated = "system:unauthenticated";
constexpr std::string_view kAuthenticated = "system:authenticated";
constexpr std::string_view kControllerManager = "system:kube-controller-manager";
constexpr std::string_view kScheduler = "system:kube-scheduler";

void ProbeRules(Arena& arena, Value rule) {
  AddNonResourceRule(arena, rule, {"get"}, {"/healthz", "/readyz", "/livez"});
}
void LeaderElectionRules(Arena& arena, Value rule) {
  AddResourceRule(arena, rule, {"get", "create", "update"}, {"coordination.k8s.io"}, {"leases"}, false);
}
void NodeHighRules(Arena& arena, Value rule) {
  AddResourceRule(arena, rule, {"*"}, {""}, {"nodes", "nodes/status"}, true);
  AddResourceRule(arena, rule, {"*"}, {"coordination.k8s.io"}, {"leases"}, false);
}

constexpr Schema kSchemas[] = {
    {"exempt", "exempt", 1, "", {"system:masters"}, {}, false, AddEverything},
    {"catch-all", "catch-all", 10000, "ByUser", {kUnauthenticated, kAuthenticated}, {}, false, AddEverything},
    {"system-nodes", "system", 500, "ByUser", {"system:nodes"}, {}, false, AddEverything},
    {"system-node-high", "node-high", 400, "ByUser", {"system:nodes"}, {}, false, NodeHighRules},
    {"probes", "exempt", 2, "", {kUnauthenticated, kAuthenticated}, {}, false, ProbeRules},
    {"system-leader-election",
     "leader-election",
     100,
     "ByUser",
     {},
     {kControllerManager, kScheduler},
     true,
     LeaderElectionRules},
    {"kube-controller-manager", "workload-high", 800, "ByNamespace", {}, {kControllerManager}, false, AddEverything},
    {"kube-scheduler", "workload-high", 800, "ByNamespace", {}, {kScheduler}, false, AddEverything},
    {"kube-system-service-accounts", "workload-high", 900, "ByNamespace", {}, {}, true, AddEverything},
    {"service-accounts", "workload-low", 9000, "ByUser", {"system:serviceaccounts"}, {}, false, AddEverything},
    {"global-default", "global-default", 9900, "ByUser", {kUnauthenticated, kAuthenticated}, {}, false, AddEverything},
};

Value FlowSchema(Arena& arena, std::string_view name) {
  const Schema* const schema = std::ranges::find(kSchemas, name, &Schema::name);
  KS_CHECK(schema != std::end(kSchemas));
  Value level = Value::Map(arena, 1);
  level.Set(arena, "name", schema->level);
  Value rule = Value::Map(arena, 3);
  Value subjects = rule.EnsureList(arena, "subjects");
  for (const std::string_view group : schema->groups) {
    if (!group.empty()) AddSubject(arena, subjects, "Group", "group", group);
  }
  for (const std::string_view user : schema->users) {
    if (!user.empty()) AddSubject(arena, subjects, "User", "user", user);
  }
  if (schema->kube_system_accounts) AddSubject(arena, subjects, "ServiceAccount", "serviceAccount", "*");
  schema->rules(arena, rule);
  Value spec = Value::Map(arena, 4);
  spec.Set(arena, "priorityLevelConfiguration", level);
  spec.Set(arena, "matchingPrecedence", schema->precedence);
  if (!schema->distinguisher.empty()) {
    Value method = Value::Map(arena, 1);
    method.Set(arena, "type", schema->distinguisher);
    spec.Set(arena, "distinguisherMethod", method);
  }
  spec.EnsureList(arena, "rules").Append(arena, rule);
  return Object(arena, "FlowSchema", name, spec);
}

constexpr FlowControlObject kLevelObjects[] = {
    {"catch-all", true, LimitedLevel},        {"exempt", true, ExemptLevel},
    {"system", false, LimitedLevel},          {"node-high", false, LimitedLevel},
    {"leader-election", false, LimitedLevel}, {"workload-high", false, LimitedLevel},
    {"workload-low", false, LimitedLevel},    {"global-default", false, LimitedLevel},
};
constexpr FlowControlObject kSchemaObjects[] = {
    {"exempt", true, FlowSchema},
    {"catch-all", true, FlowSchema},
    {"system-nodes", false, FlowSchema},
    {"system-node-high", false, FlowSchema},
    {"probes", false, FlowSchema},
    {"system-leader-election", false, FlowSchema},
    {"kube-controller-manager", false, FlowSchema},
    {"kube-scheduler", false, FlowSchema},
    {"kube-system-service-accounts", false, FlowSchema},
    {"service-accounts", false, FlowSchema},
    {"global-default", false, FlowSchema},
};

Value MandatorySpec(Arena& arena, std::span<const FlowControlObject> objects, std::string_view name) {
  for (const FlowControlObject& object : objects) {
    if (object.mandatory && object.name == name) return object.build(arena, object.name)["spec"];
  }
  return {};
}

}  // namespace

std::span<const FlowControlObject> BootstrapPriorityLevelConfigurations() { return kLevelObjects; }
std::span<const FlowControlObject> BootstrapFlowSchemas() { return kSchemaObjects; }

Value MandatoryFlowSchemaSpec(Arena& arena, std::string_view name) {
  return MandatorySpec(arena, kSchemaObjects, name);
}
Value MandatoryPriorityLevelConfigurationSpec(Arena& arena, std::string_view name) {
  return MandatorySpec(arena, kLevelObjects, name);
}

}  // namespace keelson::registry
