#include "auth/rbac/index.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/atomic_ref.h"
#include "base/strings.h"

namespace keelson::auth::rbac {
namespace {

constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";

Subject SubjectOf(const Value& subject) {
  const std::string_view kind = subject["kind"].as_string();
  Subject out{.kind = Subject::Kind::kOther,
              .name = std::string(subject["name"].as_string()),
              .name_space = std::string(subject["namespace"].as_string())};
  if (kind == "User") out.kind = Subject::Kind::kUser;
  if (kind == "Group") out.kind = Subject::Kind::kGroup;
  if (kind == "ServiceAccount") out.kind = Subject::Kind::kServiceAccount;
  return out;
}

base::Ref<const Binding> BindingOf(const Index::Change& change) {
  auto binding = base::MakeRef<Binding>();
  binding->name = change.name;
  binding->name_space = change.name_space;
  binding->role_is_cluster_role = change.object["roleRef"]["kind"].as_string() == "ClusterRole";
  binding->role_name = change.object["roleRef"]["name"].as_string();
  binding->subjects.reserve(change.object["subjects"].size());
  for (const Value& subject : change.object["subjects"].items()) binding->subjects.push_back(SubjectOf(subject));
  return binding;
}

// A service account's user name is system:serviceaccount:<namespace>:<name>; compared in place.
bool IsServiceAccount(std::string_view user, std::string_view name_space, std::string_view name) {
  if (!user.starts_with(kServiceAccountPrefix)) return false;
  user.remove_prefix(kServiceAccountPrefix.size());
  return user.size() == name_space.size() + 1 + name.size() && user.starts_with(name_space) &&
         user[name_space.size()] == ':' && user.ends_with(name);
}

bool Applies(const Subject& subject, std::string_view binding_namespace, const request::User& user) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return subject.name == user.name;
    case Subject::Kind::kGroup:
      return user.InGroup(subject.name);
    case Subject::Kind::kServiceAccount: {
      // The namespace defaults to the binding's; a cluster binding has none.
      const std::string_view name_space = subject.name_space.empty() ? binding_namespace : subject.name_space;
      return !name_space.empty() && IsServiceAccount(user.name, name_space, subject.name);
    }
    case Subject::Kind::kOther:
      return false;
  }
  return false;
}

// The first subject that is the user, as upstream names it; null when the key texts were equal but the parts were not.
const Subject* FirstSubject(const Binding& binding, const request::User& user) {
  const auto found = std::ranges::find_if(binding.subjects,
                                          [&](const Subject& one) { return Applies(one, binding.name_space, user); });
  return found == binding.subjects.end() ? nullptr : &*found;
}

std::string SubjectText(const Subject& subject, const Binding& binding) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return "User " + base::GoQuote(subject.name);
    case Subject::Kind::kGroup:
      return "Group " + base::GoQuote(subject.name);
    case Subject::Kind::kServiceAccount: {
      const std::string_view name_space = subject.name_space.empty() ? binding.name_space : subject.name_space;
      return "ServiceAccount " + base::GoQuote(subject.name + "/" + std::string(name_space));
    }
    case Subject::Kind::kOther:
      break;
  }
  return base::GoQuote(subject.name);
}

std::string ServiceAccountText(std::string_view name_space, std::string_view name) {
  std::string text = "S";
  text += name_space;
  text += '/';
  text += name;
  return text;
}

// The key text of a subject in a binding of `binding_namespace`; "" for one that matches no user.
std::string SubjectKeyText(const Subject& subject, std::string_view binding_namespace) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return "U" + subject.name;
    case Subject::Kind::kGroup:
      return "G" + subject.name;
    case Subject::Kind::kServiceAccount: {
      const std::string_view name_space = subject.name_space.empty() ? binding_namespace : subject.name_space;
      return name_space.empty() ? "" : ServiceAccountText(name_space, subject.name);
    }
    case Subject::Kind::kOther:
      return "";
  }
  return "";
}

