#include "auth/node/graph.h"

#include <algorithm>
#include <functional>
#include <mutex>

namespace keelson::auth::node {
namespace {

using NodeIndex = std::uint32_t;

// How many pods of a node refer to an object.
struct Destination {
  NodeIndex node;
  std::uint32_t pods;
};

struct Vertex {
  std::vector<Destination> destinations;  // by node
  std::vector<std::string> volumes;       // of a secret: persistent volumes that need it

  bool empty() const { return destinations.empty() && volumes.empty(); }
  bool Leads(NodeIndex node) const {
    const auto at = std::ranges::lower_bound(destinations, node, {}, &Destination::node);
    return at != destinations.end() && at->node == node;
  }
  void Add(NodeIndex node) {
    const auto at = std::ranges::lower_bound(destinations, node, {}, &Destination::node);
    if (at != destinations.end() && at->node == node) {
      ++at->pods;
    } else {
      destinations.insert(at, {node, 1});
    }
  }
  void Remove(NodeIndex node) {
    const auto at = std::ranges::lower_bound(destinations, node, {}, &Destination::node);
    if (at == destinations.end() || at->node != node) return;
    if (--at->pods == 0) destinations.erase(at);
  }
};

using VertexMap = std::map<std::string, Vertex, std::less<>>;
constexpr std::size_t kReferenceTypes = 5;

// A reference of a pod: which map, and the entry in it, which stays where it is.
struct Link {
  ReferenceType type;
  VertexMap::value_type* entry;
};

struct Pod {
  NodeIndex node = 0;
  std::vector<Link> links;
};

}  // namespace

struct Graph::Namespace {
  std::array<VertexMap, kReferenceTypes> vertices;  // by ReferenceType
  std::map<std::string, Pod, std::less<>> pods;
  // Names of nodes as small numbers, counted by pods.
  struct Node {
    NodeIndex index;
    std::uint32_t pods;
  };
  std::map<std::string, Node, std::less<>> nodes;
  std::vector<NodeIndex> free_indexes;
  std::vector<std::map<std::string, Node, std::less<>>::iterator> by_index;

  VertexMap& Map(ReferenceType type) { return vertices[static_cast<std::size_t>(type)]; }
  const VertexMap& Map(ReferenceType type) const { return vertices[static_cast<std::size_t>(type)]; }

  NodeIndex HoldNode(std::string_view name) {
    auto found = nodes.find(name);
    if (found == nodes.end()) {
      NodeIndex index = static_cast<NodeIndex>(by_index.size());
      if (!free_indexes.empty()) {
        index = free_indexes.back();
        free_indexes.pop_back();
      } else {
        by_index.emplace_back();
      }
      found = nodes.emplace(std::string(name), Node{index, 0}).first;
      by_index[index] = found;
    }
    ++found->second.pods;
    return found->second.index;
  }
  void DropNode(NodeIndex index) {
    const auto found = by_index[index];
    if (--found->second.pods > 0) return;
    nodes.erase(found);
    free_indexes.push_back(index);
  }

  void EraseIfEmpty(ReferenceType type, const std::string& name) {
    VertexMap& map = Map(type);
    const auto found = map.find(name);
    if (found != map.end() && found->second.empty()) map.erase(found);
  }

  void Unlink(const Pod& pod) {
    for (const Link& link : pod.links) {
      link.entry->second.Remove(pod.node);
      if (link.entry->second.empty()) Map(link.type).erase(link.entry->first);
    }
    DropNode(pod.node);
  }

  bool empty() const {
    return pods.empty() && std::ranges::all_of(vertices, [](const VertexMap& map) { return map.empty(); });
  }
};

struct alignas(64) Graph::Shard {
  mutable std::shared_mutex mutex;
  std::map<std::string, Namespace, std::less<>> namespaces;

