#include "registry/rbac/bootstrap_policy.h"

#include <algorithm>
#include <string>

#include "auth/rbac/rules.h"
#include "base/check.h"
#include "base/strings.h"
#include "registry/rbac/bootstrap_data.h"
#include "registry/rules/rules.h"

namespace keelson::registry {
namespace {

using base::Arena;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kAPIVersion = "rbac.authorization.k8s.io/v1";
constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";
constexpr std::string_view kControllerPrefix = "system:controller:";

struct Abbreviation {
  std::string_view name;
  std::string_view verbs;
};
constexpr Abbreviation kVerbs[] = {
    {"R", "get,list,watch"},
    {"W", "create,delete,deletecollection,patch,update"},
    {"RU", "get,list,patch,update,watch"},
    {"RW", "create,delete,deletecollection,get,list,patch,update,watch"},
    {"EV", "create,patch,update"},
};

Value TextList(Arena& arena, std::string_view texts, char separator) {
  Value list = Value::List(arena);
  for (const std::string_view text : base::Split(texts, separator))
    list.Append(arena, text == "core" ? std::string_view() : text);
  return list;
}

Value Verbs(Arena& arena, std::string_view text) {
  for (const Abbreviation& abbreviation : kVerbs) {
    if (abbreviation.name == text) return TextList(arena, abbreviation.verbs, ',');
  }
  return TextList(arena, text, ',');
}

Value Rule(Arena& arena, std::string_view line) {
  const auto colon = line.find(" : ");
  KS_CHECK(colon != std::string_view::npos);
  Value rule = Value::Map(arena, 4);
  rule.Set(arena, "verbs", Verbs(arena, line.substr(colon + 3)));
  std::string_view what = line.substr(0, colon);
  if (what.starts_with("URL ")) {
    rule.Set(arena, "nonResourceURLs", TextList(arena, what.substr(4), ' '));
    return rule;
  }
  const auto parts = base::Split(what, ' ');
  KS_CHECK(parts.size() == 2 || parts.size() == 3);
  rule.Set(arena, "apiGroups", TextList(arena, parts[0], ','));
  rule.Set(arena, "resources", TextList(arena, parts[1], ','));
  if (parts.size() == 3) {
    constexpr std::string_view kNames = "names=";
    KS_CHECK(parts[2].starts_with(kNames));
    rule.Set(arena, "resourceNames", TextList(arena, parts[2].substr(kNames.size()), ','));
  }
  return rule;
}

void SetRules(Arena& arena, Value role, std::string_view lines) {
  if (lines.empty()) return;
  Value rules = role.EnsureList(arena, "rules");
  for (const std::string_view line : base::Split(lines, '\n')) {
    if (!line.empty()) rules.Append(arena, Rule(arena, line));
  }
}

Value Object(Arena& arena, std::string_view kind, std::string_view name_space, std::string_view name) {
  Value labels = Value::Map(arena, 2);
  labels.Set(arena, "kubernetes.io/bootstrapping", "rbac-defaults");
  Value annotations = Value::Map(arena, 1);
  annotations.Set(arena, kAutoUpdate, "true");
  Value metadata = Value::Map(arena, 4);
  metadata.Set(arena, "name", name);
  if (!name_space.empty()) metadata.Set(arena, "namespace", name_space);
  metadata.Set(arena, "labels", labels);
  metadata.Set(arena, "annotations", annotations);
  Value object = Value::Map(arena, 5);
  object.Set(arena, "kind", kind);
  object.Set(arena, "apiVersion", kAPIVersion);
  object.Set(arena, "metadata", metadata);
  return object;
}

Value AggregationLabel(Arena& arena, std::string_view label) {
  return Value::String(arena, std::string(kGroup) + "/" + std::string(label));
}

Value MakeSubject(Arena& arena, std::string_view text) {
  const auto colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  std::string_view name = text.substr(colon + 1);
  Value subject = Value::Map(arena, 3);
  if (kind == "SA") {
    const auto slash = name.find('/');
    subject.Set(arena, "kind", "ServiceAccount");
    subject.Set(arena, "name", name.substr(slash + 1));
    subject.Set(arena, "namespace", name.substr(0, slash));
  } else {
    subject.Set(arena, "kind", kind);
    subject.Set(arena, "apiGroup", kGroup);
    subject.Set(arena, "name", name);
  }
  return subject;
}

Value MakeBinding(Arena& arena, const bootstrap::BindingData& data) {
  const bool cluster = data.name_space.empty();
  Value binding = Object(arena, cluster ? "ClusterRoleBinding" : "RoleBinding", data.name_space, data.name);
  if (!data.subjects.empty()) {
    Value subjects = binding.EnsureList(arena, "subjects");
    for (const std::string_view subject : base::Split(data.subjects, ' '))
      subjects.Append(arena, MakeSubject(arena, subject));
  }
  Value reference = Value::Map(arena, 3);
  reference.Set(arena, "apiGroup", kGroup);
  reference.Set(arena, "kind", cluster ? "ClusterRole" : "Role");
  reference.Set(arena, "name", data.role);
  binding.Set(arena, "roleRef", reference);
  return binding;
}

bool Applies(const bootstrap::ClusterRoleData& role, GateEnabled gate_enabled) {
  return role.gate.empty() || (gate_enabled != nullptr && gate_enabled(role.gate));
}

bool IsProtected(const Value& existing) {
  return existing["metadata"]["annotations"][kAutoUpdate].as_string() == "false";
}

// Labels and annotations that are missing; what is there stays. True when something changed.
bool MergeMetadata(Arena& arena, Value object, const Value& expected) {
  bool changed = false;
  for (const std::string_view field : {"labels", "annotations"}) {
    for (const auto& member : expected["metadata"][field].members()) {
      Value have = object.EnsureMap(arena, "metadata").EnsureMap(arena, field);
      if (have.Has(member.key)) continue;
      have.Set(arena, member.key, member.value);
      changed = true;
    }
  }
  return changed;
}

// Items of `expected` that `list` does not have, appended. True when there were any.
bool AppendMissing(Arena& arena, Value owner, std::string_view field, const Value& expected) {
  bool changed = false;
  for (const Value& item : expected.items()) {
    const bool present =
        std::ranges::any_of(owner[field].items(), [&](const Value& have) { return rules::SemanticEqual(have, item); });
    if (present) continue;
    owner.EnsureList(arena, field).Append(arena, item.Clone(arena));
    changed = true;
  }
  return changed;
}

}  // namespace

std::vector<Value> BootstrapClusterRoles(Arena& arena, GateEnabled gate_enabled) {
  std::vector<Value> roles;
  for (const bootstrap::ClusterRoleData& data : bootstrap::ClusterRoles()) {
    if (!Applies(data, gate_enabled)) continue;
    Value role = Object(arena, "ClusterRole", {}, data.name);
    if (!data.label.empty())
      role["metadata"]["labels"].Set(arena, AggregationLabel(arena, data.label).as_string(), "true");
    SetRules(arena, role, data.rules);
    if (!data.aggregates.empty()) {
      Value selector = Value::Map(arena, 1);
      selector.EnsureMap(arena, "matchLabels").Set(arena, AggregationLabel(arena, data.aggregates).as_string(), "true");
      role.EnsureMap(arena, "aggregationRule").EnsureList(arena, "clusterRoleSelectors").Append(arena, selector);
    }
    roles.push_back(role);
  }
  return roles;
}

std::vector<Value> BootstrapRoles(Arena& arena) {
  std::vector<Value> roles;
  for (const bootstrap::RoleData& data : bootstrap::Roles()) {
    Value role = Object(arena, "Role", data.name_space, data.name);
    SetRules(arena, role, data.rules);
    roles.push_back(role);
  }
  return roles;
}

std::vector<Value> BootstrapClusterRoleBindings(Arena& arena, GateEnabled gate_enabled) {
  std::vector<Value> bindings;
  for (const bootstrap::BindingData& data : bootstrap::Bindings()) {
    if (data.name_space.empty()) bindings.push_back(MakeBinding(arena, data));
  }
  for (const bootstrap::ClusterRoleData& role : bootstrap::ClusterRoles()) {
    if (!role.name.starts_with(kControllerPrefix) || !Applies(role, gate_enabled)) continue;
    const std::string subject = "SA:kube-system/" + std::string(role.name.substr(kControllerPrefix.size()));
    bindings.push_back(
        MakeBinding(arena, {.name_space = {}, .name = role.name, .role = role.name, .subjects = arena.Copy(subject)}));
  }
  return bindings;
}

std::vector<Value> BootstrapRoleBindings(Arena& arena) {
  std::vector<Value> bindings;
  for (const bootstrap::BindingData& data : bootstrap::Bindings()) {
    if (!data.name_space.empty()) bindings.push_back(MakeBinding(arena, data));
  }
  return bindings;
}

Value SplitClusterRoleBinding(base::Arena& arena, const Value& source, const Value& expected) {
  Value made = expected.Clone(arena);
  const Value metadata = made.EnsureMap(arena, "metadata");
  const auto copy = [&](Value to, const Value& from, std::string_view key) {
    if (from.Has(key)) {
      to.Set(arena, key, from[key].Clone(arena));
    } else {
      to.Erase(key);
    }
  };
  copy(made, source, "subjects");
  copy(metadata, source["metadata"], "labels");
  copy(metadata, source["metadata"], "annotations");
  return made;
}

Reconciled ReconcileRole(Arena& arena, const Value& existing, const Value& expected) {
  Reconciled result;
  if (IsProtected(existing)) return result;
  Value object = existing.Clone(arena);
  bool changed = MergeMetadata(arena, object, expected);
  const Value aggregation = expected["aggregationRule"];
  if (aggregation.is_null()) {
    // The expected rules are ours and few, far from the bound.
    const auto missing = *auth::rbac::UncoveredRules(auth::rbac::RulesOf(existing), auth::rbac::RulesOf(expected));
    for (const auto& rule : missing) object.EnsureList(arena, "rules").Append(arena, auth::rbac::ToValue(arena, rule));
    changed = changed || !missing.empty();
    if (!existing["aggregationRule"].is_null()) {
      object.Erase("aggregationRule");
      changed = true;
    }
  } else {  // The rules are whatever the controller makes of the selectors.
    changed |= AppendMissing(arena, object.EnsureMap(arena, "aggregationRule"), "clusterRoleSelectors",
                             aggregation["clusterRoleSelectors"]);
  }
  if (!changed) return result;
  return {.action = Reconciled::Action::kUpdate, .object = object};
}

Reconciled ReconcileBinding(Arena& arena, const Value& existing, const Value& expected) {
  Reconciled result;
  if (IsProtected(existing)) return result;
  if (!rules::SemanticEqual(existing["roleRef"], expected["roleRef"])) {
    return {.action = Reconciled::Action::kRecreate, .object = expected.Clone(arena)};
  }
  Value object = existing.Clone(arena);
  bool changed = MergeMetadata(arena, object, expected);
  changed |= AppendMissing(arena, object, "subjects", expected["subjects"]);
  if (!changed) return result;
  return {.action = Reconciled::Action::kUpdate, .object = object};
}

}  // namespace keelson::registry
