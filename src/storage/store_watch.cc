// Watch straight from kv, for resources without a watch cache (events). The kv watcher is the cursor: one response is
// fetched, handed out event by event, and only then the next is requested, so a slow client delays no other and costs
// no queue.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "async/event.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace keelson::storage {
namespace {

constexpr std::int64_t kInitialPage = 1000;
constexpr auto kRevisionMax = static_cast<std::uint64_t>(std::numeric_limits<kv::Revision>::max());

WatchEvent ErrorEvent(meta::Status status) { return {.type = WatchEvent::Type::kError, .error = std::move(status)}; }

meta::Status StatusOf(const Error& error) {
  // A list reports all unreadable objects, a watch the first.
  if (error.status && error.status->reason() == meta::StatusReason::kStoreReadError)
    return meta::NewInternalError(error.message);
  return error.status ? *error.status : meta::NewInternalError(error.ToString());
}

// Shared by the stream, which the client's connection owns, and by the coroutine that fetches for it.
struct Shared {
  Shared(Store& store_in, std::string key_in, ListOptions options_in)
      : store(store_in), key(std::move(key_in)), options(std::move(options_in)) {}

  Store& store;
  const std::string key;  // prepared, relative
  const ListOptions options;
  bool initial_events = false;
  std::uint64_t start = 0;  // changes after this revision are wanted

  std::mutex mutex;
  std::function<void()> wake;
  std::deque<WatchEvent> ready;  // of one response
  bool ended = false;            // nothing follows `ready`
  bool closed = false;           // the stream is gone
  std::unique_ptr<kv::Watcher> watcher;
  std::shared_ptr<async::Event> drained = std::make_shared<async::Event>();

  // Hands over fetched events; false if the watch was closed.
  Awaitable<bool> Offer(std::deque<WatchEvent> events, bool last) {
    std::shared_ptr<async::Event> wait;
    std::function<void()> call;
    {
      std::lock_guard lock(mutex);
      if (closed) co_return false;
      if (!events.empty()) drained = std::make_shared<async::Event>();
      if (!events.empty()) wait = drained;
      ready = std::move(events);
      ended = last;
      call = wake;
    }
    if (call) call();
    if (last) co_return false;
    if (wait) co_await wait->Wait();
    std::lock_guard lock(mutex);
    co_return !closed;
  }
};

// The event of a change for a watcher with a predicate (ADDED, MODIFIED or DELETED). False: none.
Awaitable<bool> ToWatchEvent(Shared& shared, kv::Event change, WatchEvent& out) {
  // The value before the change was compacted: neither its type nor, of a deletion, its object is known.
  if (!change.is_create() && !change.prev_kv) {
    const std::string_view type = change.type == kv::Event::Type::kPut ? "PUT" : "DELETE";
    out = ErrorEvent(meta::NewInternalError("etcd event received with PrevKv=nil (key=\"" + change.kv.key +
                                            "\", modRevision=" + std::to_string(change.kv.mod_revision) +
                                            ", type=" + std::string(type) + ")"));
    co_return true;
  }
  const auto revision = static_cast<std::uint64_t>(change.kv.mod_revision);
  const SelectionPredicate& predicate = shared.options.predicate;
  ObjectPtr now;
  ObjectPtr before;
  const bool everything = predicate.MatchesEverything();
  const bool with_previous = shared.options.with_previous;
  if (change.type == kv::Event::Type::kPut) {
    const bool created = change.is_create();
    auto object = co_await shared.store.ObjectOf(std::move(change.kv));
    if (!object.ok()) {
      out = ErrorEvent(shared.store.WatchError(object.error(), false));
      co_return true;
    }
    if (everything || predicate.Matches(**object)) now = *std::move(object);
    if ((everything && !with_previous) || created) {
      if (!now) co_return false;
      out = {.type = created ? WatchEvent::Type::kAdded : WatchEvent::Type::kModified, .object = std::move(now)};
      co_return true;
    }
  }
  if (change.prev_kv) {
    auto object = co_await shared.store.ObjectOf(*std::move(change.prev_kv));
    if (!object.ok()) {
      out = ErrorEvent(shared.store.WatchError(object.error(), change.type == kv::Event::Type::kDelete));
      co_return true;
    }
    if (everything || predicate.Matches(**object)) before = *std::move(object);
  }
  if (now) {
    out = {.type = before ? WatchEvent::Type::kModified : WatchEvent::Type::kAdded, .object = std::move(now)};
    if (with_previous) out.previous = std::move(before);
    co_return true;
  }
  if (!before) co_return false;
  auto last = shared.store.WithResourceVersion(*before, revision);
  out = last.ok() ? WatchEvent{.type = WatchEvent::Type::kDeleted, .object = *std::move(last)}
                  : ErrorEvent(StatusOf(last.error()));
  co_return true;
}

Awaitable<void> EndWith(std::shared_ptr<Shared> shared, meta::Status status) {
  std::deque<WatchEvent> events;
  events.push_back(ErrorEvent(std::move(status)));
  co_await shared->Offer(std::move(events), true);
}

// The state the watch begins with, page by page at one revision. False when the stream ended.
Awaitable<bool> SendInitialEvents(std::shared_ptr<Shared> shared) {
  ListOptions options{.predicate = shared->options.predicate, .recursive = shared->options.recursive};
  options.predicate.limit = kInitialPage;
  options.predicate.continue_token.clear();
  for (;;) {
    auto page = co_await shared->store.GetList(shared->key, options);
    if (!page.ok()) {
      co_await EndWith(shared, StatusOf(page.error()));
      co_return false;
    }
    if (shared->start > page->resource_version) {
      co_await EndWith(shared, meta::NewTooLargeResourceVersion(shared->start, page->resource_version, 1));
      co_return false;
    }
    std::deque<WatchEvent> events;
    for (ObjectPtr& object : page->items)
      events.push_back({.type = WatchEvent::Type::kAdded, .object = std::move(object)});
    options.predicate.continue_token = page->continue_token;
    const bool last_page = page->continue_token.empty();
    if (last_page) {
      shared->start = page->resource_version;
      if (shared->options.send_initial_events.value_or(false) && shared->options.predicate.allow_watch_bookmarks) {
        events.push_back(
            {.type = WatchEvent::Type::kBookmark, .resource_version = shared->start, .initial_events_end = true});
      }
    }
    if (!co_await shared->Offer(std::move(events), false)) co_return false;
    if (last_page) co_return true;
  }
}

// `entry` keeps the store while this runs, and goes last; a stream that ends does not wait for it.
Awaitable<void> Fetch(async::Gate::Entry entry, std::shared_ptr<Shared> shared) {
  if (shared->initial_events && !co_await SendInitialEvents(shared)) co_return;
  if (shared->start >= kRevisionMax) {
    const auto current = co_await shared->store.GetCurrentResourceVersion();
    co_await EndWith(shared, current.ok() ? meta::NewTooLargeResourceVersion(shared->start, *current, 1)
                                          : StatusOf(current.error()));
    co_return;
  }
  const std::string full_key = shared->store.FullKey(shared->key);
  kv::WatchRequest request{
      .key = full_key, .start_revision = static_cast<kv::Revision>(shared->start) + 1, .prev_kv = true};
  if (shared->options.recursive) request.range_end = kv::PrefixEnd(full_key);
  auto watcher = shared->store.kv().Watch(std::move(request));
  kv::Watcher* const cursor = watcher.get();
  {
    std::lock_guard lock(shared->mutex);
    if (shared->closed) co_return;
    shared->watcher = std::move(watcher);
  }
  for (;;) {
    auto response = co_await cursor->Next();
    std::deque<WatchEvent> events;
    if (!response.ok()) {
      if (response.error().code == kv::ErrorCode::kCompacted) {
        events.push_back(ErrorEvent(meta::NewExpired("The resourceVersion for the provided watch is too old.")));
      } else if (response.error().code != kv::ErrorCode::kCanceled && response.error().code != kv::ErrorCode::kClosed) {
        events.push_back(ErrorEvent(meta::NewInternalError(response.error().message)));
      }
      co_await shared->Offer(std::move(events), true);
      co_return;
    }
    if (ResourceMetrics* const metrics = shared->store.metrics()) {
      metrics->EventsReceived(response->events.size());
      if (response->is_progress()) metrics->Bookmark();
    }
    for (kv::Event& change : response->events) {
      WatchEvent event;
      if (!co_await ToWatchEvent(*shared, std::move(change), event)) continue;
      const bool failed = event.type == WatchEvent::Type::kError;
      events.push_back(std::move(event));
      if (failed) {
        co_await shared->Offer(std::move(events), true);
        co_return;
      }
    }
    if (events.empty()) continue;
    if (!co_await shared->Offer(std::move(events), false)) co_return;
  }
}

class StoreWatchStream final : public WatchStream {
 public:
  StoreWatchStream(std::shared_ptr<Shared> shared, asio::any_io_executor executor)
      : shared_(std::move(shared)), executor_(std::move(executor)) {}
  ~StoreWatchStream() override {
    std::shared_ptr<async::Event> drained;
    {
      std::lock_guard lock(shared_->mutex);
      shared_->closed = true;
      shared_->wake = nullptr;
      drained = shared_->drained;
      if (shared_->watcher) shared_->watcher->Cancel();
    }
    drained->Set();
  }

