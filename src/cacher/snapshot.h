// All objects of one resource at one revision. Immutable once published; a copy is two counted references.
// Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/btree.h"
#include "base/ref.h"
#include "storage/object.h"

namespace keelson::cacher {

using storage::ObjectPtr;

struct KeyOfObject {
  std::string_view operator()(const ObjectPtr& object) const { return object->key(); }
};
using ObjectTree = base::BTree<ObjectPtr, KeyOfObject>;

// An object under the value of the field it is indexed by, which is a view into the object.
struct Indexed {
  std::string_view value;
  ObjectPtr object;
};
struct KeyOfIndexed {
  std::pair<std::string_view, std::string_view> operator()(const Indexed& item) const { return {item.value, item.object->key()}; }
};
using IndexTree = base::BTree<Indexed, KeyOfIndexed>;

struct Snapshot : base::RefCounted {
  ObjectTree objects;
  IndexTree index;          // by the trigger field; empty where the resource has none
  std::uint64_t revision = 0;

  Snapshot() = default;
  Snapshot(ObjectTree objects_in, IndexTree index_in, std::uint64_t revision_in)
      : objects(std::move(objects_in)), index(std::move(index_in)), revision(revision_in) {}
};
using SnapshotPtr = base::Ref<const Snapshot>;

// The objects under a key prefix (or, when `indexed`, those of one index value among them), in key order.
// The snapshot is held, so the walk may pause for as long as its reader is slow.
class SnapshotCursor {
 public:
  SnapshotCursor() = default;
  // From `start` (not before the prefix) to the end of the prefix.
  SnapshotCursor(SnapshotPtr snapshot, std::string prefix, std::string_view start)
      : snapshot_(std::move(snapshot)), prefix_(std::move(prefix)) {
    objects_ = snapshot_->objects.Seek(start > prefix_ ? start : std::string_view(prefix_));
  }
  static SnapshotCursor OfIndex(SnapshotPtr snapshot, std::string prefix, std::string value) {
    SnapshotCursor cursor;
    cursor.snapshot_ = std::move(snapshot);
    cursor.prefix_ = std::move(prefix);
    cursor.value_ = std::move(value);
    cursor.indexed_ = true;
    cursor.index_ = cursor.snapshot_->index.Seek({cursor.value_, cursor.prefix_});
    return cursor;
  }

  // nullptr at the end.
  const ObjectPtr* Next() {
    if (!snapshot_) return nullptr;
    if (started_) indexed_ ? index_.Next() : objects_.Next();
    started_ = true;
    const bool here = indexed_ ? index_.valid() && index_->value == value_ && index_->object->key().starts_with(prefix_)
                               : objects_.valid() && (*objects_)->key().starts_with(prefix_);
    if (!here) {
      *this = SnapshotCursor();  // lets go of the snapshot
      return nullptr;
    }
    return indexed_ ? &index_->object : &*objects_;
  }
  bool done() const { return !snapshot_; }

 private:
  SnapshotPtr snapshot_;
  std::string prefix_;
  std::string value_;
  bool indexed_ = false;
  bool started_ = false;
  ObjectTree::Iterator objects_;
  IndexTree::Iterator index_;
};

}  // namespace keelson::cacher
