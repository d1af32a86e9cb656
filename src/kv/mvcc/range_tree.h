// Ranges of keys in an interval tree: which of them contain a key is found in O(log n) steps for each that does.
// A treap ordered by (begin, end); every node has the greatest end below it, so that subtrees that end before the key
// are left out.
//
//            [/b, /k)  greatest end: open
//           /        \            a look-up of /m visits the root, skips the left subtree (it ends at /f),
//     [/a, /f)     [/l, open)     and takes [/l, open)
//
// Thread safety: none. Ownership: values live in their nodes; a node does not move while it is in the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace keelson::kv::mvcc {

// The same key twice is the same range. `range_end` has the meanings of kv::RangeRequest.
template <class T>
class RangeTree {
 public:
  struct Node {
    Node(std::string begin_in, std::string range_end_in, std::uint64_t priority_in)
        : begin(std::move(begin_in)), range_end(std::move(range_end_in)), priority(priority_in) {}
    const std::string begin;
    const std::string range_end;
    T value;

   private:
    friend class RangeTree;
    const std::uint64_t priority;
    const Node* last = this;  // the node below this one, or this one, whose range ends last
    std::unique_ptr<Node> left;
    std::unique_ptr<Node> right;
  };

  // The node of this range, made when it is missing.
  Node& At(std::string_view begin, std::string_view range_end) {
    if (Node* found = Find(begin, range_end)) return *found;
    auto made = std::make_unique<Node>(std::string(begin), std::string(range_end), NextPriority());
    Node& node = *made;
    root_ = Insert(std::move(root_), std::move(made));
    ++size_;
    return node;
  }
  void Erase(const Node& node) {
    root_ = Erase(std::move(root_), node);
    --size_;
  }
  std::size_t size() const { return size_; }

  // Calls visit(value) for each range that contains `key`.
  template <class Visit>
  void ForEachContaining(std::string_view key, const Visit& visit) const {
    Stab(root_.get(), key, visit);
  }
  template <class Visit>
  void ForEach(const Visit& visit) const {
    Walk(root_.get(), visit);
  }

 private:
  using Link = std::unique_ptr<Node>;

  static bool OpenEnd(const Node& node) { return node.range_end.size() == 1 && node.range_end[0] == '\0'; }
  // Whether the range holds `key`, or keys behind it.
  static bool EndsAfter(const Node& node, std::string_view key) {
    if (OpenEnd(node)) return true;
    return node.range_end.empty() ? node.begin >= key : node.range_end > key;
  }
  static bool EndsBefore(const Node& a, const Node& b) {
    if (OpenEnd(a) || OpenEnd(b)) return !OpenEnd(a);
    const std::string& a_end = a.range_end.empty() ? a.begin : a.range_end;
    const std::string& b_end = b.range_end.empty() ? b.begin : b.range_end;
    // A single key contains its own end, so among equal ends it is the last.
    return a_end != b_end ? a_end < b_end : !a.range_end.empty();
  }
  static bool Before(std::string_view begin, std::string_view range_end, const Node& node) {
    const int order = begin.compare(node.begin);
    return order != 0 ? order < 0 : range_end < node.range_end;
  }
  static void Update(Node& node) {
    node.last = &node;
    for (const Link* child : {&node.left, &node.right}) {
      if (*child && EndsBefore(*node.last, *(*child)->last)) node.last = (*child)->last;
    }
  }

  Node* Find(std::string_view begin, std::string_view range_end) const {
    Node* at = root_.get();
    while (at != nullptr && (at->begin != begin || at->range_end != range_end))
      at = Before(begin, range_end, *at) ? at->left.get() : at->right.get();
    return at;
  }
  static Link RotateRight(Link node) {
    Link left = std::move(node->left);
    node->left = std::move(left->right);
    Update(*node);
    left->right = std::move(node);
    Update(*left);
    return left;
  }
  static Link RotateLeft(Link node) {
    Link right = std::move(node->right);
    node->right = std::move(right->left);
    Update(*node);
    right->left = std::move(node);
    Update(*right);
    return right;
  }
  static Link Insert(Link at, Link made) {
    if (!at) return made;
    if (Before(made->begin, made->range_end, *at)) {
      at->left = Insert(std::move(at->left), std::move(made));
      if (at->left->priority > at->priority) return RotateRight(std::move(at));
    } else {
      at->right = Insert(std::move(at->right), std::move(made));
      if (at->right->priority > at->priority) return RotateLeft(std::move(at));
    }
    Update(*at);
    return at;
  }
  static Link Join(Link left, Link right) {
    if (!left) return right;
    if (!right) return left;
    if (left->priority > right->priority) {
      left->right = Join(std::move(left->right), std::move(right));
      Update(*left);
      return left;
    }
    right->left = Join(std::move(left), std::move(right->left));
    Update(*right);
    return right;
  }
  static Link Erase(Link at, const Node& node) {
    if (at.get() == &node) return Join(std::move(at->left), std::move(at->right));
    Link& child = Before(node.begin, node.range_end, *at) ? at->left : at->right;
    child = Erase(std::move(child), node);
    Update(*at);
    return at;
  }

  template <class Visit>
  static void Stab(Node* at, std::string_view key, const Visit& visit) {
    while (at != nullptr && EndsAfter(*at->last, key)) {
      Stab(at->left.get(), key, visit);
      if (at->begin > key) return;
      if (EndsAfter(*at, key)) visit(at->value);
      at = at->right.get();
    }
  }
  template <class Visit>
  static void Walk(Node* at, const Visit& visit) {
    for (; at != nullptr; at = at->right.get()) {
      Walk(at->left.get(), visit);
      visit(at->value);
    }
  }
  // xorshift64: the shape of the tree depends on how many ranges came before, not on what clients chose as keys.
  std::uint64_t NextPriority() {
    priorities_ ^= priorities_ << 13;
    priorities_ ^= priorities_ >> 7;
    priorities_ ^= priorities_ << 17;
    return priorities_;
  }

  Link root_;
  std::size_t size_ = 0;
  std::uint64_t priorities_ = 0x9e3779b97f4a7c15;
};

}  // namespace keelson::kv::mvcc
