// The walks over canonical values: to a set, comparison, merge, removal; and those over sets with a schema.
#include <algorithm>

#include "patch/typed_atom.h"
#include "patch/typed_value.h"

namespace keelson::patch {
namespace {

using base::Arena;
using object::Member;
using Node = FieldSet::Node;

struct Item {
  PathElement element;
  const Value* value;
  std::uint32_t index;
};

// The items with their names, sorted by name; those that have none are left out.
std::vector<Item> ItemsByElement(Arena& arena, const Atom& list, const Value& value) {
  std::vector<Item> items;
  items.reserve(value.size());
  std::uint32_t index = 0;
  for (const Value& item : value.items()) {
    if (const auto element = ItemElement(arena, list, item)) items.push_back({*element, &item, index});
    ++index;
  }
  std::ranges::sort(items, [](const Item& a, const Item& b) {
    const int order = Compare(a.element, b.element);
    return order != 0 ? order < 0 : a.index < b.index;
  });
  return items;
}

// How many items from `at` on have the same name.
std::size_t RunOf(const std::vector<Item>& items, std::size_t at) {
  std::size_t end = at + 1;
  while (end < items.size() && items[end].element == items[at].element) ++end;
  return end - at;
}

// Both empty or null: taken as one value, which keeps the difference between the two.
bool NothingIn(const Value* value, bool container) { return value == nullptr || !container || value->empty(); }

// Calls visit(name, left or nullptr, right or nullptr) in order. Members are sorted.
template <class Visit>
void ZipMembers(const Value* left, const Value* right, Visit visit) {
  const auto a = left != nullptr ? left->members() : std::span<Member>();
  const auto b = right != nullptr ? right->members() : std::span<Member>();
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size() ? 1 : j == b.size() ? -1 : a[i].key.compare(b[j].key);
    if (order < 0) {
      visit(a[i].key, &a[i].value, nullptr);
      ++i;
    } else if (order > 0) {
      visit(b[j].key, nullptr, &b[j].value);
      ++j;
    } else {
      visit(a[i].key, &a[i].value, &b[j].value);
      ++i;
      ++j;
    }
  }
}

const Value* AsMap(const Value* value) { return value != nullptr && value->is_map() ? value : nullptr; }
const Value* AsList(const Value* value) { return value != nullptr && value->is_list() ? value : nullptr; }

class SetWalker {
 public:
  explicit SetWalker(Arena& arena) : builder_(arena) {}

  // Adds to `node`, the set node of the value's path.
  void Visit(const Value& value, const TypeRef& type, Node& node) {
    const Atom atom = Deduce(Resolve(type), &value);
    if (atom.map) {
      if (atom.map_atomic) node.member = true;
      if (!atom.map_atomic && value.is_map()) node.children = Map(value, atom);
    } else if (atom.scalar) {
      node.member = true;
    } else {
      if (atom.list_atomic) node.member = true;
      if (!atom.list_atomic && value.is_list()) node.children = List(value, atom);
    }
  }

 private:
  FieldSet Map(const Value& value, const Atom& atom) {
    const std::size_t begin = builder_.Begin();
    for (const Member& member : value.members()) {
      bool declared = false;
      const TypeRef type = MemberType(atom, member.key, &declared);
      Node node{PathElement::Field(member.key), false, {}};
      Visit(member.value, type, node);
      if (!declared || member.value.is_null() || (member.value.is_map() && member.value.empty())) node.member = true;
      builder_.Add(node);
    }
    return builder_.Finish(begin);
  }

  FieldSet List(const Value& value, const Atom& atom) {
    const std::vector<Item> items = ItemsByElement(builder_.arena(), atom, value);
    const std::size_t begin = builder_.Begin();
    for (std::size_t i = 0; i < items.size(); i += RunOf(items, i)) {
      Node node{items[i].element, true, {}};
      if (RunOf(items, i) == 1) Visit(*items[i].value, atom.list_element, node);
      node.member = true;
      builder_.Add(node);
    }
    // Upstream has one nameless entry for all items without a name, so that the list counts as named: a pruned item that
    // became null does not take the list and all around it along.
    if (items.size() < value.size()) builder_.Add({{PathElement::Kind::kIndex, Value(-1)}, true, {}});
    return builder_.Finish(begin);
  }

