// An ordered persistent B-tree: a copy is one counted reference, and a change to one copy is never seen in another. A
// change copies the nodes on its path that are shared (about three for ten thousand items) and changes the
// others where they are.
//
//          root ── shared by snapshot and successor until either changes
//         /    \
//     inner    inner'   ◄─ only the path to the change is new
//     /  \     /  \
//   leaf leaf leaf leaf'
//
// KeyOf(item) gives the key (compared with <); items are cheap to copy: references, as a rule. Every node has the
// number of items below it, so that counting a range takes no walk. Thread safety: const members from any thread; a
// change needs that copy alone. Copies on different threads are independent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/check.h"

namespace keelson::base {

template <class Item, class KeyOf>
class BTree {
  struct Node;
  struct Inner;

 public:
  using Key = std::invoke_result_t<KeyOf, const Item&>;
  static constexpr std::uint32_t kItemsMax = 31;  // in a node; upstream's degree 16
  static constexpr std::uint32_t kItemsMin = kItemsMax / 2;
  static constexpr std::uint32_t kDepthMax = 16;

  BTree() = default;
  BTree(const BTree& other) : root_(other.root_) { Hold(root_); }
  BTree(BTree&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  BTree& operator=(BTree other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }
  ~BTree() { Drop(root_); }

  std::size_t size() const { return root_ == nullptr ? 0 : root_->size; }
  bool empty() const { return size() == 0; }
  void Clear() { Drop(std::exchange(root_, nullptr)); }

  // nullptr when there is none. Valid until this copy changes or goes.
  const Item* Find(const Key& key) const {
    for (const Node* node = root_; node != nullptr;) {
      const std::uint32_t at = LowerBound(node, key);
      if (at < node->count && !(key < KeyOf()(node->items[at]))) return &node->items[at];
      if (node->leaf) return nullptr;
      node = node->inner()->children[at];
    }
    return nullptr;
  }

  // How many items have smaller keys.
  std::size_t Rank(const Key& key) const {
    std::size_t rank = 0;
    for (const Node* node = root_; node != nullptr;) {
      const std::uint32_t at = LowerBound(node, key);
      rank += at;
      if (node->leaf) break;
      for (std::uint32_t i = 0; i < at; ++i) rank += node->inner()->children[i]->size;
      if (at < node->count && !(key < KeyOf()(node->items[at]))) return rank + node->inner()->children[at]->size;
      node = node->inner()->children[at];
    }
    return rank;
  }

  // Puts `item` in place of the one with the same key, if there is one. True when it is new.
  bool Put(Item item) {
    const Key key = KeyOf()(item);
    if (root_ == nullptr) {
      root_ = NewNode(true);
      root_->items[0] = std::move(item);
      root_->count = root_->size = 1;
      return true;
    }
    if (Find(key) != nullptr) {
      Replace(key, std::move(item));
      return false;
    }
    Own(root_);
    if (root_->count == kItemsMax) {
      Node* top = NewNode(false);
      top->inner()->children[0] = root_;
      top->size = root_->size;
      root_ = top;
      SplitChild(top, 0);
    }
    Insert(key, std::move(item));
    return true;
  }

  // False when there is none.
  bool Erase(const Key& key) {
    if (Find(key) == nullptr) return false;
    Item gone{};  // The key may be a view into the item that goes.
    EraseFrom(root_, &key, kKey, gone);
    if (root_->count == 0) {
      Node* old = root_;
      root_ = old->leaf ? nullptr : std::exchange(old->inner()->children[0], nullptr);
      Drop(old);
    }
    return true;
  }

  // Walks in order. REQUIRES: the tree it came from is neither changed nor destroyed meanwhile.
  class Iterator {
   public:
    bool valid() const { return depth_ > 0; }
    const Item& operator*() const { return top().node->items[top().at]; }
    const Item* operator->() const { return &**this; }
    void Next() {
      Frame& frame = stack_[depth_ - 1];
      ++frame.at;
      if (!frame.node->leaf) {
        Descend(frame.node->inner()->children[frame.at]);
        return;
      }
      while (depth_ > 0 && top().at == top().node->count) --depth_;
    }

   private:
    friend class BTree;
    struct Frame {
      const Node* node;
      std::uint32_t at;
    };
    const Frame& top() const { return stack_[depth_ - 1]; }
    void Descend(const Node* node) {
      for (;; node = node->inner()->children[0]) {
        KS_DCHECK(depth_ < kDepthMax);
        stack_[depth_++] = {node, 0};
        if (node->leaf) return;
      }
    }
    Frame stack_[kDepthMax];
    std::uint32_t depth_ = 0;
  };

  Iterator begin() const {
    Iterator iterator;
    if (root_ != nullptr) iterator.Descend(root_);
    return iterator;
  }
  // At the first item whose key is not smaller.
  Iterator Seek(const Key& key) const {
    Iterator iterator;
    for (const Node* node = root_; node != nullptr;) {
      const std::uint32_t at = LowerBound(node, key);
      KS_DCHECK(iterator.depth_ < kDepthMax);
      iterator.stack_[iterator.depth_++] = {node, at};
      if (node->leaf || (at < node->count && !(key < KeyOf()(node->items[at])))) break;
      node = node->inner()->children[at];
    }
    while (iterator.depth_ > 0 && iterator.top().at == iterator.top().node->count) --iterator.depth_;
    return iterator;
  }

 private:
  friend struct BTreeInvariants;  // btree_test.cc
  struct Node {
    mutable std::atomic<std::uint32_t> references{1};
    std::uint32_t count = 0;
    std::uint64_t size : 63 = 0;  // items here and below
    std::uint64_t leaf : 1 = 1;
    Item items[kItemsMax];

    Inner* inner() { return static_cast<Inner*>(this); }
    const Inner* inner() const { return static_cast<const Inner*>(this); }
  };
  struct Inner : Node {
    Node* children[kItemsMax + 1] = {};
  };

  static Node* NewNode(bool leaf) {
    Node* node = leaf ? new Node : new Inner;
    node->leaf = leaf;
    return node;
  }
  static void Hold(const Node* node) {
    if (node != nullptr) node->references.fetch_add(1, std::memory_order_relaxed);
  }
  static void Drop(Node* node) {
    if (node == nullptr || node->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (node->leaf) {
      delete node;
      return;
    }
    for (std::uint32_t i = 0; i <= node->count; ++i) Drop(node->inner()->children[i]);  // as deep as the tree
    delete node->inner();
  }
  // Makes the node behind `slot` ours alone. REQUIRES: the node that holds the slot is.
  static Node* Own(Node*& slot) {
    if (slot->references.load(std::memory_order_acquire) == 1) return slot;
    Node* copy = NewNode(slot->leaf);
    copy->count = slot->count;
    copy->size = slot->size;
    for (std::uint32_t i = 0; i < slot->count; ++i) copy->items[i] = slot->items[i];
    if (!slot->leaf) {
      for (std::uint32_t i = 0; i <= slot->count; ++i) {
        copy->inner()->children[i] = slot->inner()->children[i];
        Hold(copy->inner()->children[i]);
      }
    }
    Drop(slot);
    return slot = copy;
  }

  static std::uint32_t LowerBound(const Node* node, const Key& key) {
    std::uint32_t low = 0;
    std::uint32_t high = node->count;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (KeyOf()(node->items[middle]) < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  void Replace(const Key& key, Item item) {
    for (Node** slot = &root_;;) {
      Node* node = Own(*slot);
      const std::uint32_t at = LowerBound(node, key);
      if (at < node->count && !(key < KeyOf()(node->items[at]))) {
        std::swap(node->items[at],
                  item);  // The old one goes after the last use of `key`, which may be a view into either.
        return;
      }
      slot = &node->inner()->children[at];
    }
  }

  // REQUIRES: the key is not there; the root is ours and not full.
  void Insert(const Key& key, Item item) {
    for (Node* node = root_;;) {
      std::uint32_t at = LowerBound(node, key);
      ++node->size;
      if (node->leaf) {
        for (std::uint32_t i = node->count; i > at; --i) node->items[i] = std::move(node->items[i - 1]);
        node->items[at] = std::move(item);
        ++node->count;
        return;
      }
      Node* child = Own(node->inner()->children[at]);
      if (child->count == kItemsMax) {
        SplitChild(node, at);
        if (KeyOf()(node->items[at]) < key) child = node->inner()->children[at + 1];
      }
      node = child;
    }
  }

  // Moves the upper half of a full child into a new sibling, its middle item up here. REQUIRES: both are ours.
  static void SplitChild(Node* parent, std::uint32_t at) {
    Node* left = parent->inner()->children[at];
    Node* right = NewNode(left->leaf);
    right->count = kItemsMax - kItemsMin - 1;
    std::uint64_t moved = right->count;
    for (std::uint32_t i = 0; i < right->count; ++i) right->items[i] = std::move(left->items[kItemsMin + 1 + i]);
    if (!left->leaf) {
      for (std::uint32_t i = 0; i <= right->count; ++i) {
        right->inner()->children[i] = std::exchange(left->inner()->children[kItemsMin + 1 + i], nullptr);
        moved += right->inner()->children[i]->size;
      }
    }
    right->size = moved;
    left->size -= moved + 1;
    for (std::uint32_t i = parent->count; i > at; --i) {
      parent->items[i] = std::move(parent->items[i - 1]);
      parent->inner()->children[i + 1] = parent->inner()->children[i];
    }
    parent->items[at] = std::exchange(left->items[kItemsMin], Item{});
    parent->inner()->children[at + 1] = right;
    ++parent->count;
    left->count = kItemsMin;
  }

  enum What : std::uint8_t { kKey, kFirst, kLast };

  // Takes the item with `key` (or the first, or the last) from below `slot` into `out`.
  // REQUIRES: it is there; the node that holds the slot is ours; the node has more than kItemsMin items or is the root.
  static void EraseFrom(Node*& slot, const Key* key, What what, Item& out) {
    Node* node = Own(slot);
    std::uint32_t at = what == kFirst ? 0 : what == kLast ? node->count : LowerBound(node, *key);
    if (node->leaf) {
      if (what == kLast) --at;
      out = std::move(node->items[at]);
      for (std::uint32_t i = at; i + 1 < node->count; ++i) node->items[i] = std::move(node->items[i + 1]);
      node->items[node->count - 1] = Item{};
      --node->count;
      --node->size;
      return;
    }
    Node** const children = node->inner()->children;
    if (what == kKey && at < node->count && !(*key < KeyOf()(node->items[at]))) {
      if (children[at]->count > kItemsMin || children[at + 1]->count > kItemsMin) {
        --node->size;
        Item neighbour{};
        if (children[at]->count > kItemsMin) {
          EraseFrom(children[at], nullptr, kLast, neighbour);
        } else {
          EraseFrom(children[at + 1], nullptr, kFirst, neighbour);
        }
        out = std::exchange(node->items[at], std::move(neighbour));
        return;
      }
      Merge(node, at);
    } else if (children[at]->count <= kItemsMin) {
      at = Refill(node, at);
    }
    --node->size;
    EraseFrom(children[at], key, what, out);
  }

  // Gives the child at `at` one more item than the least; returns where it is then.
  static std::uint32_t Refill(Node* node, std::uint32_t at) {
    Node** const children = node->inner()->children;
    if (at > 0 && children[at - 1]->count > kItemsMin) {
      Node* left = Own(children[at - 1]);
      Node* child = Own(children[at]);
      for (std::uint32_t i = child->count; i > 0; --i) child->items[i] = std::move(child->items[i - 1]);
      child->items[0] = std::exchange(node->items[at - 1], std::exchange(left->items[left->count - 1], Item{}));
      std::uint64_t moved = 1;
      if (!child->leaf) {
        for (std::uint32_t i = child->count + 1; i > 0; --i)
          child->inner()->children[i] = child->inner()->children[i - 1];
        child->inner()->children[0] = std::exchange(left->inner()->children[left->count], nullptr);
        moved += child->inner()->children[0]->size;
      }
      ++child->count;
      --left->count;
      child->size += moved;
      left->size -= moved;
      return at;
    }
    if (at < node->count && children[at + 1]->count > kItemsMin) {
      Node* right = Own(children[at + 1]);
      Node* child = Own(children[at]);
      child->items[child->count] = std::exchange(node->items[at], std::exchange(right->items[0], Item{}));
      for (std::uint32_t i = 0; i + 1 < right->count; ++i) right->items[i] = std::move(right->items[i + 1]);
      right->items[right->count - 1] = Item{};
      std::uint64_t moved = 1;
      if (!child->leaf) {
        child->inner()->children[child->count + 1] = right->inner()->children[0];
        moved += right->inner()->children[0]->size;
        for (std::uint32_t i = 0; i < right->count; ++i) right->inner()->children[i] = right->inner()->children[i + 1];
        right->inner()->children[right->count] = nullptr;
      }
      ++child->count;
      --right->count;
      child->size += moved;
      right->size -= moved;
      return at;
    }
    const std::uint32_t left = at == node->count ? at - 1 : at;
    Merge(node, left);
    return left;
  }

  // The children at `at` and behind it, with the item between them, become one. REQUIRES: both have kItemsMin items.
  static void Merge(Node* node, std::uint32_t at) {
    Node** const children = node->inner()->children;
    Node* left = Own(children[at]);
    Node* right = Own(children[at + 1]);
    left->items[left->count] = std::exchange(node->items[at], Item{});
    for (std::uint32_t i = 0; i < right->count; ++i) left->items[left->count + 1 + i] = std::move(right->items[i]);
    if (!left->leaf) {
      for (std::uint32_t i = 0; i <= right->count; ++i) {
        left->inner()->children[left->count + 1 + i] = std::exchange(right->inner()->children[i], nullptr);
      }
    }
    left->count += 1 + right->count;
    left->size += 1 + right->size;
    for (std::uint32_t i = at; i + 1 < node->count; ++i) {
      node->items[i] = std::move(node->items[i + 1]);
      children[i + 1] = children[i + 2];
    }
    node->items[node->count - 1] = Item{};
    children[node->count] = nullptr;
    --node->count;
    Drop(right);
  }

  Node* root_ = nullptr;
};

}  // namespace keelson::base
