// The bootstrap policy as tables; bootstrap_policy.h makes objects of them.
#pragma once

#include <span>
#include <string_view>

namespace keelson::registry::bootstrap {

struct ClusterRoleData {
  std::string_view name;
  std::string_view label;       // aggregate-to-admin: the role has this label
  std::string_view aggregates;  // aggregate-to-admin: the role unites roles with this label
  std::string_view rules;       // one a line
  std::string_view gate = {};   // only with this feature gate; "": always
};
struct RoleData {
  std::string_view name_space;
  std::string_view name;
  std::string_view rules;
};
struct BindingData {
  std::string_view name_space;  // "" of a ClusterRoleBinding
  std::string_view name;
  std::string_view role;  // a ClusterRole of a ClusterRoleBinding, a Role of the same namespace of a RoleBinding
  std::string_view subjects;
};

std::span<const ClusterRoleData> ClusterRoles();
std::span<const RoleData> Roles();
std::span<const BindingData> Bindings();

}  // namespace keelson::registry::bootstrap
