#include "auth/rbac/index.h"

#include <algorithm>
#include <mutex>
#include <set>

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

Binding BindingOf(const Index::Change& change) {
  Binding binding{.name = change.name,
                  .name_space = change.name_space,
                  .role_is_cluster_role = change.object["roleRef"]["kind"].as_string() == "ClusterRole",
                  .role_name = std::string(change.object["roleRef"]["name"].as_string()),
                  .subjects = {}};
  for (const Value& subject : change.object["subjects"].items()) binding.subjects.push_back(SubjectOf(subject));
  return binding;
}

// A service account's user name is system:serviceaccount:<namespace>:<name>; compared in place.
bool IsServiceAccount(std::string_view user, std::string_view name_space, std::string_view name) {
  if (!user.starts_with(kServiceAccountPrefix)) return false;
  user.remove_prefix(kServiceAccountPrefix.size());
  return user.size() == name_space.size() + 1 + name.size() && user.starts_with(name_space) &&
         user[name_space.size()] == ':' && user.ends_with(name);
}

bool Applies(const Subject& subject, const Binding& binding, const request::User& user) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return subject.name == user.name;
    case Subject::Kind::kGroup:
      return user.InGroup(subject.name);
    case Subject::Kind::kServiceAccount: {
      // Without a namespace of its own it is one of the binding's; a cluster binding has none to lend.
      const std::string_view name_space = subject.name_space.empty() ? binding.name_space : subject.name_space;
      return !name_space.empty() && IsServiceAccount(user.name, name_space, subject.name);
    }
    case Subject::Kind::kOther:
      return false;
  }
  return false;
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

// utilerrors.NewAggregate: one bare, several in brackets, without repeats.
std::string Aggregate(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (std::ranges::find(distinct, error) == distinct.end()) distinct.push_back(error);
  }
  return distinct.size() == 1 ? distinct[0] : "[" + base::Join(distinct, ", ") + "]";
}

}  // namespace

std::string Source::ToString() const {
  const bool cluster = binding->name_space.empty();
  const std::string name = cluster ? binding->name : binding->name + "/" + binding->name_space;
  return std::string(cluster ? "ClusterRoleBinding " : "RoleBinding ") + base::GoQuote(name) + " of " +
         (binding->role_is_cluster_role ? "ClusterRole " : "Role ") + base::GoQuote(binding->role_name) + " to " +
         SubjectText(*subject, *binding);
}

std::shared_ptr<const Index> Index::With(std::span<const Change> changes) const {
  auto next = std::make_shared<Index>(*this);
  std::map<std::string, std::shared_ptr<Namespace>, std::less<>> touched;  // copies of namespaces, made on first change
  const auto name_space_of = [&](const std::string& name) -> Namespace& {
    auto& copy = touched[name];
    if (copy == nullptr) {
      const auto found = next->namespaces_.find(name);
      copy = found == next->namespaces_.end() ? std::make_shared<Namespace>()
                                              : std::make_shared<Namespace>(*found->second);
    }
    return *copy;
  };
  for (const Change& change : changes) {
    const bool is_role = change.kind == Kind::kRole || change.kind == Kind::kClusterRole;
    const bool cluster = change.kind == Kind::kClusterRole || change.kind == Kind::kClusterRoleBinding;
    if (is_role) {
      RuleMap& roles = cluster ? next->cluster_roles_ : name_space_of(change.name_space).roles;
      if (change.object.is_null()) {
        roles.erase(change.name);
      } else {
        roles.insert_or_assign(change.name, std::make_shared<const PolicyRules>(RulesOf(change.object)));
      }
    } else {
      BindingMap& bindings = cluster ? next->cluster_bindings_ : name_space_of(change.name_space).bindings;
      if (change.object.is_null()) {
        bindings.erase(change.name);
      } else {
        bindings.insert_or_assign(change.name, std::make_shared<const Binding>(BindingOf(change)));
      }
    }
  }
  for (auto& [name, copy] : touched) {
    if (copy->roles.empty() && copy->bindings.empty()) {
      next->namespaces_.erase(name);
    } else {
      next->namespaces_.insert_or_assign(name, std::move(copy));
    }
  }
  return next;
}