  FieldSetBuilder builder_;
};

class CompareWalker {
 public:
  explicit CompareWalker(Arena& arena) : removed_(arena), modified_(arena), added_(arena) {}

  struct Place {
    Node removed;
    Node modified;
    Node added;
  };

  void Visit(const Value* left, const Value* right, const TypeRef& type, Place& place) {
    const Atom atom = Resolve(type);
    const Atom left_atom = Deduce(atom, left);
    const Atom right_atom = Deduce(atom, right);
    if (right == nullptr) {
      Handle(left_atom, left, right, place);
    } else if (left == nullptr || SameParts(left_atom, right_atom)) {
      Handle(right_atom, left, right, place);
    } else {
      // One is a map, say, and the other a scalar: what was below goes, what comes is new.
      Place other;
      Handle(left_atom, left, right, other);
      Handle(right_atom, left, right, place);
      Add(place.removed, other.removed);
      Add(place.modified, other.modified);
      Add(place.added, other.added);
    }
  }

  Comparison Finish(const Place& root) const {
    return {root.removed.children, root.modified.children, root.added.children};
  }

 private:
  void Add(Node& to, const Node& from) {
    to.member |= from.member;
    to.children = FieldSet::Union(removed_.arena(), to.children, from.children);
  }

  void Leaf(const Value* left, const Value* right, Place& place) {
    if (left == nullptr) {
      place.added.member = true;
    } else if (right == nullptr) {
      place.removed.member = true;
    } else if (!(*left == *right)) {
      place.modified.member = true;
    }
  }

  // A container that comes or goes is itself a member.
  static void Self(const Value* left, const Value* right, Place& place) {
    if (left == nullptr) place.added.member = true;
    if (left != nullptr && right == nullptr) place.removed.member = true;
  }

  void Handle(const Atom& atom, const Value* left, const Value* right, Place& place) {
    if (atom.map) {
      const Value* a = AsMap(left);
      const Value* b = AsMap(right);
      if (atom.map_atomic || (NothingIn(a, true) && NothingIn(b, true))) return Leaf(left, right, place);
      Map(a, b, atom, place);
      Self(left, right, place);
    } else if (atom.scalar) {
      Leaf(left, right, place);
    } else {
      const Value* a = AsList(left);
      const Value* b = AsList(right);
      if (atom.list_atomic || (NothingIn(a, true) && NothingIn(b, true))) return Leaf(left, right, place);
      List(a, b, atom, place);
      Self(left, right, place);
    }
  }

  struct Level {
    std::size_t removed;
    std::size_t modified;
    std::size_t added;
  };
  Level Begin() const { return {removed_.Begin(), modified_.Begin(), added_.Begin()}; }
  void Push(const PathElement& element, Place& place) {
    place.removed.element = place.modified.element = place.added.element = element;
    removed_.Add(place.removed);
    modified_.Add(place.modified);
    added_.Add(place.added);
  }
  void Finish(const Level& level, Place& place) {
    place.removed.children = removed_.Finish(level.removed);
    place.modified.children = modified_.Finish(level.modified);
    place.added.children = added_.Finish(level.added);
  }

  void Map(const Value* left, const Value* right, const Atom& atom, Place& place) {
    const Level level = Begin();
    ZipMembers(left, right, [&](std::string_view name, const Value* a, const Value* b) {
      // Equal scalars need no look at the schema.
      if (a != nullptr && b != nullptr && !a->is_map() && !a->is_list() && a->kind() == b->kind() && *a == *b) return;
      Place child;
      Visit(a, b, MemberType(atom, name), child);
      Push(PathElement::Field(name), child);
    });
    Finish(level, place);
  }

