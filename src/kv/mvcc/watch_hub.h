// Waiting watchers by key range. A watcher is a cursor into the store's history; nothing is queued for it.
// Watchers of the same range share a group. A commit looks up the groups of each of its keys (range_tree.h) and wakes
// their watchers; all others cost nothing: a waiting watcher has seen everything published since it began to
// wait, so its cursor is moved when it is woken. Thread safety: its own mutex, taken after the store's lock. Publish()
// under the store's exclusive lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "async/suspend.h"
#include "kv/kv.h"
#include "kv/mvcc/index.h"
#include "kv/mvcc/range_tree.h"

namespace keelson::kv::mvcc {

enum class Wake : std::uint8_t { kLook, kInterrupted };

struct WatchCursor;
struct WatchGroup {
  std::size_t watchers = 0;
  WatchCursor* waiting = nullptr;  // the first of a list
};
using WatchGroups = RangeTree<WatchGroup>;

// The hub's part of a watcher. Guarded by the hub's mutex; `next` belongs to the watcher while it does not
// wait.
struct WatchCursor {
  WatchGroups::Node* group = nullptr;
  Revision next = 0;  // the first revision not delivered yet
  bool canceled = false;
  bool progress_wanted = false;
  bool progress_notify = false;
  async::Callback<Wake> waiting;  // set while Next() waits
  WatchCursor* before = nullptr;  // among the group's waiting
  WatchCursor* after = nullptr;
};

class WatchHub {
 public:
  using Wakes = std::vector<async::Callback<Wake>>;  // to be called without any lock

  void Join(WatchCursor& cursor, const std::string& key, const std::string& range_end, bool prev_kv);
  void Leave(WatchCursor& cursor, bool prev_kv);
  // Waits unless there is a reason to look first; then `callback` is called at once. REQUIRES: the store's shared lock.
  void Wait(WatchCursor& cursor, Revision visible, async::Callback<Wake> callback);
  void Interrupt(WatchCursor& cursor, Wake wake);
  void Cancel(WatchCursor& cursor);
  void RequestProgress(WatchCursor& cursor);
  bool TakeProgress(WatchCursor& cursor);
  bool canceled(WatchCursor& cursor);

  // After `changes` were published: wakes the watchers they concern.
  Wakes Publish(std::span<const Change> changes, Revision visible);
  Wakes Progress();  // the watchers with progress_notify
  Wakes Close();     // all watchers, for good
  bool closed();
  bool has_prev_kv() const { return prev_kv_.load(std::memory_order_relaxed) > 0; }

 private:
  // Ends the wait of a cursor that saw everything up to `seen`.
  static void Take(WatchCursor& cursor, Revision seen, Wakes& wakes);
  static void TakeAll(WatchGroup& group, Revision seen, Wakes& wakes);

  std::mutex mutex_;
  WatchGroups groups_;
  Revision published_ = 0;  // the last revision for which waiting watchers were woken, or that did not concern them
  std::atomic<std::size_t> prev_kv_{0};
  bool closed_ = false;
};

}  // namespace keelson::kv::mvcc