  const Namespace* Find(std::string_view name) const {
    const auto found = namespaces.find(name);
    return found == namespaces.end() ? nullptr : &found->second;
  }
  Namespace& Ensure(std::string_view name) {
    const auto found = namespaces.find(name);
    return found != namespaces.end() ? found->second : namespaces[std::string(name)];
  }
  void DropIfEmpty(std::string_view name) {
    const auto found = namespaces.find(name);
    if (found != namespaces.end() && found->second.empty()) namespaces.erase(found);
  }
};

Graph::Graph() : shards_(std::make_unique<Shard[]>(kShards)) {}
Graph::~Graph() = default;

Graph::Shard& Graph::ShardOf(std::string_view name_space) const {
  return shards_[std::hash<std::string_view>()(name_space) % kShards];
}

void Graph::SetPod(std::string_view name_space, std::string_view name, PodReferences references) {
  if (references.node_name.empty()) return DeletePod(name_space, name);
  Shard& shard = ShardOf(name_space);
  const std::scoped_lock lock(shard.mutex);
  Namespace& in = shard.Ensure(name_space);
  Pod pod{.node = in.HoldNode(references.node_name)};
  pod.links.reserve(references.references.size());
  for (Reference& reference : references.references) {
    auto& entry = *in.Map(reference.type).try_emplace(std::move(reference.name)).first;
    entry.second.Add(pod.node);
    pod.links.push_back({reference.type, &entry});
  }
  auto [place, added] = in.pods.try_emplace(std::string(name));
  // The new references are counted first, so that what stays is never missing in between.
  if (!added) in.Unlink(place->second);
  place->second = std::move(pod);
}

void Graph::DeletePod(std::string_view name_space, std::string_view name) {
  Shard& shard = ShardOf(name_space);
  const std::scoped_lock lock(shard.mutex);
  const auto in = shard.namespaces.find(name_space);
  if (in == shard.namespaces.end()) return;
  const auto pod = in->second.pods.find(name);
  if (pod == in->second.pods.end()) return;
  in->second.Unlink(pod->second);
  in->second.pods.erase(pod);
  if (in->second.empty()) shard.namespaces.erase(in);
}

void Graph::LinkSecrets(std::string_view volume, const std::vector<NamespacedName>& secrets, bool link) {
  for (const NamespacedName& secret : secrets) {
    Shard& shard = ShardOf(secret.name_space);
    const std::scoped_lock lock(shard.mutex);
    Namespace& in = shard.Ensure(secret.name_space);
    auto& volumes = in.Map(ReferenceType::kSecret)[secret.name].volumes;
    if (link) {
      volumes.emplace_back(volume);
    } else {
      if (const auto at = std::ranges::find(volumes, volume); at != volumes.end()) volumes.erase(at);
      in.EraseIfEmpty(ReferenceType::kSecret, secret.name);
      shard.DropIfEmpty(secret.name_space);
    }
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

namespace {

std::pair<DirectType, std::string> DirectKey(DirectType type, std::string_view name_space, std::string_view name) {
  std::string key(name_space);
  key += '/';
  key += name;
  return {type, std::move(key)};
}

}  // namespace

void Graph::SetDirect(DirectType type, std::string_view name_space, std::string_view name, std::string_view node) {
  auto key = DirectKey(type, name_space, name);
  const std::scoped_lock lock(cluster_mutex_);
  if (node.empty()) {
    direct_.erase(key);
  } else {
    direct_.insert_or_assign(std::move(key), std::string(node));
  }
}

bool Graph::PodIsOn(std::string_view node, std::string_view name_space, std::string_view name) const {
  const Shard& shard = ShardOf(name_space);
  const std::shared_lock lock(shard.mutex);
  const Namespace* const in = shard.Find(name_space);
  if (in == nullptr) return false;
  const auto pod = in->pods.find(name);
  const auto known = in->nodes.find(node);
  return pod != in->pods.end() && known != in->nodes.end() && pod->second.node == known->second.index;
}

bool Graph::IsReferenced(std::string_view node, ReferenceType type, std::string_view name_space,
                         std::string_view name) const {
  std::vector<std::string> volumes;
  {
    const Shard& shard = ShardOf(name_space);
    const std::shared_lock lock(shard.mutex);
    const Namespace* const in = shard.Find(name_space);
    if (in == nullptr) return false;
    const auto vertex = in->Map(type).find(name);
    if (vertex == in->Map(type).end()) return false;
    const auto known = in->nodes.find(node);
    if (known != in->nodes.end() && vertex->second.Leads(known->second.index)) return true;
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
  const auto key = DirectKey(type, name_space, name);
  const std::shared_lock lock(cluster_mutex_);
  const auto found = direct_.find(key);
  return found != direct_.end() && found->second == node;
}

Graph::Size Graph::size() const {
  Size size;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::shared_lock lock(shards_[i].mutex);
    for (const auto& [name, in] : shards_[i].namespaces) {
      size.pods += in.pods.size();
      for (const VertexMap& map : in.vertices) size.vertices += map.size();
    }
  }
  const std::shared_lock lock(cluster_mutex_);
  size.volumes = volumes_.size();
  size.direct = direct_.size();
  return size;
}

}  // namespace keelson::auth::node
