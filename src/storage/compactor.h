// Compacts the store's history every few minutes. Several servers on one store coordinate through a key: the one that
// finds `compact_rev_key` unchanged since its own last look compacts to the revision it saw then.
// Thread safety: Compact() by one caller at a time; the rest from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "async/awaitable.h"
#include "kv/kv.h"

namespace keelson::storage {

class Compactor {
 public:
  explicit Compactor(kv::Store& kv) : kv_(kv) {}

  // One round; call it every --etcd-compaction-interval. The first never compacts.
  Awaitable<kv::Result<void>> Compact();
  // The highest revision known to be compacted, by this or another server; 0 when unknown.
  std::int64_t compact_revision() const { return compact_revision_.load(std::memory_order_relaxed); }

 private:
  kv::Store& kv_;
  std::int64_t compact_time_ = 0;  // the version of the key after our last look
  kv::Revision revision_ = 0;      // of the store at our last look
  std::atomic<std::int64_t> compact_revision_{0};
};

}  // namespace keelson::storage
