// Keeps a Dispatcher in step with the store: lists, replays recent history, then follows the kv watch, and starts over
// when it must. A lost connection is taken up again where it broke; only history that is gone forces a new list, which
// closes all watchers. Thread safety: Run() on one executor; the rest from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "base/hash.h"
#include "cacher/cacher.h"
#include "cacher/dispatcher.h"
#include "cacher/freshness.h"
#include "storage/store.h"

namespace keelson::cacher {

class Reflector {
 public:
  Reflector(storage::Store& store, const base::Clock& clock, Dispatcher& dispatcher, Freshness& freshness,
            CacherMetrics& metrics, const CacherOptions& options, const LabelDemand& label_demand);

  Awaitable<void> Run();  // until Stop()
  void Stop();
  void RequestProgress();

  // False with an etcd that may report progress before the events up to it (kv/etcd_version.h): then only a read of the
  // store shows whether the state is the newest.
  bool progress_ordered() const { return progress_ordered_.load(std::memory_order_acquire); }
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  struct Down {
    std::string error;  // of the last try; may be ""
    base::Clock::SteadyTime since;
    bool stopped;
  };
  Down down() const;

 private:
  Awaitable<storage::Result<void>> List();
  Awaitable<void> LearnProgressOrder();
  Awaitable<storage::Result<void>> Follow();
  Awaitable<kv::Result<void>> FollowOnce(bool replaying);
  Awaitable<storage::Result<void>> Apply(kv::WatchResponse response);
  Awaitable<storage::Result<void>> Open(std::vector<kv::Event>& changes, std::vector<storage::ObjectPtr>& opened);
  Awaitable<void> Replay(kv::Event change, std::vector<EventPtr>& events);
  storage::Error Unreadable(const storage::Store::Unreadable& why) const;
  void Change(EventPtr event);
  void Publish(std::vector<EventPtr> events, std::uint64_t revision);
  bool OpenWatch(std::uint64_t from, bool prev_kv);
  void CloseWatch();
  void Fail(std::string error);
  void BecomeReady();
  std::string PrefixKey() const;

  storage::Store& store_;
  const base::Clock& clock_;
  Dispatcher& dispatcher_;
  Freshness& freshness_;
  CacherMetrics& metrics_;
  const CacherOptions& options_;
  const LabelDemand& label_demand_;

  // The reflector's own.
  ObjectTree objects_;
  IndexTree index_;
  LabelIndexes labels_;
  std::uint64_t applied_ = 0;                                // every change up to here is in objects_
  std::uint64_t delivered_ = 0;                              // how far the watch is
  std::optional<base::Clock::SteadyTime> unreadable_since_;  // the next change cannot be read
  std::uint64_t listed_ = 0;             // the list was made at this revision; older changes are history
  base::StringMap<ObjectPtr> replayed_;  // the last object of each key that replaying has seen

  std::atomic<bool> progress_ordered_{true};
  std::atomic<bool> ready_{false};
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::unique_ptr<kv::Watcher> watcher_;  // guarded; used unguarded by Run() alone
  Down down_;                             // guarded
};

}  // namespace keelson::cacher
