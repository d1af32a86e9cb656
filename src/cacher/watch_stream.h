// The streams a Cacher hands out: a walk through a snapshot, then through the ring. Nothing is queued.
#pragma once

#include <memory>

#include "cacher/cacher.h"
#include "cacher/dispatcher.h"
#include "storage/interface.h"
#include "storage/store.h"

namespace keelson::cacher {

// `initial` null: changes only. `end_bookmark`: send a bookmark after the initial events (initial-events-end).
// `with_previous`: as in storage::ListOptions.
std::unique_ptr<storage::WatchStream> NewCacheWatchStream(std::shared_ptr<Dispatcher> dispatcher,
                                                          Dispatcher::WatcherPtr watcher, const storage::Store& store,
                                                          CacherMetrics& metrics, SnapshotPtr initial,
                                                          bool end_bookmark, bool with_previous);
// One ERROR event, then the end.
std::unique_ptr<storage::WatchStream> NewErrorStream(meta::Status status);
meta::Status TooOldResourceVersion(std::uint64_t wanted, std::uint64_t oldest);

}  // namespace keelson::cacher
