// The trees of a snapshot: objects by key, and references to them by the value of a field or label.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/btree.h"
#include "cacher/label_filter.h"
#include "storage/object.h"

namespace keelson::cacher {

using storage::ObjectPtr;

// Objects by key. Beside each reference are the bits of its labels (label_filter.h).
class ObjectTree {
  struct Entry {
    ObjectPtr object;
    std::uint64_t label_bits = 0;
  };
  struct KeyOf {
    std::string_view operator()(const Entry& entry) const { return entry.object->key(); }
  };
  using Tree = base::BTree<Entry, KeyOf>;

 public:
  using Iterator = Tree::Iterator;

  std::size_t size() const { return tree_.size(); }
  void Clear() { tree_.Clear(); }
  const ObjectPtr* Find(std::string_view key) const {
    const Entry* const found = tree_.Find(key);
    return found != nullptr ? &found->object : nullptr;
  }
  std::size_t Rank(std::string_view key) const { return tree_.Rank(key); }
  Iterator Seek(std::string_view key) const { return tree_.Seek(key); }
  void Put(ObjectPtr object) {
    const std::uint64_t bits = LabelBits(object->attributes().labels);
    tree_.Put({std::move(object), bits});
  }
  void Erase(std::string_view key) { tree_.Erase(key); }

 private:
  Tree tree_;
};

// An object under the value of the field or label it is indexed by, which is a view into the object.
struct Indexed {
  std::string_view value;
  ObjectPtr object;
};
struct KeyOfIndexed {
  std::pair<std::string_view, std::string_view> operator()(const Indexed& item) const {
    return {item.value, item.object->key()};
  }
};
using IndexTree = base::BTree<Indexed, KeyOfIndexed>;

}  // namespace keelson::cacher
