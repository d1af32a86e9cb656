// Resources served by one peer, parsed from its aggregated discovery documents. Immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::peerproxy {

struct GroupVersionResource {
  std::string group;
  std::string version;
  std::string resource;
  friend auto operator<=>(const GroupVersionResource&, const GroupVersionResource&) = default;
};

class PeerDocument {
 public:
  PeerDocument() : groups_(Value::List(arena_)) {}

  // Adds an APIGroupDiscoveryList of apidiscovery.k8s.io/v2; the error says why it is none. Before anyone else sees
  // this.
  Outcome<void, std::string> Add(std::string_view json);

  const std::vector<GroupVersionResource>& resources() const { return resources_; }
  // APIGroupDiscovery of all groups but the core group, which /apis does not list. They live as long as this.
  const Value& groups() const { return groups_; }
  bool empty() const { return resources_.empty() && groups_.empty(); }

 private:
  base::Arena arena_;
  std::vector<GroupVersionResource> resources_;
  Value groups_;
};
// APIGroupDiscoveryList of apidiscovery.k8s.io/v2.
const schema::Struct& DiscoveryListType();
using PeerDocumentPtr = std::shared_ptr<const PeerDocument>;

}  // namespace keelson::peerproxy
