// Roles and bindings in memory, and authorization by them. An Index is an immutable snapshot: a change makes a new
// one that shares what it does not touch and costs log n.
//
//   scope (the cluster, or one namespace)
//     ├─ subjects: hash of "User/bob", "Group/dev", "ServiceAccount/ns/name" ─► bindings that name it
//     ├─ bindings: by name, to find what a change replaces
//     └─ roles:    by name ─► rules, split by (API group, resource)
//
// A decision looks up the subjects of one user (a name, the groups, perhaps a service account) in two scopes; bindings
// of others are never seen. Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "auth/authorizer.h"
#include "auth/rbac/rules.h"
#include "auth/rbac/split_rules.h"
#include "base/btree.h"
#include "base/ref.h"
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

struct Binding : base::RefCounted {
  std::string name;
  std::string name_space;  // "" of a ClusterRoleBinding
  bool role_is_cluster_role = true;
  std::string role_name;
  std::vector<Subject> subjects;
};

struct Role : base::RefCounted {
  explicit Role(std::string role_name, PolicyRules policy_rules)
      : name(std::move(role_name)), rules(std::move(policy_rules)) {}
  std::string name;
  SplitRules rules;
};

// Why a rule applies.
struct Source {
  const Binding* binding;
  const Subject* subject;
  std::string ToString() const;  // ClusterRoleBinding "n" of ClusterRole "r" to User "bob"
};

class Index : public base::RefCounted {
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
  base::Ref<const Index> With(std::span<const Change> changes) const;

  // Calls for each rule that applies to the user in the namespace ("" for cluster scope), cluster bindings first, by
  // name; stops when the visitor says false. Roles that bindings name and that do not exist are errors.
  using Visitor = std::function<bool(const Source& source, const PolicyRule& rule)>;
  void VisitRulesFor(const request::User& user, std::string_view name_space, const Visitor& visit,
                     std::vector<std::string>& errors) const;
  PolicyRules RulesFor(const request::User& user, std::string_view name_space, std::vector<std::string>& errors) const;

  Authorization Authorize(const Attributes& attributes) const;

 private:
  using BindingRef = base::Ref<const Binding>;
  using RoleRef = base::Ref<const Role>;
  struct NameOf {
    template <class T>
    std::string_view operator()(const base::Ref<const T>& item) const {
      return item ? std::string_view(item->name) : std::string_view();
    }
  };
  using Bindings = base::BTree<BindingRef, NameOf>;
  // Subjects are ordered by hash, then by text: equal hashes cost a comparison, not a scan.
  struct SubjectKey {
    std::uint64_t hash = 0;
    std::string_view text;
    auto operator<=>(const SubjectKey&) const = default;
  };
  struct SubjectEntry : base::RefCounted {
    std::uint64_t hash = 0;
    std::string text;
    Bindings bindings;
  };
  struct KeyOfSubject {
    SubjectKey operator()(const base::Ref<const SubjectEntry>& entry) const {
      return entry ? SubjectKey{entry->hash, entry->text} : SubjectKey{};
    }
  };
  struct Scope : base::RefCounted {
    std::string name;
    base::BTree<base::Ref<const SubjectEntry>, KeyOfSubject> subjects;
    Bindings bindings;
    base::BTree<RoleRef, NameOf> roles;
  };
  // The user's subjects, hashed once for both scopes.
  struct UserKeys;

  static SubjectKey KeyOf(std::string_view text);
  static void Link(Scope& scope, const BindingRef& binding, bool link);
  static void Apply(Scope& scope, const Change& change);
  const Scope* FindScope(std::string_view name_space) const;
  const SplitRules* FindRules(const Binding& binding) const;
  std::vector<BindingRef> BindingsOf(const Scope& scope, const UserKeys& keys) const;
  bool VisitScope(const Scope& scope, const UserKeys& keys, const request::User& user, const Visitor& visit,
                  std::vector<std::string>& errors) const;
  // True with the answer when a binding of the scope allows the request. `missing_role`: some role was not there.
  bool Allows(const Scope& scope, const UserKeys& keys, const Attributes& attributes, Authorization& answer,
              bool& missing_role) const;

  base::Ref<const Scope> cluster_ = base::MakeRef<Scope>();
  base::BTree<base::Ref<const Scope>, NameOf> namespaces_;
};

// Whether one of the binding's subjects is the user; `name_space` is the binding's, "" for a ClusterRoleBinding.
bool BindingApplies(const Value& binding, std::string_view name_space, const request::User& user);
// False when the stored bytes of a binding name neither the user nor a group of theirs: it need not be decoded. Stored
// forms that may escape characters give true.
bool MayConcern(std::string_view stored, const request::User& user);

// Privilege escalation check: the error if `user` grants `wanted` without holding it; empty if all of it is held.
std::string EscalationProblem(const request::User& user, std::span<const PolicyRule> held,
                              std::span<const PolicyRule> wanted, std::span<const std::string> resolution_errors);

// The authorizer of --authorization-mode=RBAC over the newest snapshot.
class RBACAuthorizer final : public ImmediateAuthorizer, public RuleResolver {
 public:
  RBACAuthorizer();
  ~RBACAuthorizer() override;
  void Publish(base::Ref<const Index> index);
  base::Ref<const Index> index() const;
  Authorization Decide(const Attributes& attributes) const override;
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::auth::rbac
