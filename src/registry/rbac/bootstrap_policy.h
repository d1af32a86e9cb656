// The roles and bindings that a server keeps by itself (post-start hook rbac/bootstrap-roles), and how existing ones
// are reconciled with them: rights that are missing come back, what was added stays. Pure: objects in, objects out.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {

using GateEnabled = bool (*)(std::string_view gate);  // null: the gates of alpha and beta roles are off

// Objects with kind, apiVersion and metadata, in the order in which they are made; namespaced ones have
// metadata.namespace.
std::vector<Value> BootstrapClusterRoles(base::Arena& arena, GateEnabled gate_enabled = nullptr);
std::vector<Value> BootstrapClusterRoleBindings(base::Arena& arena, GateEnabled gate_enabled = nullptr);
std::vector<Value> BootstrapRoles(base::Arena& arena);
std::vector<Value> BootstrapRoleBindings(base::Arena& arena);

// Bindings that were split off another one (ClusterRoleBindingsToSplit): where `to` is missing it is made from `from`.
struct SplitBinding {
  std::string_view from, to;
};
inline constexpr SplitBinding kSplitClusterRoleBindings[] = {{"system:discovery", "system:public-info-viewer"}};
// `expected` with the subjects, labels and annotations of `source`: what an administrator took away there stays away.
Value SplitClusterRoleBinding(base::Arena& arena, const Value& source, const Value& expected);

struct Reconciled {
  enum class Action {
    kNone,
    kUpdate,
    kRecreate
  };  // kRecreate: delete (with the UID as precondition) and create `object`
  Action action = Action::kNone;
  Value object;  // what to write
};
// `existing` is what is stored. Annotation rbac.authorization.kubernetes.io/autoupdate: "false" protects it.
Reconciled ReconcileRole(base::Arena& arena, const Value& existing, const Value& expected);  // also ClusterRoles
Reconciled ReconcileBinding(base::Arena& arena, const Value& existing,
                            const Value& expected);  // also ClusterRoleBindings

}  // namespace keelson::registry
