#include "controllers/dependency_graph.h"

#include <algorithm>

namespace keelson::controllers {
namespace {

using Node = DependencyGraph::Node;

struct Dependents {
  std::vector<Node*> matching, nonmatching;  // one with two references to the owner can be in both
};

// Splits the dependents into those that reference the owner by `identity` and the others.
Dependents Partition(const Node& owner, const ObjectIdentity& identity) {
  Dependents parts;
  for (Node* const dependent : owner.dependents) {
    bool match = false, mismatch = false;
    if (!identity.name_space.empty() && identity.name_space != dependent->identity.name_space) {
      mismatch = true;
    } else {
      for (const OwnerReference& reference : dependent->owners) {
        if (reference.uid != identity.uid) continue;
        (identity.IsNamedBy(reference) ? match : mismatch) = true;
      }
    }
    if (match) parts.matching.push_back(dependent);
    if (mismatch) parts.nonmatching.push_back(dependent);
  }
  return parts;
}

// Another identity by which dependents name the owner: the first after `absent`, or else the first.
std::optional<ObjectIdentity> AlternateIdentity(const std::vector<Node*>& dependents, const ObjectIdentity& absent) {
  const bool cluster_scoped = absent.name_space.empty();
  std::optional<ObjectIdentity> first, following;
  for (const Node* const dependent : dependents) {
    for (const OwnerReference& reference : dependent->owners) {
      if (reference.uid != absent.uid) continue;
      if (absent.IsNamedBy(reference) && (cluster_scoped || absent.name_space == dependent->identity.name_space))
        continue;
      ObjectIdentity other{reference.api_version, reference.kind, dependent->identity.name_space, reference.name,
                           reference.uid};
      if (cluster_scoped && other.api_version == absent.api_version && other.kind == absent.kind)
        other.name_space.clear();
      if (other == absent) continue;
      if (!first || other < *first) first = other;
      if (absent < other && (!following || other < *following)) following = other;
    }
  }
  return following ? following : first;
}

const OwnerReference* FindReference(const std::vector<OwnerReference>& owners, const std::string& uid) {
  const auto found = std::ranges::find(owners, uid, &OwnerReference::uid);
  return found == owners.end() ? nullptr : &*found;
}

}  // namespace

std::string ObjectIdentity::ToString() const {
  return "[" + api_version + "/" + kind + ", namespace: " + name_space + ", name: " + name + ", uid: " + uid + "]";
}

std::string AbsentOwners::Key(const ObjectIdentity& owner) {
  std::string key = owner.uid;
  for (const std::string* part : {&owner.api_version, &owner.kind, &owner.name_space, &owner.name}) {
    key += '\n';
    key += *part;
  }
  return key;
}

void AbsentOwners::Add(const ObjectIdentity& owner) {
  const auto [place, added] = places_.try_emplace(Key(owner));
  if (!added) keys_.erase(place->second);
  keys_.push_front(place->first);
  place->second = keys_.begin();
  if (places_.size() <= kMax) return;
  places_.erase(keys_.back());
  keys_.pop_back();
}

std::vector<const Node*> Node::BlockingDependents() const {
  std::vector<const Node*> blocking;
  for (const Node* const dependent : dependents) {
    const OwnerReference* const reference = FindReference(dependent->owners, identity.uid);
    if (reference != nullptr && reference->block_owner_deletion) blocking.push_back(dependent);
  }
  return blocking;
}

Node* DependencyGraph::FindNode(const std::string& uid) {
  const auto found = nodes_.find(uid);
  return found == nodes_.end() ? nullptr : found->second.get();
}

const Node* DependencyGraph::Find(const std::string& uid) const {
  const auto found = nodes_.find(uid);
  return found == nodes_.end() ? nullptr : found->second.get();
}

std::size_t DependencyGraph::edges() const {
  std::size_t edges = 0;
  for (const auto& [uid, node] : nodes_) edges += node->dependents.size();
  return edges;
}

void DependencyGraph::ReportInvalidNamespace(Node& node, const std::string& owner_uid) {
  const OwnerReference* const reference = FindReference(node.owners, owner_uid);
  if (reference == nullptr || node.reported) return;
  node.reported = true;
  work_.invalid_namespace(node, *reference);
}

void DependencyGraph::AddToOwners(Node& node, const std::vector<OwnerReference>& owners) {
  bool doubtful = false;  // some reference may be wrong: the object must be looked at
  for (const OwnerReference& reference : owners) {
    auto& place = nodes_[reference.uid];
    const bool known = place != nullptr;
    if (!known) {
      place = std::make_unique<Node>();
      place->identity = {reference.api_version, reference.kind, node.identity.name_space, reference.name,
                         reference.uid};
      place->is_virtual = true;
    }
    Node& owner = *place;
    owner.dependents.insert(&node);
    if (!known) {
      work_.attempt_to_delete(reference.uid);
      continue;
    }
    if (doubtful) continue;
    const bool namespaced = !owner.identity.name_space.empty();
    const bool elsewhere = owner.identity.name_space != node.identity.name_space;
    if (namespaced && elsewhere) {
      if (!owner.is_virtual) ReportInvalidNamespace(node, reference.uid);
      doubtful = true;
    } else if (!owner.identity.IsNamedBy(reference)) {
      doubtful = true;
    } else if (!namespaced && elsewhere && owner.is_virtual) {
      // An unseen cluster-scoped owner may be an absent namespaced one that a cluster-scoped child references.
      doubtful = true;
    }
  }
  if (doubtful) work_.attempt_to_delete(node.identity.uid);
}

void DependencyGraph::RemoveFromOwners(Node& node, const std::vector<OwnerReference>& owners) {
  for (const OwnerReference& reference : owners) {
    if (Node* const owner = FindNode(reference.uid)) {
      owner->dependents.erase(&node);
      if (owner != &node) Prune(reference.uid);
    }
  }
}

void DependencyGraph::SetOwners(Node& node, std::vector<OwnerReference> owners) {
  if (node.owners == owners) return;
  const std::vector<OwnerReference> before = std::exchange(node.owners, std::move(owners));
  std::vector<OwnerReference> added, removed;
  for (const OwnerReference& reference : node.owners) {
    const OwnerReference* const old = FindReference(before, reference.uid);
    if (old == nullptr) {
      added.push_back(reference);
    } else if (old->block_owner_deletion && !reference.block_owner_deletion && FindNode(reference.uid) != nullptr) {
      work_.attempt_to_delete(reference.uid);
    }
  }
  for (const OwnerReference& reference : before) {
    if (FindReference(node.owners, reference.uid) != nullptr) continue;
    removed.push_back(reference);
    if (reference.block_owner_deletion && FindNode(reference.uid) != nullptr) work_.attempt_to_delete(reference.uid);
  }
  AddToOwners(node, added);
  RemoveFromOwners(node, removed);
}

void DependencyGraph::BecomeObserved(Node& node, const ObjectIdentity& identity) {
  node.is_virtual = false;
  if (node.identity == identity) return;
  for (Node* const dependent : Partition(node, identity).nonmatching) {
    if (!identity.name_space.empty() && dependent->identity.name_space != identity.name_space)
      ReportInvalidNamespace(*dependent, identity.uid);
    work_.attempt_to_delete(dependent->identity.uid);
  }
  node.identity = identity;
}

void DependencyGraph::ProcessTransitions(Node& node, const ObjectMetadata& metadata) {
  if (!metadata.deleting) return;
  if (metadata.HasFinalizer(kOrphanFinalizer)) {
    if (!std::exchange(node.orphaning, true)) work_.attempt_to_orphan(node.identity.uid);
    return;
  }
  if (!metadata.HasFinalizer(kForegroundFinalizer) || std::exchange(node.deleting_dependents, true)) return;
  for (const Node* const dependent : node.dependents) work_.attempt_to_delete(dependent->identity.uid);
  work_.attempt_to_delete(node.identity.uid);
}

void DependencyGraph::Observe(const ObjectIdentity& identity, const ObjectMetadata& metadata) {
  Node* node = FindNode(identity.uid);
  if (node == nullptr) {
    const bool waits =
        metadata.deleting && (metadata.HasFinalizer(kOrphanFinalizer) || metadata.HasFinalizer(kForegroundFinalizer));
    if (metadata.owners.empty() && !waits) return;
    auto made = std::make_unique<Node>();
    made->identity = identity;
    made->owners = metadata.owners;
    node = made.get();
    nodes_.emplace(identity.uid, std::move(made));
    AddToOwners(*node, node->owners);
  } else {
    if (node->is_virtual) BecomeObserved(*node, identity);
    SetOwners(*node, metadata.owners);
  }
  node->being_deleted = node->being_deleted || metadata.deleting;
  ProcessTransitions(*node, metadata);
  Prune(identity.uid);
}

void DependencyGraph::Confirm(const ObjectIdentity& identity) {
  Node* const node = FindNode(identity.uid);
  if (node != nullptr && node->is_virtual) BecomeObserved(*node, identity);
}

void DependencyGraph::Prune(const std::string& uid) {
  const Node* const node = Find(uid);
  if (node == nullptr || !node->owners.empty() || !node->dependents.empty()) return;
  if (node->deleting_dependents || node->orphaning) return;
  nodes_.erase(uid);
}

void DependencyGraph::Remove(Node& node, const ObjectIdentity& identity) {
  const std::string uid = node.identity.uid;
  const std::unique_ptr<Node> removed = std::move(nodes_[uid]);
  nodes_.erase(uid);
  RemoveFromOwners(*removed, removed->owners);
  if (!removed->dependents.empty()) absent_.Add(identity);
  for (const Node* const dependent : removed->dependents) {
    if (dependent != removed.get()) work_.attempt_to_delete(dependent->identity.uid);
  }
  for (const OwnerReference& reference : removed->owners) {
    const Node* const owner = Find(reference.uid);
    if (owner != nullptr && owner->deleting_dependents) work_.attempt_to_delete(reference.uid);
  }
}

void DependencyGraph::Deleted(const ObjectIdentity& identity) {
  Node* const node = FindNode(identity.uid);
  if (node == nullptr) return;
  if (node->is_virtual) BecomeObserved(*node, identity);
  Remove(*node, identity);
}

void DependencyGraph::VirtualDeleted(const ObjectIdentity& identity) {
  Node* const node = FindNode(identity.uid);
  if (node == nullptr) return;
  if (!node->is_virtual && node->identity == identity) return Remove(*node, identity);
  const Dependents dependents = Partition(*node, identity);
  if (node->is_virtual && dependents.nonmatching.empty()) return Remove(*node, identity);
  // Some name it otherwise, or it was seen elsewhere: the node stays, those that name what is absent are looked at.
  if (!dependents.matching.empty()) {
    absent_.Add(identity);
    for (const Node* const dependent : dependents.matching) work_.attempt_to_delete(dependent->identity.uid);
  }
  if (!node->is_virtual || node->identity != identity) return;
  if (const auto other = AlternateIdentity(dependents.nonmatching, identity)) {
    node->identity = *other;
    work_.attempt_to_delete_rate_limited(identity.uid);
  }
}

}  // namespace keelson::controllers
