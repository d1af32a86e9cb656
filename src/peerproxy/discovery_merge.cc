#include "peerproxy/discovery_merge.h"

#include <algorithm>
#include <map>
#include <set>

namespace keelson::peerproxy {
namespace {

using Names = std::vector<std::string>;

std::string GroupName(const Value& group) { return std::string(group.Get("metadata", "name").as_string()); }

// Items of two lists by name, merged one by one, in the order of both.
struct Merged {
  Names a, b;
  std::map<std::string, Value> items;
  bool changed = false;  // an item of `b` changed one of `a`
};

template <class NameOf, class MergeItems>
Merged MergeLists(const Value& a, const Value& b, NameOf name_of, MergeItems merge) {
  Merged merged;
  for (const Value& item : a.items()) {
    merged.a.push_back(name_of(item));
    merged.items.insert_or_assign(merged.a.back(), item);
  }
  for (const Value& item : b.items()) {
    merged.b.push_back(name_of(item));
    const auto [at, added] = merged.items.emplace(merged.b.back(), item);
    if (added) continue;
    const Value before = at->second;
    at->second = merge(before, item);
    if (at->second.identity() != before.identity()) merged.changed = true;
  }
  return merged;
}

Value InOrder(base::Arena& arena, const Names& order, const std::map<std::string, Value>& items) {
  Value list = Value::List(arena, items.size());
  std::set<std::string_view> seen;
  for (const std::string& name : order) {
    const auto found = items.find(name);
    if (found != items.end() && seen.insert(name).second) list.Append(arena, found->second);
  }
  return list;
}

// A copy of the outermost level only.
Value ShallowCopy(base::Arena& arena, const Value& map) {
  Value copy = Value::Map(arena, map.size());
  for (const auto& member : map.members()) copy.Set(arena, member.key, member.value);
  return copy;
}

Value SortedVerbs(base::Arena& arena, const Value& a, const Value& b) {
  std::set<std::string_view> verbs;
  for (const Value* from : {&a, &b}) {
    for (const Value& verb : from->items()) verbs.insert(verb.as_string());
  }
  Value list = Value::List(arena, verbs.size());
  for (const std::string_view verb : verbs) list.Append(arena, verb);
  return list;
}

// Of a subresource that both have, `b`'s.
Value SortedSubresources(base::Arena& arena, const Value& a, const Value& b) {
  std::map<std::string_view, Value> by_name;
  for (const Value* from : {&a, &b}) {
    for (const Value& item : from->items()) by_name.insert_or_assign(item["subresource"].as_string(), item);
  }
  Value list = Value::List(arena, by_name.size());
  for (const auto& [name, item] : by_name) list.Append(arena, item);
  return list;
}

Value MergeResource(base::Arena& arena, const Value& a, const Value& b) {
  if (a == b) return a;
  Value merged = ShallowCopy(arena, a);
  if (Value verbs = SortedVerbs(arena, a["verbs"], b["verbs"]); !verbs.empty()) merged.Set(arena, "verbs", verbs);
  Value subresources = SortedSubresources(arena, a["subresources"], b["subresources"]);
  if (!subresources.empty()) merged.Set(arena, "subresources", subresources);
  return merged;
}

Value MergeVersion(base::Arena& arena, const Value& a, const Value& b) {
  const auto name_of = [](const Value& resource) { return std::string(resource["resource"].as_string()); };
  const auto merge = [&](const Value& x, const Value& y) { return MergeResource(arena, x, y); };
  const Merged merged = MergeLists(a["resources"], b["resources"], name_of, merge);
  if (!merged.changed && merged.a == merged.b) return a;
  const Names order = merged.a == merged.b ? merged.a : MergePreservingRelativeOrder({merged.a, merged.b});
  Value version = ShallowCopy(arena, a);
  version.Set(arena, "resources", InOrder(arena, order, merged.items));
  return version;
}

Value MergeGroup(base::Arena& arena, const Value& a, const Value& b) {
  const auto name_of = [](const Value& version) { return std::string(version["version"].as_string()); };
  const auto merge = [&](const Value& x, const Value& y) { return MergeVersion(arena, x, y); };
  const Merged merged = MergeLists(a["versions"], b["versions"], name_of, merge);
  if (!merged.changed && merged.a == merged.b) return a;
  const Names order = merged.a == merged.b ? merged.a : MergePreservingRelativeOrder({merged.a, merged.b});
  Value group = ShallowCopy(arena, a);
  group.Set(arena, "versions", InOrder(arena, order, merged.items));
  return group;
}

struct Node {
  std::set<std::string> after;
  int before = 0;  // how many items come before this one
};

Names TopologicalOrder(std::map<std::string, Node> graph) {
  std::set<std::string> free;
  for (const auto& [name, node] : graph) {
    if (node.before == 0) free.insert(name);
  }
  Names order;
  while (!free.empty()) {
    const std::string name = *free.begin();
    free.erase(free.begin());
    for (const std::string& next : graph[name].after) {
      if (--graph[next].before == 0) free.insert(next);
    }
    order.push_back(name);
  }
  return order;
}

}  // namespace

std::vector<std::string> MergePreservingRelativeOrder(const std::vector<std::vector<std::string>>& lists) {
  std::map<std::string, Node> graph;
  for (const Names& list : lists) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      Node& node = graph[list[i]];
      if (i + 1 < list.size() && node.after.insert(list[i + 1]).second) ++graph[list[i + 1]].before;
    }
  }
  for (const Names& list : lists) {
    if (list.size() == graph.size() && std::set<std::string>(list.begin(), list.end()).size() == list.size())
      return list;
  }
  Names order = TopologicalOrder(graph);
  if (order.size() == graph.size()) return order;
  order.clear();
  for (const auto& [name, node] : graph) order.push_back(name);
  return order;
}

Value MergeDiscovery(base::Arena& arena, std::string_view local_id, std::span<const ServerDiscovery> servers) {
  std::map<std::string_view, const ServerDiscovery*> by_id;
  for (const ServerDiscovery& server : servers) by_id.emplace(server.server_id, &server);
  const auto own = by_id.find(local_id);
  const Value local = own == by_id.end() ? Value::List(arena) : own->second->groups;
  if (by_id.size() <= 1) return local;
  Names local_names;
  for (const Value& group : local.items()) local_names.push_back(GroupName(group));
  std::map<std::string, Value> groups;
  std::vector<Names> lists;
  bool changed = false;
  bool same_names = true;
  for (const auto& [id, server] : by_id) {
    Names names;
    for (const Value& group : server->groups.items()) {
      names.push_back(GroupName(group));
      const auto [at, added] = groups.emplace(names.back(), group);
      if (added) continue;
      const Value merged = MergeGroup(arena, at->second, group);
      changed = changed || merged.identity() != at->second.identity();
      at->second = merged;
    }
    same_names = same_names && names == local_names;
    lists.push_back(std::move(names));
  }
  if (same_names && !changed) return local;
  return InOrder(arena, same_names ? local_names : MergePreservingRelativeOrder(lists), groups);
}

}  // namespace keelson::peerproxy