  void List(const Value* left, const Value* right, const Atom& atom, Place& place) {
    Arena& arena = removed_.arena();
    const std::vector<Item> a = left != nullptr ? ItemsByElement(arena, atom, *left) : std::vector<Item>();
    const std::vector<Item> b = right != nullptr ? ItemsByElement(arena, atom, *right) : std::vector<Item>();
    const Level level = Begin();
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() || j < b.size()) {
      const int order = i == a.size() ? 1 : j == b.size() ? -1 : Compare(a[i].element, b[j].element);
      const std::size_t in_left = order <= 0 ? RunOf(a, i) : 0;
      const std::size_t in_right = order >= 0 ? RunOf(b, j) : 0;
      Place child;
      Items(std::span(a).subspan(i, in_left), std::span(b).subspan(j, in_right), atom, child);
      Push(in_left > 0 ? a[i].element : b[j].element, child);
      i += in_left;
      j += in_right;
    }
    Finish(level, place);
  }

  // The items of one name on both sides. Several on one side count as a whole.
  void Items(std::span<const Item> left, std::span<const Item> right, const Atom& atom, Place& place) {
    if (left.size() <= 1 && right.size() <= 1) {
      Visit(left.empty() ? nullptr : left[0].value, right.empty() ? nullptr : right[0].value, atom.list_element, place);
    } else if (left.size() >= 2 && right.size() >= 2) {
      place.modified.member =
          !std::ranges::equal(left, right, [](const Item& x, const Item& y) { return *x.value == *y.value; });
    } else if (left.size() >= 2) {
      if (!right.empty()) Visit(nullptr, right[0].value, atom.list_element, place);
      place.removed.member = true;
    } else {
      if (!left.empty()) Visit(left[0].value, nullptr, atom.list_element, place);
      place.added.member = true;
    }
  }

  FieldSetBuilder removed_;
  FieldSetBuilder modified_;
  FieldSetBuilder added_;
};

class MergeWalker {
 public:
  explicit MergeWalker(Arena& arena) : arena_(arena) {}

  // Nothing: the place is empty in the result.
  std::optional<Value> Visit(const Value* left, const Value* right, const TypeRef& type) {
    const Atom atom = Resolve(type);
    return Handle(right == nullptr ? Deduce(atom, left) : Deduce(atom, right), left, right);
  }

 private:
  static std::optional<Value> Leaf(const Value* left, const Value* right) {
    if (right != nullptr) return *right;
    if (left != nullptr) return *left;
    return std::nullopt;
  }

  std::optional<Value> Handle(const Atom& atom, const Value* left, const Value* right) {
    if (atom.map) {
      const Value* a = AsMap(left);
      const Value* b = AsMap(right);
      if (atom.map_atomic || (NothingIn(a, true) && NothingIn(b, true))) return Leaf(left, right);
      if (right == nullptr) return *left;  // nothing to merge in: all of it as it is
      if (a == nullptr) return *right;
      return Map(a, b, atom);
    }
    if (atom.scalar) return Leaf(left, right);
    const Value* a = AsList(left);
    const Value* b = AsList(right);
    if (atom.list_atomic || (NothingIn(a, true) && NothingIn(b, true))) return Leaf(left, right);
    if (right == nullptr) return *left;
    if (a == nullptr) return *right;
    return List(a, b, atom);
  }

  std::optional<Value> Map(const Value* left, const Value* right, const Atom& atom) {
    Value out = Value::Map(arena_, (left != nullptr ? left->size() : 0) + (right != nullptr ? right->size() : 0));
    ZipMembers(left, right, [&](std::string_view name, const Value* a, const Value* b) {
      if (const auto merged = Visit(a, b, MemberType(atom, name))) out.AppendMember(arena_, name, *merged);
    });
    if (out.empty()) return std::nullopt;
    return out;
  }

  // An item by name, or nullptr; of several by one name on the left none is merged with.
  static const Value* Find(const std::vector<Item>& items, const PathElement& element, bool* found) {
    const auto at =
        std::ranges::lower_bound(items, 0, {}, [&](const Item& item) { return Compare(item.element, element); });
    *found = at != items.end() && at->element == element;
    if (!*found) return nullptr;
    static constexpr Value kNull{};
    return RunOf(items, static_cast<std::size_t>(at - items.begin())) > 1 ? &kNull : at->value;
  }

