// All objects of one resource at one revision. Immutable once published; a copy is two counted references.
// Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/btree.h"
#include "base/ref.h"
#include "cacher/label_filter.h"
#include "kv/kv.h"
#include "storage/object.h"

namespace keelson::cacher {

using storage::ObjectPtr;

// Objects by key. Beside each reference stand the bits of its labels (label_filter.h).
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

// An object under the value of the field it is indexed by, which is a view into the object.
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

struct Snapshot : base::RefCounted {
  ObjectTree objects;
  IndexTree index;  // by the trigger field; empty where the resource has none
  std::uint64_t revision = 0;

  Snapshot() = default;
  Snapshot(ObjectTree objects_in, IndexTree index_in, std::uint64_t revision_in)
      : objects(std::move(objects_in)), index(std::move(index_in)), revision(revision_in) {}
};
using SnapshotPtr = base::Ref<const Snapshot>;

// The objects under a key prefix (or those of one index value among them), in key order. How many there are is known
// from the start, so the walk looks at no key. The snapshot is held, so it may pause for as long as its reader is slow.
class SnapshotCursor {
 public:
  SnapshotCursor() = default;
  // From `start` (not before the prefix) to the end of the prefix.
  SnapshotCursor(SnapshotPtr snapshot, const std::string& prefix, std::string_view start)
      : snapshot_(std::move(snapshot)) {
    if (start < prefix) start = prefix;
    objects_ = snapshot_->objects.Seek(start);
    Expect(snapshot_->objects.Rank(start), snapshot_->objects.Rank(kv::PrefixEnd(prefix)));
  }
  static SnapshotCursor OfIndex(SnapshotPtr snapshot, const std::string& prefix, std::string_view value) {
    SnapshotCursor cursor;
    cursor.snapshot_ = std::move(snapshot);
    cursor.indexed_ = true;
    const IndexTree& index = cursor.snapshot_->index;
    cursor.index_ = index.Seek({value, prefix});
    cursor.Expect(index.Rank({value, prefix}), index.Rank({value, kv::PrefixEnd(prefix)}));
    return cursor;
  }

  // How many follow, whatever a filter says of them.
  std::size_t remaining() const { return remaining_; }
  // nullptr at the end.
  const ObjectPtr* Next() {
    if (remaining_ == 0) {
      snapshot_ = nullptr;
      return nullptr;
    }
    Step();
    return indexed_ ? &index_->object : &objects_->object;
  }
  // The next that `filter` does not rule out. REQUIRES: not of an index.
  const ObjectPtr* Next(const LabelFilter& filter) {
    while (remaining_ > 0) {
      Step();
      if (filter.MayMatch(objects_->label_bits)) return &objects_->object;
    }
    snapshot_ = nullptr;
    return nullptr;
  }

 private:
  void Step() {
    --remaining_;
    if (started_) indexed_ ? index_.Next() : objects_.Next();
    started_ = true;
  }
  void Expect(std::size_t first, std::size_t last) { remaining_ = last > first ? last - first : 0; }

  SnapshotPtr snapshot_;
  std::size_t remaining_ = 0;
  bool indexed_ = false;
  bool started_ = false;
  ObjectTree::Iterator objects_;
  IndexTree::Iterator index_;
};

}  // namespace keelson::cacher
