// Names of kinds and resources, as apimachinery has them.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace keelson::meta {

struct GroupVersion {
  std::string group;
  std::string version;
  std::string ToString() const { return group.empty() ? version : group + "/" + version; }  // apiVersion
  auto operator<=>(const GroupVersion&) const = default;
};

struct GroupKind {
  std::string group;
  std::string kind;
  std::string ToString() const { return group.empty() ? kind : kind + "." + group; }
  auto operator<=>(const GroupKind&) const = default;
};

struct GroupVersionKind {
  std::string group;
  std::string version;
  std::string kind;
  GroupVersion group_version() const { return {group, version}; }
  GroupKind group_kind() const { return {group, kind}; }
  std::string ToString() const { return group + "/" + version + ", Kind=" + kind; }  // Go's %v
  auto operator<=>(const GroupVersionKind&) const = default;
};

struct GroupResource {
  std::string group;
  std::string resource;
  std::string ToString() const { return group.empty() ? resource : resource + "." + group; }
  auto operator<=>(const GroupResource&) const = default;
};

struct GroupVersionResource {
  std::string group;
  std::string version;
  std::string resource;
  GroupVersion group_version() const { return {group, version}; }
  GroupResource group_resource() const { return {group, resource}; }
  auto operator<=>(const GroupVersionResource&) const = default;
};

}  // namespace keelson::meta
