// Owner references between objects (upstream's GraphBuilder). Differs from upstream in its nodes: objects that neither
// have owners nor are owners have none. An owner that is referenced before it was seen is a virtual node until it has
// been looked up.
// Pure: the outcome of a change is work for two queues. Thread safety: none.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "controllers/object_metadata.h"

namespace keelson::controllers {

// Identity of an object (upstream's objectReference).
struct ObjectIdentity {
  std::string api_version, kind, name_space, name, uid;

  bool operator==(const ObjectIdentity&) const = default;
  auto operator<=>(const ObjectIdentity& other) const {
    return std::tie(kind, api_version, name_space, name, uid) <=>
           std::tie(other.kind, other.api_version, other.name_space, other.name, other.uid);
  }
  bool IsNamedBy(const OwnerReference& owner) const {
    return uid == owner.uid && name == owner.name && kind == owner.kind && api_version == owner.api_version;
  }
  // [v1/Pod, namespace: default, name: web, uid: ...]
  std::string ToString() const;
};

// Owners that are known not to exist; the oldest are forgotten first.
class AbsentOwners {
 public:
  static constexpr std::size_t kMax = 500;
  void Add(const ObjectIdentity& owner);
  bool Has(const ObjectIdentity& owner) const { return places_.contains(Key(owner)); }

 private:
  static std::string Key(const ObjectIdentity& owner);
  std::list<std::string> keys_;  // newest first
  base::StringMap<std::list<std::string>::iterator> places_;
};

class DependencyGraph {
 public:
  struct Node {
    ObjectIdentity identity;
    std::vector<OwnerReference> owners;
    std::unordered_set<Node*> dependents;
    bool is_virtual = false;  // not seen yet
    bool being_deleted = false;
    bool deleting_dependents = false;  // waits with foregroundDeletion
    bool orphaning = false;            // waits with orphan
    bool reported = false;             // the event about its owner in another namespace was sent

    // Dependents that hold back its deletion in the foreground.
    std::vector<const Node*> BlockingDependents() const;
  };
  // Called while the graph changes; must not change it.
  struct Work {
    std::function<void(const std::string& uid)> attempt_to_delete;
    std::function<void(const std::string& uid)> attempt_to_delete_rate_limited;
    std::function<void(const std::string& uid)> attempt_to_orphan;
    // `node` names an owner that is in another namespace.
    std::function<void(const Node& node, const OwnerReference& owner)> invalid_namespace;
  };
  explicit DependencyGraph(Work work) : work_(std::move(work)) {}

  // The object was added or changed.
  void Observe(const ObjectIdentity& identity, const ObjectMetadata& metadata);
  // The object of a virtual node was found by a read, which may be ahead of the changes given to Observe(): what the
  // object waits for is decided by them alone, when its dependents are known up to the same change.
  void Confirm(const ObjectIdentity& identity);
  // The object was deleted.
  void Deleted(const ObjectIdentity& identity);
  // Nothing is found at `identity`, which a virtual node or a reference names.
  void VirtualDeleted(const ObjectIdentity& identity);

  const Node* Find(const std::string& uid) const;
  AbsentOwners& absent_owners() { return absent_; }
  std::size_t size() const { return nodes_.size(); }
  std::size_t edges() const;

 private:
  Node* FindNode(const std::string& uid);
  void BecomeObserved(Node& node, const ObjectIdentity& identity);
  void SetOwners(Node& node, std::vector<OwnerReference> owners);
  void AddToOwners(Node& node, const std::vector<OwnerReference>& owners);
  void RemoveFromOwners(Node& node, const std::vector<OwnerReference>& owners);
  void ProcessTransitions(Node& node, const ObjectMetadata& metadata);
  void ReportInvalidNamespace(Node& node, const std::string& owner_uid);
  void Remove(Node& node, const ObjectIdentity& identity);
  // Drops a node that has neither owners nor dependents any more.
  void Prune(const std::string& uid);

  Work work_;
  base::StringMap<std::unique_ptr<Node>> nodes_;  // by UID
  AbsentOwners absent_;
};

}  // namespace keelson::controllers
