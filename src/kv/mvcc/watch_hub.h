// Who waits for which keys. A watcher is a cursor into the store's history; nothing is queued for it.
// Watchers of the same range share a group, so that a commit compares each of its keys once per range and wakes only
// whom it concerns. Thread safety: its own mutex, taken after the store's lock. Changes() and Bump under the store's
// exclusive lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv.h"
#include "kv/mvcc/index.h"
#include "kv/mvcc/suspend.h"

namespace keelson::kv::mvcc {

enum class Wake : std::uint8_t { kLook, kInterrupted };

struct WatchGroup;

// The part of a watcher that the hub knows. Guarded by the hub's mutex, the cursor by the store's lock.
struct WatchCursor {
  WatchGroup* group = nullptr;
  Revision next = 0;  // the first revision not delivered yet
  bool canceled = false;
  bool progress_wanted = false;
  bool progress_notify = false;
  Callback<Wake> waiting;  // set while Next() waits
};

struct WatchGroup {
  std::size_t watchers = 0;
  std::vector<WatchCursor*> waiting;
};

class WatchHub {
 public:
  using Wakes = std::vector<Callback<Wake>>;  // to be called without any lock

  void Join(WatchCursor& cursor, const std::string& key, const std::string& range_end, bool prev_kv);
  void Leave(WatchCursor& cursor, bool prev_kv);
  // Waits unless there is a reason to look first; then `callback` is called at once. REQUIRES: the store's shared lock.
  void Wait(WatchCursor& cursor, Revision visible, Callback<Wake> callback);
  void Interrupt(WatchCursor& cursor, Wake wake);
  void Cancel(WatchCursor& cursor);
  void RequestProgress(WatchCursor& cursor);
  bool TakeProgress(WatchCursor& cursor);
  bool canceled(WatchCursor& cursor);

  // After `changes` were published: wakes whom they concern, moves the others' cursors past them.
  Wakes Publish(std::span<const Change> changes, Revision visible);
  Wakes Progress();  // the watchers with progress_notify
  Wakes Close();     // everybody, for good
  bool closed();
  bool has_prev_kv() const { return prev_kv_.load(std::memory_order_relaxed) > 0; }

 private:
  static void Take(WatchCursor& cursor, Wakes& wakes);

  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, WatchGroup> groups_;
  std::atomic<std::size_t> prev_kv_{0};
  bool closed_ = false;
};

}  // namespace keelson::kv::mvcc