const PolicyRules* Index::FindRules(bool cluster_role, std::string_view name_space, std::string_view name) const {
  if (cluster_role) {
    const auto found = cluster_roles_.find(name);
    return found == cluster_roles_.end() ? nullptr : found->second.get();
  }
  const auto in = namespaces_.find(name_space);
  if (in == namespaces_.end()) return nullptr;
  const auto found = in->second->roles.find(name);
  return found == in->second->roles.end() ? nullptr : found->second.get();
}

bool Index::VisitBinding(const Binding& binding, const request::User& user, const Visitor& visit,
                         std::vector<std::string>& errors) const {
  const auto subject =
      std::ranges::find_if(binding.subjects, [&](const Subject& one) { return Applies(one, binding, user); });
  if (subject == binding.subjects.end()) return true;
  const PolicyRules* const rules = FindRules(binding.role_is_cluster_role, binding.name_space, binding.role_name);
  if (rules == nullptr) {
    errors.push_back(std::string(binding.role_is_cluster_role ? "clusterrole" : "role") +
                     ".rbac.authorization.k8s.io " + base::GoQuote(binding.role_name) + " not found");
    return true;
  }
  const Source source{.binding = &binding, .subject = &*subject};
  return std::ranges::all_of(*rules, [&](const PolicyRule& rule) { return visit(source, rule); });
}

void Index::VisitRulesFor(const request::User& user, std::string_view name_space, const Visitor& visit,
                          std::vector<std::string>& errors) const {
  for (const auto& [name, binding] : cluster_bindings_) {
    if (!VisitBinding(*binding, user, visit, errors)) return;
  }
  if (name_space.empty()) return;
  const auto in = namespaces_.find(name_space);
  if (in == namespaces_.end()) return;
  for (const auto& [name, binding] : in->second->bindings) {
    if (!VisitBinding(*binding, user, visit, errors)) return;
  }
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
  Authorization answer;
  std::vector<std::string> errors;
  VisitRulesFor(
      attributes.user, attributes.name_space,
      [&](const Source& source, const PolicyRule& rule) {
        if (!RuleAllows(attributes, rule)) return true;
        answer = {.decision = Decision::kAllow, .reason = "RBAC: allowed by " + source.ToString(), .error = {}};
        return false;
      },
      errors);
  if (answer.decision != Decision::kAllow && !errors.empty()) answer.reason = "RBAC: " + Aggregate(errors);
  return answer;
}

std::string EscalationProblem(const request::User& user, std::span<const PolicyRule> held,
                              std::span<const PolicyRule> wanted, std::span<const std::string> resolution_errors) {
  const PolicyRules missing = UncoveredRules(held, wanted);
  if (missing.empty()) return {};
  std::set<std::string> lines;
  for (const PolicyRule& rule : CompactRules(missing)) lines.insert(CompactString(rule));
  std::string groups;
  for (const std::string& group : user.groups) groups += (groups.empty() ? "" : " ") + base::GoQuote(group);
  std::string text = "user " + base::GoQuote(user.name) + " (groups=[" + groups +
                     "]) is attempting to grant RBAC permissions not currently held:\n" +
                     base::Join({lines.begin(), lines.end()}, "\n");
  if (!resolution_errors.empty()) {
    text += "; resolution errors: [" + base::Join({resolution_errors.begin(), resolution_errors.end()}, " ") + "]";
  }
  return text;
}

struct RBACAuthorizer::Impl {
  mutable std::mutex mutex;
  std::shared_ptr<const Index> index = std::make_shared<const Index>();
};

RBACAuthorizer::RBACAuthorizer() : impl_(std::make_unique<Impl>()) {}
RBACAuthorizer::~RBACAuthorizer() = default;

void RBACAuthorizer::Publish(std::shared_ptr<const Index> index) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->index = std::move(index);
}

std::shared_ptr<const Index> RBACAuthorizer::index() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->index;
}

Awaitable<Authorization> RBACAuthorizer::Authorize(Attributes attributes) {
  const auto snapshot = index();
  co_return snapshot->Authorize(attributes);
}

}  // namespace keelson::auth::rbac
