#include "auth/node/graph.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <mutex>

namespace keelson::auth::node {
namespace {

// Ids are never used again, so that one that was looked up before its node went leads nowhere. 0: no such node.
using NodeId = std::uint64_t;

// How many pods of a node refer to an object.
struct Destination {
  NodeId node;
  std::uint32_t pods;
};

struct Vertex {
  boost::container::small_vector<Destination, 1> destinations;  // by node
  std::vector<std::string> volumes;                             // of a secret: persistent volumes that need it

  bool empty() const { return destinations.empty() && volumes.empty(); }
  auto Find(NodeId node) { return std::ranges::lower_bound(destinations, node, {}, &Destination::node); }
  bool Leads(NodeId node) const {
    const auto at = std::ranges::lower_bound(destinations, node, {}, &Destination::node);
    return at != destinations.end() && at->node == node;
  }
  void Add(NodeId node) {
    const auto at = Find(node);
    if (at != destinations.end() && at->node == node) {
      ++at->pods;
    } else {
      destinations.insert(at, {node, 1});
    }
  }
  void Remove(NodeId node) {
    const auto at = Find(node);
    if (at == destinations.end() || at->node != node) return;
    if (--at->pods == 0) destinations.erase(at);
  }
};

using VertexMap = base::StringMap<Vertex>;

// Namespaces have no slash, so that keys are unique.
template <class Type>
std::string TypedKey(Type type, std::string_view name_space, std::string_view name) {
  std::string key;
  key.reserve(name_space.size() + name.size() + 2);
  key += static_cast<char>('0' + static_cast<int>(type));
  key += name_space;
  key += '/';
  key += name;
  return key;
}

std::string PodKey(std::string_view name_space, std::string_view name) {
  std::string key;
  key.reserve(name_space.size() + name.size() + 1);
  key += name_space;
  key += '/';
  key += name;
  return key;
}

}  // namespace

struct Graph::Node {
  std::string_view name;  // the key of its entry
  NodeId id = 0;
  std::size_t pods = 0;  // bound to it; it is dropped with the last
};

struct alignas(64) Graph::Shard {
  struct Pod {
    Node* node = nullptr;
    std::vector<VertexMap::value_type*> references;  // entries stay where they are
  };

  mutable std::shared_mutex mutex;
  VertexMap vertices;
  base::StringMap<Pod> pods;
  base::StringMap<Node> nodes;

