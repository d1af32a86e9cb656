#include "cacher/watch_stream.h"

#include <utility>

namespace keelson::cacher {
namespace {

using storage::WatchEvent;

WatchEvent ErrorEvent(meta::Status status) { return {.type = WatchEvent::Type::kError, .error = std::move(status)}; }

class ErrorStream final : public storage::WatchStream {
 public:
  explicit ErrorStream(meta::Status status) : status_(std::move(status)) {}
  void Start(std::function<void()>) override {}
  Poll Next(WatchEvent& event) override {
    if (std::exchange(told_, true)) return Poll::kEnd;
    event = ErrorEvent(status_);
    return Poll::kEvent;
  }

 private:
  meta::Status status_;
  bool told_ = false;
};

class CacheWatchStream final : public storage::WatchStream {
 public:
  CacheWatchStream(std::shared_ptr<Dispatcher> dispatcher, Dispatcher::WatcherPtr watcher, const storage::Store& store,
                   CacherMetrics& metrics, const WatchSelection& selection, SnapshotPtr initial, bool end_bookmark,
                   bool with_previous)
      : dispatcher_(std::move(dispatcher)),
        watcher_(std::move(watcher)),
        store_(store),
        metrics_(metrics),
        selection_(selection),
        with_previous_(with_previous) {
    if (selection.predicate.shard) metrics_.sharded_watches_opened.fetch_add(1, std::memory_order_relaxed);
    if (!initial) return;
    last_ = initial->revision;
    end_bookmark_ = end_bookmark;
    if (!selection.recursive) {
      if (const ObjectPtr* found = initial->objects.Find(selection.prefix)) only_ = *found;
    } else if (selection.trigger) {
      initial_ = std::make_unique<SnapshotCursor>(
          SnapshotCursor::OfIndex(std::move(initial), selection.prefix, *selection.trigger));
    } else {
      initial_ = std::make_unique<SnapshotCursor>(std::move(initial), selection.prefix, selection.prefix);
    }
  }
  ~CacheWatchStream() override {
    if (selection_.predicate.shard) metrics_.sharded_watches_closed.fetch_add(1, std::memory_order_relaxed);
    dispatcher_->Unregister(*watcher_);
  }

  void Start(std::function<void()> wake) override { dispatcher_->Start(*watcher_, std::move(wake)); }

  Poll Next(WatchEvent& event) override {
    if (ended_) return Poll::kEnd;
    if (NextInitial(event)) return Poll::kEvent;
    if (std::exchange(end_bookmark_, false)) {
      event = {.type = WatchEvent::Type::kBookmark, .resource_version = last_, .initial_events_end = true};
      return Poll::kEvent;
    }
    EventPtr change;
    WatchEvent::Type type{};
    std::uint64_t revision = 0;
    switch (dispatcher_->Next(*watcher_, change, type, revision)) {
      case Dispatcher::Poll::kPending:
        return Poll::kPending;
      case Dispatcher::Poll::kClosed:
        ended_ = true;
        return Poll::kEnd;
      case Dispatcher::Poll::kMissed:
        ended_ = true;
        metrics_.terminated_watchers.fetch_add(1, std::memory_order_relaxed);
        event = ErrorEvent(TooOldResourceVersion(last_, revision));
        return Poll::kEvent;
      case Dispatcher::Poll::kBookmark:
        event = {.type = WatchEvent::Type::kBookmark, .resource_version = revision};
        return Poll::kEvent;
      case Dispatcher::Poll::kEvent:
        break;
    }
    last_ = change->revision;
    event = type == WatchEvent::Type::kDeleted ? Gone(*change) : WatchEvent{.type = type, .object = change->object};
    if (with_previous_ && type == WatchEvent::Type::kModified) event.previous = change->previous;
    return Poll::kEvent;
  }

 private:
  bool NextInitial(WatchEvent& event) {
    if (only_) {
      const ObjectPtr object = std::exchange(only_, nullptr);
      if (selection_.predicate.Matches(*object)) {
        event = {.type = WatchEvent::Type::kAdded, .object = object};
        return true;
      }
    }
    if (!initial_) return false;
    while (const ObjectPtr* object = initial_->Next()) {
      if (!selection_.predicate.Matches(**object)) continue;
      metrics_.init_events.fetch_add(1, std::memory_order_relaxed);
      event = {.type = WatchEvent::Type::kAdded, .object = *object};
      return true;
    }
    initial_.reset();
    return false;
  }

  // The last state with the revision at which it went; made by the first watcher that shows it, shared by the rest.
  WatchEvent Gone(const CacheEvent& change) {
    ObjectPtr gone = change.gone.Load();
    if (!gone) {
      auto made = store_.WithResourceVersion(*change.previous, change.revision);
      if (!made.ok()) {
        ended_ = true;
        return ErrorEvent(meta::NewInternalError(made.error().ToString()));
      }
      gone = *std::move(made);
      change.gone.Store(gone);
    }
    return {.type = WatchEvent::Type::kDeleted, .object = std::move(gone)};
  }

  const std::shared_ptr<Dispatcher> dispatcher_;
  const Dispatcher::WatcherPtr watcher_;
  const storage::Store& store_;
  CacherMetrics& metrics_;
  const WatchSelection& selection_;          // the watcher's
  std::unique_ptr<SnapshotCursor> initial_;  // gone when it is at its end: half a kilobyte that an idle watch can spare
  ObjectPtr only_;
  bool end_bookmark_ = false;
  const bool with_previous_;
  std::uint64_t last_ = 0;  // the revision of what was sent last
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<storage::WatchStream> NewCacheWatchStream(std::shared_ptr<Dispatcher> dispatcher,
                                                          Dispatcher::WatcherPtr watcher, const storage::Store& store,
                                                          CacherMetrics& metrics, SnapshotPtr initial,
                                                          bool end_bookmark, bool with_previous) {
  const WatchSelection& selection = *watcher->selection;
  return std::make_unique<CacheWatchStream>(std::move(dispatcher), std::move(watcher), store, metrics, selection,
                                            std::move(initial), end_bookmark, with_previous);
}

std::unique_ptr<storage::WatchStream> NewErrorStream(meta::Status status) {
  return std::make_unique<ErrorStream>(std::move(status));
}

meta::Status TooOldResourceVersion(std::uint64_t wanted, std::uint64_t oldest) {
  return meta::NewExpired("too old resource version: " + std::to_string(wanted) + " (" + std::to_string(oldest) + ")");
}

}  // namespace keelson::cacher
