// All objects of one resource at one revision. Immutable once published; a copy is two counted references.
// Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/ref.h"
#include "cacher/index_tree.h"
#include "cacher/label_index.h"
#include "kv/kv.h"

namespace keelson::cacher {

struct Snapshot : base::RefCounted {
  ObjectTree objects;
  IndexTree index;  // by the trigger field; empty where the resource has none
  LabelIndexes labels;
  std::uint64_t revision = 0;

  Snapshot() = default;
  Snapshot(ObjectTree objects_in, IndexTree index_in, std::uint64_t revision_in, LabelIndexes labels_in = {})
      : objects(std::move(objects_in)),
        index(std::move(index_in)),
        labels(std::move(labels_in)),
        revision(revision_in) {}
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
    const IndexTree& index = snapshot->index;
    return OfIndex(std::move(snapshot), index, prefix, value);
  }
  // `index` is one of the snapshot's.
  static SnapshotCursor OfIndex(SnapshotPtr snapshot, const IndexTree& index, const std::string& prefix,
                                std::string_view value) {
    SnapshotCursor cursor;
    cursor.snapshot_ = std::move(snapshot);
    cursor.indexed_ = true;
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