std::string MissingRole(const Binding& binding) {
  return std::string(binding.role_is_cluster_role ? "clusterrole" : "role") + ".rbac.authorization.k8s.io " +
         base::GoQuote(binding.role_name) + " not found";
}

}  // namespace

std::string Source::ToString() const {
  const bool cluster = binding->name_space.empty();
  const std::string name = cluster ? binding->name : binding->name + "/" + binding->name_space;
  return std::string(cluster ? "ClusterRoleBinding " : "RoleBinding ") + base::GoQuote(name) + " of " +
         (binding->role_is_cluster_role ? "ClusterRole " : "Role ") + base::GoQuote(binding->role_name) + " to " +
         SubjectText(*subject, *binding);
}

Index::SubjectKey Index::KeyOf(std::string_view text) { return {std::hash<std::string_view>()(text), text}; }

struct Index::UserKeys {
  explicit UserKeys(const request::User& user) {
    texts.reserve(user.groups.size() + 2);
    texts.push_back("U" + user.name);
    for (const std::string& group : user.groups) texts.push_back("G" + group);
    if (user.name.starts_with(kServiceAccountPrefix)) {
      std::string_view account(user.name);
      account.remove_prefix(kServiceAccountPrefix.size());
      // A namespace has no colon, so the first one ends it.
      if (const auto colon = account.find(':'); colon != std::string_view::npos)
        texts.push_back(ServiceAccountText(account.substr(0, colon), account.substr(colon + 1)));
    }
    keys.reserve(texts.size());
    for (const std::string& text : texts) keys.push_back(KeyOf(text));
  }
  std::vector<std::string> texts;
  std::vector<SubjectKey> keys;
};

void Index::Link(Scope& scope, const BindingRef& binding, bool link) {
  for (const Subject& subject : binding->subjects) {
    const std::string text = SubjectKeyText(subject, binding->name_space);
    if (text.empty()) continue;
    const SubjectKey key = KeyOf(text);
    const auto* found = scope.subjects.Find(key);
    auto entry = base::MakeRef<SubjectEntry>();
    entry->hash = key.hash;
    entry->text = text;
    if (found != nullptr) entry->bindings = (*found)->bindings;
    if (link) {
      entry->bindings.Put(binding);
    } else {
      entry->bindings.Erase(binding->name);
    }
    if (entry->bindings.empty()) {
      scope.subjects.Erase(key);
    } else {
      scope.subjects.Put(entry);
    }
  }
}

void Index::Apply(Scope& scope, const Change& change) {
  if (change.kind == Kind::kRole || change.kind == Kind::kClusterRole) {
    if (change.object.is_null()) {
      scope.roles.Erase(change.name);
    } else {
      scope.roles.Put(base::MakeRef<Role>(change.name, RulesOf(change.object)));
    }
    return;
  }
  if (const BindingRef* const before = scope.bindings.Find(change.name); before != nullptr) {
    const BindingRef gone = *before;
    Link(scope, gone, false);
    scope.bindings.Erase(gone->name);
  }
  if (change.object.is_null()) return;
  const BindingRef binding = BindingOf(change);
  scope.bindings.Put(binding);
  Link(scope, binding, true);
}

base::Ref<const Index> Index::With(std::span<const Change> changes) const {
  auto next = base::MakeRef<Index>();
  next->cluster_ = cluster_;
  next->namespaces_ = namespaces_;
  std::map<std::string_view, base::Ref<Scope>> touched;  // copies of scopes, made on first change; "": the cluster
  for (const Change& change : changes) {
    const bool cluster = change.kind == Kind::kClusterRole || change.kind == Kind::kClusterRoleBinding;
    const std::string_view name = cluster ? std::string_view() : std::string_view(change.name_space);
    auto& copy = touched[name];
    if (!copy) {
      copy = base::MakeRef<Scope>();
      copy->name = name;
      if (const Scope* const before = cluster ? cluster_.get() : FindScope(name); before != nullptr) {
        copy->subjects = before->subjects;
        copy->bindings = before->bindings;
        copy->roles = before->roles;
      }
    }
    Apply(*copy, change);
  }
  for (const auto& [name, scope] : touched) {
    if (name.empty()) {
      next->cluster_ = scope;
    } else if (scope->roles.empty() && scope->bindings.empty()) {
      next->namespaces_.Erase(name);
    } else {
      next->namespaces_.Put(scope);
    }
  }
  return next;
}