  void Start(std::function<void()> wake) override {
    {
      std::lock_guard lock(shared_->mutex);
      shared_->wake = std::move(wake);
    }
    if (auto entry = shared_->store.watches().Enter())
      asio::co_spawn(executor_, Fetch(*std::move(entry), shared_), asio::detached);
  }

  Poll Next(WatchEvent& event) override {
    std::shared_ptr<async::Event> drained;
    {
      std::lock_guard lock(shared_->mutex);
      if (shared_->ready.empty()) return shared_->ended ? Poll::kEnd : Poll::kPending;
      event = std::move(shared_->ready.front());
      shared_->ready.pop_front();
      if (shared_->ready.empty()) drained = shared_->drained;
    }
    if (drained) drained->Set();
    return Poll::kEvent;
  }

 private:
  std::shared_ptr<Shared> shared_;
  asio::any_io_executor executor_;
};

}  // namespace

Awaitable<Result<std::unique_ptr<WatchStream>>> Store::Watch(std::string key, ListOptions options) {
  KS_CO_TRY(std::string relative, PrepareKey(options_.resource_prefix, key, options.recursive));
  const auto wanted = ParseResourceVersion(options.resource_version);
  if (!wanted.ok()) co_return StatusError(meta::NewPlainError(wanted.error()));
  auto shared = std::make_shared<Shared>(*this, std::move(relative), std::move(options));
  shared->start = *wanted;
  shared->initial_events = shared->options.send_initial_events.value_or(*wanted == 0);
  if (*wanted == 0 && !shared->initial_events) {
    KS_CO_TRY(shared->start, co_await GetCurrentResourceVersion());
  }
  auto executor = co_await asio::this_coro::executor;
  co_return std::make_unique<StoreWatchStream>(std::move(shared), std::move(executor));
}

}  // namespace keelson::storage