  // The order of `right` for what both have; what only `left` has keeps its neighbourhood.
  std::optional<Value> List(const Value* left, const Value* right, const Atom& atom) {
    const std::vector<Item> by_left = left != nullptr ? ItemsByElement(arena_, atom, *left) : std::vector<Item>();
    const std::vector<Item> by_right = right != nullptr ? ItemsByElement(arena_, atom, *right) : std::vector<Item>();
    std::vector<Item> a = by_left;
    std::vector<Item> b = by_right;
    const auto as_written = [](const Item& x, const Item& y) { return x.index < y.index; };
    std::ranges::sort(a, as_written);
    std::ranges::sort(b, as_written);

    const auto in_left = [&](const PathElement& element) {
      bool found = false;
      Find(by_left, element, &found);
      return found;
    };
    const auto in_right = [&](const PathElement& element) {
      bool found = false;
      Find(by_right, element, &found);
      return found;
    };
    std::vector<const PathElement*> shared;
    for (const Item& item : b) {
      if (in_left(item.element)) shared.push_back(&item.element);
    }
    std::size_t next_shared = 0;
    std::vector<bool> merged(by_right.size(), false);  // by place in by_right
    const auto mark = [&](const PathElement& element) -> std::vector<bool>::reference {
      const auto at =
          std::ranges::lower_bound(by_right, 0, {}, [&](const Item& item) { return Compare(item.element, element); });
      return merged[static_cast<std::size_t>(at - by_right.begin())];
    };

    Value out = Value::List(arena_, std::max(a.size(), b.size()));
    const auto emit = [&](const Value* l, const Value* r) {
      if (const auto value = Visit(l, r, atom.list_element)) out.Append(arena_, *value);
    };
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() || j < b.size()) {
      if (i < a.size() && j < b.size()) {
        const PathElement& element = a[i].element;
        if (element == b[j].element) {
          mark(element) = true;
          bool found = false;
          emit(Find(by_left, element, &found), b[j].value);
          ++i;
          ++j;
          if (next_shared < shared.size()) ++next_shared;
          continue;
        }
        if (in_right(element) && next_shared < shared.size() && !(*shared[next_shared] == element)) {
          ++i;  // shared, but another one is due
          continue;
        }
      }
      if (i < a.size()) {
        const PathElement& element = a[i].element;
        if (!in_right(element)) {
          emit(a[i].value, nullptr);
          ++i;
          continue;
        }
        if (mark(element)) ++i;  // merged before
      }
      if (j < b.size()) {
        const PathElement& element = b[j].element;
        mark(element) = true;
        bool found = false;
        emit(Find(by_left, element, &found), b[j].value);
        if (next_shared < shared.size() && *shared[next_shared] == element) ++next_shared;
        ++j;
      }
    }
    if (out.empty()) return std::nullopt;
    return out;
  }

  Arena& arena_;
};

Value Remove(Arena& arena, const Value& value, const FieldSet& items, const TypeRef& type) {
  const Atom atom = Deduce(Resolve(type), &value);
  if (atom.map) {
    if (!value.is_map() || value.empty() || atom.map_atomic) return {};
    Value out = Value::Map(arena, value.size());
    for (const Member& member : value.members()) {
      const Node* node = items.Find(PathElement::Field(member.key));
      if (node != nullptr && node->member) continue;
      const bool below = node != nullptr && !node->children.empty();
      out.AppendMember(
          arena, member.key,
          below ? Remove(arena, member.value, node->children, MemberType(atom, member.key)) : member.value);
    }
    return out.empty() ? Value() : out;
  }
  if (atom.scalar) return value;
  if (!value.is_list() || value.empty() || atom.list_atomic) return {};
  Value out = Value::List(arena, value.size());
  for (const Value& item : value.items()) {
    const auto element = ItemElement(arena, atom, item);
    const Node* node = element ? items.Find(*element) : nullptr;
    if (node != nullptr && node->member) continue;
    const bool below = node != nullptr && !node->children.empty();
    out.Append(arena, below ? Remove(arena, item, node->children, atom.list_element) : item);
  }
  return out.empty() ? Value() : out;
}

