// A set of field paths, as managedFields keep it: a tree whose nodes may be members, sorted at every level. Values in
// an arena that share what they can; nothing changes a set once it is made.
//
//   {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}
//    node        node           node, itself a member  child: a member
//
// Lifetime: a set refers to its arena and to the texts it was made from (a FieldsV1's JSON, an object's strings).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::patch {

// One step of a path. The order of kinds is the order in a set.
struct PathElement {
  enum class Kind : std::uint8_t {
    kField,  // value: the name
    kKey,    // value: a map of the key's fields, sorted by name
    kValue,  // value: the item of a set
    kIndex,  // value: an integer
  };
  Kind kind = Kind::kField;
  Value value;

  static PathElement Field(std::string_view name) { return {Kind::kField, Value(name)}; }
  std::string ToString() const;  // .name  [k="v"]  [="x"]  [3]
};
int Compare(const PathElement& a, const PathElement& b);
int CompareValues(const Value& a,
                  const Value& b);  // a total order over all values: numbers, strings, booleans, lists, maps, null
inline bool operator==(const PathElement& a, const PathElement& b) { return Compare(a, b) == 0; }
// The element as a member name of FieldsV1, quoted: "f:name", "k:{...}". `scratch` is overwritten.
void AppendElement(std::string& out, const PathElement& element, std::string& scratch);

using Path = std::vector<PathElement>;
std::string ToString(const Path& path);

class FieldSet {
 public:
  struct Node;

  FieldSet() = default;
  explicit FieldSet(std::span<const Node> nodes);  // sorted; every node is a member or has children
  static FieldSet Of(base::Arena& arena, const Path& path);
  // A dotted path of field names.
  static FieldSet OfDotted(base::Arena& arena, std::string_view dotted);

  bool empty() const { return size_ == 0; }
  std::span<const Node> nodes() const;
  const Node* Find(const PathElement& element) const;
  bool Has(const Path& path) const;
  void ForEach(const std::function<void(const Path&)>& visit) const;  // members of a level first, then its children
  friend bool operator==(const FieldSet& a, const FieldSet& b);
  // The same nodes in memory: equal without a look at them.
  bool IsSame(const FieldSet& other) const { return nodes_ == other.nodes_ && size_ == other.size_; }

  static FieldSet Union(base::Arena& arena, const FieldSet& a, const FieldSet& b);
  // Of many, by halves: what it allocates grows with n log n, not with the square.
  static FieldSet UnionAll(base::Arena& arena, std::span<const FieldSet> sets);
  static FieldSet Intersection(base::Arena& arena, const FieldSet& a, const FieldSet& b);
  static FieldSet Difference(base::Arena& arena, const FieldSet& a, const FieldSet& b);
  // Takes away a member of `b` with everything below it.
  static FieldSet RecursiveDifference(base::Arena& arena, const FieldSet& a, const FieldSet& b);

  // FieldsV1. Unknown kinds of steps are left out, as upstream does. Nothing for what is not a FieldsV1.
  static std::optional<FieldSet> Parse(base::Arena& arena, std::string_view json);
  void AppendJSON(std::string& out) const;
  std::string ToJSON() const;

 private:
  const Node* nodes_ = nullptr;
  std::uint32_t size_ = 0;
};

struct FieldSet::Node {
  PathElement element;
  bool member = false;
  FieldSet children;
};

inline FieldSet::FieldSet(std::span<const Node> nodes)
    : nodes_(nodes.data()), size_(static_cast<std::uint32_t>(nodes.size())) {}
inline std::span<const FieldSet::Node> FieldSet::nodes() const { return {nodes_, size_}; }

// Collects the nodes of one level after another without an allocation per level: Begin, Add..., Finish.
class FieldSetBuilder {
 public:
  explicit FieldSetBuilder(base::Arena& arena) : arena_(arena) {}
  std::size_t Begin() const { return scratch_.size(); }
  void Add(const FieldSet::Node& node) {
    if (node.member || !node.children.empty()) scratch_.push_back(node);
  }
  // The level that Begin() opened; sorts it where it is not sorted yet.
  FieldSet Finish(std::size_t begin);
  base::Arena& arena() { return arena_; }

 private:
  base::Arena& arena_;
  std::vector<FieldSet::Node> scratch_;
};

}  // namespace keelson::patch
