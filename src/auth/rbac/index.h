// Roles and bindings in memory, and who may do what by them. An Index is an immutable snapshot: a change makes a new
// one that shares what it does not touch. Thread safety: const members from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "auth/authorizer.h"
#include "auth/rbac/rules.h"
#include "object/value.h"
#include "request/user.h"

namespace keelson::auth::rbac {

enum class Kind : std::uint8_t { kRole, kClusterRole, kRoleBinding, kClusterRoleBinding };

struct Subject {
  enum class Kind : std::uint8_t { kUser, kGroup, kServiceAccount, kOther };
  Kind kind = Kind::kOther;
  std::string name;
  std::string name_space;
};

struct Binding {
  std::string name;
  std::string name_space;  // "" of a ClusterRoleBinding
  bool role_is_cluster_role = true;
  std::string role_name;
  std::vector<Subject> subjects;
};

// Why a rule applies.
struct Source {
  const Binding* binding;
  const Subject* subject;
  std::string ToString() const;  // ClusterRoleBinding "n" of ClusterRole "r" to User "bob"
};

class Index {
 public:
  // One object that was written or, with a null object, deleted. `name_space` is empty for cluster kinds.
  struct Change {
    Kind kind;
    std::string name_space;
    std::string name;
    Value object;
  };

  Index() = default;
  // This snapshot with the changes in it; the Values are read and not kept.
  std::shared_ptr<const Index> With(std::span<const Change> changes) const;

  // Calls for each rule that applies to the user in the namespace ("" for cluster scope), cluster bindings first, by
  // name; stops when the visitor says false. Roles that bindings name and nobody has are told as errors.
  using Visitor = std::function<bool(const Source& source, const PolicyRule& rule)>;
  void VisitRulesFor(const request::User& user, std::string_view name_space, const Visitor& visit,
                     std::vector<std::string>& errors) const;
  PolicyRules RulesFor(const request::User& user, std::string_view name_space, std::vector<std::string>& errors) const;
  // The rules of what a binding refers to; nullptr when there is none.
  const PolicyRules* FindRules(bool cluster_role, std::string_view name_space, std::string_view name) const;

  Authorization Authorize(const Attributes& attributes) const;

 private:
  using RuleMap = std::map<std::string, std::shared_ptr<const PolicyRules>, std::less<>>;
  using BindingMap = std::map<std::string, std::shared_ptr<const Binding>, std::less<>>;
  struct Namespace {
    RuleMap roles;
    BindingMap bindings;
  };
  bool VisitBinding(const Binding& binding, const request::User& user, const Visitor& visit,
                    std::vector<std::string>& errors) const;

  RuleMap cluster_roles_;
  BindingMap cluster_bindings_;
  std::map<std::string, std::shared_ptr<const Namespace>, std::less<>> namespaces_;
};

// What a user who grants `wanted` without holding it is told; empty when all of it is held.
std::string EscalationProblem(const request::User& user, std::span<const PolicyRule> held,
                              std::span<const PolicyRule> wanted, std::span<const std::string> resolution_errors);

// The authorizer of --authorization-mode=RBAC over the newest snapshot.
class RBACAuthorizer final : public Authorizer {
 public:
  RBACAuthorizer();
  ~RBACAuthorizer() override;
  void Publish(std::shared_ptr<const Index> index);
  std::shared_ptr<const Index> index() const;
  Awaitable<Authorization> Authorize(Attributes attributes) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::auth::rbac
