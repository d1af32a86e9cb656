// The watch cache of one resource: the storage interface over a Store, with reads and watches answered from memory.
// State is an immutable snapshot, replaced after every change; a reader takes the pointer and blocks nothing.
// Changes are stored once in a ring, through which watchers walk (dispatcher.h). Writes go to the Store and come back
// through its watch like those of other servers. Thread safety: all members from any
// thread but Start() and Stop() (the owner's) and Tick() (one caller at a time).
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "cacher/event_ring.h"
#include "storage/interface.h"
#include "storage/store.h"

namespace keelson::cacher {

struct CacherOptions {
  std::string trigger_field;  // the field with an index and selective waking: spec.nodeName of pods and resourceslices;
                              // "" for none
  std::string object_type;    // what errors call the objects: *core.Pod
  bool list_from_snapshots = true;  // the gate ListFromCacheSnapshot; false: the store answers lists of the past
  EventRingOptions ring;
  std::chrono::milliseconds fresh_timeout{3000};  // how long a read waits for its revision
  std::chrono::milliseconds retry_period{1000};   // after a failed list or watch
  // How long a change that cannot be read is tried again before everything is listed anew. Watchers stay meanwhile.
  std::chrono::milliseconds unreadable_retry{30'000};
  std::uint64_t replay_revisions_max = 50'000;  // history read at start so that watchers can resume
};

struct CacherMetrics {
  std::atomic<std::uint64_t> events_received{0};
  std::atomic<std::uint64_t> events_dispatched{0};
  std::atomic<std::uint64_t> initializations{0};
  std::atomic<std::uint64_t> init_events{0};
  std::atomic<std::uint64_t> terminated_watchers{0};
  std::atomic<std::uint64_t> sharded_watches_opened{0};
  std::atomic<std::uint64_t> sharded_watches_closed{0};
  std::atomic<std::uint64_t> shard_filtered_events{0};  // objects that watches did not show because of their shard
  std::atomic<std::uint64_t> lists{0};
  std::atomic<std::uint64_t> list_fetched_objects{0};
  std::atomic<std::uint64_t> list_returned_objects{0};
  std::atomic<std::uint64_t> index_lists{0};  // of `lists`, those by the trigger field's index
  std::atomic<std::uint64_t> index_list_fetched_objects{0};
  std::atomic<std::uint64_t> consistent_reads{0};
  std::atomic<std::uint64_t> consistent_read_failures{0};   // neither the cache nor the store answered
  std::atomic<std::uint64_t> consistent_read_fallbacks{0};  // served by the store
  std::atomic<std::uint64_t> consistent_read_fallback_failures{0};
};

class Cacher final : public storage::Interface {
 public:
  // The reflector runs on `executor`, one thread at a time (a strand, or an io_context of one thread). All must outlive
  // this.
  Cacher(storage::Store& store, boost::asio::any_io_executor executor, const base::Clock& clock, HistoryBudget& budget,
         CacherOptions options);
  ~Cacher() override;  // REQUIRES: Stop() if Start() was called; no stream of it is left

  void Start();
  // Ends the reflector and all watches; waits for it. REQUIRES: the executor runs, and this is not its thread.
  void Stop();
  // Time passes: timeouts, progress requests, bookmarks. Call about every 100 ms.
  void Tick();
  // The store has forgotten what was before `revision`: lists at exactly such a revision get the store's answer to
  // that, although history kept here would reach further. From any thread.
  void Compacted(std::uint64_t revision);

  Awaitable<storage::Result<storage::ObjectPtr>> Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                                        telemetry::Caller caller = {}) override;
  Awaitable<storage::Result<storage::ObjectPtr>> Delete(std::string key, storage::Preconditions preconditions,
                                                        storage::ValidateDeletion validate,
                                                        storage::ObjectPtr cached = nullptr,
                                                        telemetry::Caller caller = {}) override;
  Awaitable<storage::Result<void>> DeleteUnread(std::string key) override;
  Awaitable<storage::Result<storage::ObjectPtr>> Get(std::string key, storage::GetOptions options) override;
  storage::ObjectPtr TryGet(std::string_view key, const storage::GetOptions& options) override;
  Awaitable<storage::Result<storage::ObjectList>> GetList(std::string key, storage::ListOptions options) override;
  Awaitable<storage::Result<storage::ObjectPtr>> GuaranteedUpdate(std::string key, bool ignore_not_found,
                                                                  storage::Preconditions preconditions,
                                                                  storage::UpdateFunc update,
                                                                  storage::ObjectPtr cached = nullptr,
                                                                  telemetry::Caller caller = {}) override;
  Awaitable<storage::Result<std::unique_ptr<storage::WatchStream>>> Watch(std::string key,
                                                                          storage::ListOptions options) override;
  Awaitable<storage::Result<storage::Stats>> GetStats() override;
  Awaitable<storage::Result<std::uint64_t>> GetCurrentResourceVersion() override;
  bool Ready() const override;

  // Compares the cache with the store at the cache's revision: names and resourceVersions. False: they differ, and
  // exact-revision reads go to the store until they agree again.
  Awaitable<storage::Result<bool>> CheckConsistency();

  std::uint64_t resource_version() const;  // of the newest state
  const CacherMetrics& metrics() const;
  struct Figures {
    std::size_t objects, events, ring_capacity, history_bytes, watchers;
    std::uint64_t wakes;
    std::uint64_t capacity_increases, capacity_decreases;
  };
  Figures figures() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::cacher
