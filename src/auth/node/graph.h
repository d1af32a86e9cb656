// The Node authorizer's graph: objects, pods and nodes, with edges towards the nodes.
//
//   serviceaccount, secret, configmap, pvc, resourceclaim ─► pod ─► node
//   secret ─► pv ─► pvc          volumeattachment, resourceslice, podcertificaterequest ─► node
//
// An object that pods refer to counts its pods per node instead of keeping edges to them: a decision is two or three
// look-ups by hash, and a pod that goes takes back its own references only. Vertices without edges are dropped.
//
//   shard of the namespace: "<type><namespace>/<name>" ─► (node's id, pods) ...    "<namespace>/<name>" ─► pod
//   shard of the node:      "<node>" ─► id, pods
//
// Thread safety: all members from any thread. Every shard has its own shared mutex; no thread holds two at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/node/pod_references.h"
#include "base/hash.h"

namespace keelson::auth::node {

// A secret in a namespace, or a claim.
struct NamespacedName {
  std::string name_space;
  std::string name;
  auto operator<=>(const NamespacedName&) const = default;
};

// Kinds that point at their node themselves.
enum class DirectType : std::uint8_t { kVolumeAttachment, kResourceSlice, kPodCertificateRequest };

class Graph {
 public:
  Graph();
  ~Graph();

  // A pod in its present form; one that is not bound to a node has no edges.
  void SetPod(std::string_view name_space, std::string_view name, PodReferences references);
  void DeletePod(std::string_view name_space, std::string_view name);
  // A volume bound to `claim`, and the secrets that kubelets need for it. An empty claim name: not bound.
  void SetVolume(std::string_view name, NamespacedName claim, std::vector<NamespacedName> secrets);
  void DeleteVolume(std::string_view name);
  // An empty node name deletes. `name_space` is "" for cluster-scoped kinds.
  void SetDirect(DirectType type, std::string_view name_space, std::string_view name, std::string_view node);

  bool PodIsOn(std::string_view node, std::string_view name_space, std::string_view name) const;
  bool IsReferenced(std::string_view node, ReferenceType type, std::string_view name_space,
                    std::string_view name) const;
  bool VolumeIsUsed(std::string_view node, std::string_view name) const;
  bool IsDirect(std::string_view node, DirectType type, std::string_view name_space, std::string_view name) const;

  struct Size {
    std::size_t pods = 0, nodes = 0, vertices = 0, volumes = 0, direct = 0;
  };
  Size size() const;  // for tests and debugging

 private:
  struct Shard;
  struct Node;
  struct Volume {
    NamespacedName claim;
    std::vector<NamespacedName> secrets;
  };
  static constexpr std::size_t kShards = 64;

  Shard& ShardOf(std::string_view name) const;  // of a namespace or of a node
  std::uint64_t FindNode(std::string_view name) const;
  Node& HoldNode(std::string_view name);
  void DropNode(Node* node);
  void LinkSecrets(std::string_view volume, const std::vector<NamespacedName>& secrets, bool link);

  std::unique_ptr<Shard[]> shards_;
  std::atomic<std::uint64_t> last_node_id_{0};
  mutable std::shared_mutex cluster_mutex_;  // guards the members below
  base::StringMap<Volume> volumes_;
  base::StringMap<std::string> direct_;  // "<type><namespace>/<name>" -> node
};

}  // namespace keelson::auth::node