  void Unlink(const Pod& pod) {
    for (VertexMap::value_type* const entry : pod.references) {
      entry->second.Remove(pod.node->id);
      if (entry->second.empty()) vertices.erase(vertices.find(entry->first));
    }
  }
};

Graph::Graph() : shards_(std::make_unique<Shard[]>(kShards)) {}
Graph::~Graph() = default;

Graph::Shard& Graph::ShardOf(std::string_view name) const { return shards_[base::SeededHash(name) % kShards]; }

std::uint64_t Graph::FindNode(std::string_view name) const {
  const Shard& shard = ShardOf(name);
  const std::shared_lock lock(shard.mutex);
  const auto found = shard.nodes.find(name);
  return found == shard.nodes.end() ? 0 : found->second.id;
}

Graph::Node& Graph::HoldNode(std::string_view name) {
  Shard& shard = ShardOf(name);
  const std::scoped_lock lock(shard.mutex);
  auto found = shard.nodes.find(name);
  if (found == shard.nodes.end()) {
    found = shard.nodes.try_emplace(std::string(name)).first;
    found->second = {.name = found->first, .id = ++last_node_id_};
  }
  ++found->second.pods;
  return found->second;
}

void Graph::DropNode(Node* node) {
  if (node == nullptr) return;
  Shard& shard = ShardOf(node->name);
  const std::scoped_lock lock(shard.mutex);
  if (--node->pods == 0) shard.nodes.erase(shard.nodes.find(node->name));
}

void Graph::SetPod(std::string_view name_space, std::string_view name, PodReferences references) {
  if (references.node_name.empty()) return DeletePod(name_space, name);
  Shard::Pod pod{.node = &HoldNode(references.node_name)};
  pod.references.reserve(references.references.size());
  std::string key = PodKey(name_space, name);
  Node* before = nullptr;
  {
    Shard& shard = ShardOf(name_space);
    const std::scoped_lock lock(shard.mutex);
    for (const Reference& reference : references.references) {
      auto& entry = *shard.vertices.try_emplace(TypedKey(reference.type, name_space, reference.name)).first;
      entry.second.Add(pod.node->id);
      pod.references.push_back(&entry);
    }
    Shard::Pod& place = shard.pods[std::move(key)];
    before = place.node;
    // The new references are counted first, so that what stays is never missing in between.
    if (before != nullptr) shard.Unlink(place);
    place = std::move(pod);
  }
  DropNode(before);
}

void Graph::DeletePod(std::string_view name_space, std::string_view name) {
  const std::string key = PodKey(name_space, name);
  Node* before = nullptr;
  {
    Shard& shard = ShardOf(name_space);
    const std::scoped_lock lock(shard.mutex);
    const auto pod = shard.pods.find(key);
    if (pod == shard.pods.end()) return;
    before = pod->second.node;
    shard.Unlink(pod->second);
    shard.pods.erase(pod);
  }
  DropNode(before);
}

void Graph::LinkSecrets(std::string_view volume, const std::vector<NamespacedName>& secrets, bool link) {
  for (const NamespacedName& secret : secrets) {
    Shard& shard = ShardOf(secret.name_space);
    const std::scoped_lock lock(shard.mutex);
    const auto vertex =
        shard.vertices.try_emplace(TypedKey(ReferenceType::kSecret, secret.name_space, secret.name)).first;
    auto& volumes = vertex->second.volumes;
    if (link) {
      volumes.emplace_back(volume);
      continue;
    }
    if (const auto at = std::ranges::find(volumes, volume); at != volumes.end()) volumes.erase(at);
    if (vertex->second.empty()) shard.vertices.erase(vertex);
  }
}

void Graph::SetVolume(std::string_view name, NamespacedName claim, std::vector<NamespacedName> secrets) {
  if (claim.name.empty()) return DeleteVolume(name);
  std::ranges::sort(secrets);
  const auto repeated = std::ranges::unique(secrets);
  secrets.erase(repeated.begin(), repeated.end());
  Volume before;
  {
    const std::scoped_lock lock(cluster_mutex_);
    before = std::exchange(volumes_[std::string(name)], {std::move(claim), secrets});
  }
  LinkSecrets(name, secrets, true);
  LinkSecrets(name, before.secrets, false);
}

void Graph::DeleteVolume(std::string_view name) {
  Volume before;
  {
    const std::scoped_lock lock(cluster_mutex_);
    const auto found = volumes_.find(name);
    if (found == volumes_.end()) return;
    before = std::move(found->second);
    volumes_.erase(found);
  }
  LinkSecrets(name, before.secrets, false);
}

void Graph::SetDirect(DirectType type, std::string_view name_space, std::string_view name, std::string_view node) {
  std::string key = TypedKey(type, name_space, name);
  const std::scoped_lock lock(cluster_mutex_);
  if (node.empty()) {
    direct_.erase(key);
  } else {
    direct_.insert_or_assign(std::move(key), std::string(node));
  }
}

bool Graph::PodIsOn(std::string_view node, std::string_view name_space, std::string_view name) const {
  const std::string key = PodKey(name_space, name);
  const NodeId id = FindNode(node);
  const Shard& shard = ShardOf(name_space);
  const std::shared_lock lock(shard.mutex);
  const auto pod = shard.pods.find(key);
  return pod != shard.pods.end() && pod->second.node->id == id;
}

bool Graph::IsReferenced(std::string_view node, ReferenceType type, std::string_view name_space,
                         std::string_view name) const {
  const NodeId id = FindNode(node);
  if (id == 0) return false;  // No pod is bound to it.
  const std::string key = TypedKey(type, name_space, name);
  std::vector<std::string> volumes;
  {
    const Shard& shard = ShardOf(name_space);
    const std::shared_lock lock(shard.mutex);
    const auto vertex = shard.vertices.find(key);
    if (vertex == shard.vertices.end()) return false;
    if (vertex->second.Leads(id)) return true;
    volumes = vertex->second.volumes;
  }
  return std::ranges::any_of(volumes, [&](const std::string& volume) { return VolumeIsUsed(node, volume); });
}

bool Graph::VolumeIsUsed(std::string_view node, std::string_view name) const {
  NamespacedName claim;
  {
    const std::shared_lock lock(cluster_mutex_);
    const auto found = volumes_.find(name);
    if (found == volumes_.end()) return false;
    claim = found->second.claim;
  }
  return IsReferenced(node, ReferenceType::kPersistentVolumeClaim, claim.name_space, claim.name);
}

bool Graph::IsDirect(std::string_view node, DirectType type, std::string_view name_space, std::string_view name) const {
  const std::string key = TypedKey(type, name_space, name);
  const std::shared_lock lock(cluster_mutex_);
  const auto found = direct_.find(key);
  return found != direct_.end() && found->second == node;
}

Graph::Size Graph::size() const {
  Size size;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::shared_lock lock(shards_[i].mutex);
    size.pods += shards_[i].pods.size();
    size.nodes += shards_[i].nodes.size();
    size.vertices += shards_[i].vertices.size();
  }
  const std::shared_lock lock(cluster_mutex_);
  size.volumes = volumes_.size();
  size.direct = direct_.size();
  return size;
}

}  // namespace keelson::auth::node