FieldSet EnsureNamed(FieldSetBuilder& builder, const FieldSet& set, const TypeRef& type) {
  const Atom atom = type.mode == TypeRef::Mode::kNone ? Atom{} : Resolve(type);
  const std::size_t begin = builder.Begin();
  for (const Node& node : set.nodes()) {
    TypeRef inner;
    bool declared = false;
    if (node.element.kind == PathElement::Kind::kField && atom.map) {
      inner = MemberType(atom, node.element.value.as_string(), &declared);
    } else if (node.element.kind == PathElement::Kind::kKey && atom.list) {
      inner = atom.list_element;
    }
    const bool named = declared && !node.children.empty();
    builder.Add({node.element, node.member || named,
                 node.children.empty() ? FieldSet() : EnsureNamed(builder, node.children, inner)});
  }
  return builder.Finish(begin);
}

// `whole`: the place was owned as one (a member without children).
void Reconcile(FieldSetBuilder& builder, Node& node, const TypeRef& type, bool whole);

FieldSet ReconcileLevel(FieldSetBuilder& builder, const FieldSet& set, const Atom& atom) {
  const std::size_t begin = builder.Begin();
  for (Node node : set.nodes()) {
    TypeRef inner;
    if (atom.map) {
      // Path elements other than field names get the type of undeclared members, as in upstream's lookup.
      inner = node.element.kind == PathElement::Kind::kField ? MemberType(atom, node.element.value.as_string())
                                                             : atom.map_element;
    } else {
      inner = atom.list_element;
    }
    if (inner.mode != TypeRef::Mode::kNone) Reconcile(builder, node, inner, node.member && node.children.empty());
    builder.Add(node);
  }
  return builder.Finish(begin);
}

void Reconcile(FieldSetBuilder& builder, Node& node, const TypeRef& type, bool whole) {
  if (type.mode != TypeRef::Mode::kTyped && type.mode != TypeRef::Mode::kStructural) return;
  const Atom atom = Resolve(type);
  if (atom.map) {
    const bool declares =
        atom.node ? atom.node.property_count() > 0 : atom.fields != nullptr && !atom.fields->json_fields.empty();
    if (atom.map_element.mode == TypeRef::Mode::kDeduced && !declares) return;
    if (!whole && atom.map_atomic) {
      if (!node.children.empty()) {
        node.member = true;
        node.children = {};
      }
      return;
    }
  } else if (atom.list) {
    if (!whole && atom.list_atomic) {
      node.member = true;
      node.children = {};
      return;
    }
  } else {
    return;
  }
  if (!node.children.empty()) node.children = ReconcileLevel(builder, node.children, atom);
}

}  // namespace

FieldSet ToFieldSet(Arena& arena, const Value& value, const TypeRef& type) {
  SetWalker walker(arena);
  Node root;
  walker.Visit(value, type, root);
  return root.children;
}

Comparison CompareTyped(Arena& arena, const Value& old, const Value& now, const TypeRef& type) {
  CompareWalker walker(arena);
  CompareWalker::Place root;
  walker.Visit(&old, &now, type, root);
  return walker.Finish(root);
}

Value MergeTyped(Arena& arena, const Value& live, const Value& config, const TypeRef& type) {
  return MergeWalker(arena).Visit(&live, &config, type).value_or(Value());
}

Value RemoveItems(Arena& arena, const Value& value, const FieldSet& items, const TypeRef& type) {
  return items.empty() ? value : Remove(arena, value, items, type);
}

FieldSet EnsureNamedFieldsAreMembers(Arena& arena, const FieldSet& set, const TypeRef& type) {
  FieldSetBuilder builder(arena);
  return EnsureNamed(builder, set, type);
}

FieldSet ReconcileWithSchema(Arena& arena, const FieldSet& set, const TypeRef& type) {
  FieldSetBuilder builder(arena);
  Node root{{}, false, set};
  Reconcile(builder, root, type, false);
  return root.children;
}

}  // namespace keelson::patch