const Index::Scope* Index::FindScope(std::string_view name_space) const {
  const auto* const found = namespaces_.Find(name_space);
  return found == nullptr ? nullptr : found->get();
}

const SplitRules* Index::FindRules(const Binding& binding) const {
  const Scope* const scope = binding.role_is_cluster_role ? cluster_.get() : FindScope(binding.name_space);
  const RoleRef* const found = scope == nullptr ? nullptr : scope->roles.Find(binding.role_name);
  return found == nullptr ? nullptr : &(*found)->rules;
}

std::vector<Index::BindingRef> Index::BindingsOf(const Scope& scope, const UserKeys& keys) const {
  std::vector<BindingRef> bindings;
  for (const SubjectKey& key : keys.keys) {
    const auto* const entry = scope.subjects.Find(key);
    if (entry == nullptr) continue;
    for (auto at = (*entry)->bindings.begin(); at.valid(); at.Next()) bindings.push_back(*at);
  }
  std::ranges::sort(bindings, {}, [](const BindingRef& binding) -> const std::string& { return binding->name; });
  const auto repeated = std::ranges::unique(bindings);
  bindings.erase(repeated.begin(), repeated.end());
  return bindings;
}

bool Index::VisitScope(const Scope& scope, const UserKeys& keys, const request::User& user, const Visitor& visit,
                       std::vector<std::string>& errors) const {
  for (const BindingRef& binding : BindingsOf(scope, keys)) {
    const Source source{.binding = binding.get(), .subject = FirstSubject(*binding, user)};
    if (source.subject == nullptr) continue;
    const SplitRules* const rules = FindRules(*binding);
    if (rules == nullptr) {
      errors.push_back(MissingRole(*binding));
      continue;
    }
    if (!std::ranges::all_of(rules->rules(), [&](const PolicyRule& rule) { return visit(source, rule); })) return false;
  }
  return true;
}

void Index::VisitRulesFor(const request::User& user, std::string_view name_space, const Visitor& visit,
                          std::vector<std::string>& errors) const {
  const UserKeys keys(user);
  if (!VisitScope(*cluster_, keys, user, visit, errors) || name_space.empty()) return;
  if (const Scope* const scope = FindScope(name_space); scope != nullptr) VisitScope(*scope, keys, user, visit, errors);
}

bool Index::Allows(const Scope& scope, const UserKeys& keys, const Attributes& attributes, Authorization& answer,
                   bool& missing_role) const {
  for (const SubjectKey& key : keys.keys) {
    const auto* const entry = scope.subjects.Find(key);
    if (entry == nullptr) continue;
    for (auto at = (*entry)->bindings.begin(); at.valid(); at.Next()) {
      const Binding& binding = **at;
      const SplitRules* const rules = FindRules(binding);
      missing_role = missing_role || rules == nullptr;
      if (rules == nullptr || !rules->Allow(attributes)) continue;
      const Source source{.binding = &binding, .subject = FirstSubject(binding, *attributes.user)};
      if (source.subject == nullptr) continue;
      answer = {.decision = Decision::kAllow, .reason = "RBAC: allowed by " + source.ToString(), .error = {}};
      return true;
    }
  }
  return false;
}

PolicyRules Index::RulesFor(const request::User& user, std::string_view name_space,
                            std::vector<std::string>& errors) const {
  PolicyRules rules;
  VisitRulesFor(
      user, name_space,
      [&](const Source&, const PolicyRule& rule) {
        rules.push_back(rule);
        return true;
      },
      errors);
  return rules;
}

