// Storage layout of each resource: key prefix, storage version and encoding, as upstream has them.
// Two servers (or two versions of one) on the same store must agree on every line of this.
#pragma once

#include <string>
#include <string_view>

#include "meta/group_version.h"

namespace keelson::storage {

struct ResourceLayout {
  std::string resource_prefix;         // "/pods"; keys are <etcd prefix><this>/[namespace/]name
  meta::GroupVersion storage_version;  // events.k8s.io events are stored as core v1
  bool json = false;                   // else protobuf
  bool watch_cache = true;             // false: too many changes for what a cache would bring (events)
  std::string_view trigger_field;      // the field with an index in the watch cache; "" for none
  bool defaults_on_read = false;       // upstream stores it before its defaults are complete
};

// Of a built-in resource. Custom resources: CustomResourceLayout.
ResourceLayout LayoutOf(const meta::GroupResource& resource);
ResourceLayout CustomResourceLayout(const meta::GroupResource& resource, std::string_view storage_version);

}  // namespace keelson::storage