Authorization Index::Authorize(const Attributes& attributes) const {
  const UserKeys keys(*attributes.user);
  Authorization answer;
  bool missing_role = false;
  if (Allows(*cluster_, keys, attributes, answer, missing_role)) return answer;
  const Scope* const scope = attributes.name_space.empty() ? nullptr : FindScope(attributes.name_space);
  if (scope != nullptr && Allows(*scope, keys, attributes, answer, missing_role)) return answer;
  if (!missing_role) return answer;
  std::vector<std::string> errors;
  VisitRulesFor(*attributes.user, attributes.name_space, [](const Source&, const PolicyRule&) { return true; }, errors);
  if (!errors.empty()) answer.reason = "RBAC: " + AggregateErrors(errors);
  return answer;
}

bool BindingApplies(const Value& binding, std::string_view name_space, const request::User& user) {
  return std::ranges::any_of(binding["subjects"].items(),
                             [&](const Value& subject) { return Applies(SubjectOf(subject), name_space, user); });
}

bool MayConcern(std::string_view stored, const request::User& user) {
  constexpr std::string_view kProtobufMagic("k8s\0", 4);
  if (!stored.starts_with(kProtobufMagic)) return true;
  const auto has = [stored](std::string_view text) {
    return memmem(stored.data(), stored.size(), text.data(), text.size()) != nullptr;
  };
  // A service account is written as its bare name.
  const std::string_view account =
      user.name.starts_with(kServiceAccountPrefix) ? std::string_view(user.name).substr(user.name.rfind(':') + 1) : "";
  return has(user.name) || (!account.empty() && has(account)) || std::ranges::any_of(user.groups, has);
}

std::string EscalationProblem(const request::User& user, std::span<const PolicyRule> held,
                              std::span<const PolicyRule> wanted, std::span<const std::string> resolution_errors) {
  const auto uncovered = UncoveredRules(held, wanted);
  if (!uncovered) {
    return "rules expand to more than " + std::to_string(kRuleAtomsMax) +
           " combinations of group, resource, name and verb that no single rule of the user covers";
  }
  const PolicyRules& missing = *uncovered;
  if (missing.empty()) return {};
  std::set<std::string> lines;
  for (const PolicyRule& rule : CompactRules(missing)) lines.insert(CompactString(rule));
  std::string groups;
  for (const std::string& group : user.groups) groups += (groups.empty() ? "" : " ") + base::GoQuote(group);
  std::string text = "user " + base::GoQuote(user.name) + " (groups=[" + groups +
                     "]) is attempting to grant RBAC permissions not currently held:\n" +
                     base::Join({lines.begin(), lines.end()}, "\n");
  if (!resolution_errors.empty()) {
    text += "; resolution errors: [" + AggregateErrors(resolution_errors) + "]";
  }
  return text;
}

struct RBACAuthorizer::Impl {
  base::AtomicRef<const Index> index{base::MakeRef<Index>()};
};

RBACAuthorizer::RBACAuthorizer() : impl_(std::make_unique<Impl>()) {}
RBACAuthorizer::~RBACAuthorizer() = default;

void RBACAuthorizer::Publish(base::Ref<const Index> index) { impl_->index.Store(std::move(index)); }
base::Ref<const Index> RBACAuthorizer::index() const { return impl_->index.Load(); }

Authorization RBACAuthorizer::Decide(const Attributes& attributes) const { return index()->Authorize(attributes); }

ResolvedRules RBACAuthorizer::RulesFor(const request::User& user, std::string_view name_space) const {
  ResolvedRules resolved;
  std::vector<std::string> errors;
  for (PolicyRule& rule : index()->RulesFor(user, name_space, errors)) {
    if (!rule.resources.empty()) {
      resolved.resource_rules.push_back({.verbs = rule.verbs,
                                         .api_groups = rule.api_groups,
                                         .resources = rule.resources,
                                         .resource_names = rule.resource_names});
    }
    if (!rule.non_resource_urls.empty())
      resolved.non_resource_rules.push_back(
          {.verbs = std::move(rule.verbs), .urls = std::move(rule.non_resource_urls)});
  }
  if (!errors.empty()) resolved.errors.push_back(AggregateErrors(errors));
  return resolved;
}

}  // namespace keelson::auth::rbac
