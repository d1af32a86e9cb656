#include "controlplane/informer.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "async/deadlines.h"
#include "async/event.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

constexpr std::size_t kBatchMax = 512;
constexpr std::chrono::milliseconds kRetry{200};

Awaitable<void> WaitUntil(async::Event& event, std::chrono::milliseconds at_most) {
  const auto entry =
      async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + at_most, [&event] { event.Set(); });
  co_await event.Wait();
}

}  // namespace

struct Informer::State {
  std::shared_ptr<registry::Store> store;
  OnChanges on_changes;
  std::atomic<bool> synced{false};
  std::atomic<bool> stopping{false};
  // Shared with the stream's waker, which may be called after the stream is gone.
  std::shared_ptr<async::Event> wake = std::make_shared<async::Event>();
  std::future<void> done;
};

Informer::Informer(std::shared_ptr<registry::Store> store, OnChanges on_changes) : state_(std::make_shared<State>()) {
  state_->store = std::move(store);
  state_->on_changes = std::move(on_changes);
}

Informer::~Informer() { Stop(); }

bool Informer::HasSynced() const { return state_->synced; }

void Informer::Start(boost::asio::any_io_executor executor) {
  auto run = Run(state_);
  state_->done = asio::co_spawn(executor, std::move(run), asio::use_future);
}

void Informer::Stop() {
  state_->stopping = true;
  state_->wake->Set();
  if (state_->done.valid()) state_->done.wait();
}

Awaitable<void> Informer::Run(std::shared_ptr<State> state) {
  using Poll = storage::WatchStream::Poll;
  using Type = storage::WatchEvent::Type;
  while (!state->stopping) {
    storage::ListOptions options;
    options.send_initial_events = true;
    options.resource_version_match = "NotOlderThan";
    options.predicate.allow_watch_bookmarks = true;
    auto stream = co_await state->store->Watch("", std::move(options));
    if (!stream.ok()) {
      state->wake->Reset();
      if (!state->stopping) co_await WaitUntil(*state->wake, kRetry);
      continue;
    }
    (*stream)->Start([wake = state->wake] { wake->Set(); });
    bool open = true;
    while (open && !state->stopping) {
      state->wake->Reset();
      base::Arena arena;
      std::vector<Change> changes;
      bool end_of_initial = false;
      Poll poll = Poll::kEvent;
      while (changes.size() < kBatchMax) {
        storage::WatchEvent event;
        poll = (*stream)->Next(event);
        if (poll != Poll::kEvent) break;
        if (event.type == Type::kBookmark) {
          end_of_initial = end_of_initial || event.initial_events_end;
          continue;
        }
        if (event.type == Type::kError) {
          poll = Poll::kEnd;
          break;
        }
        auto value = state->store->Decode(arena, event.object);
        if (!value.ok()) {
          log::Error("Could not read an object", "key", event.object->key(), "err", value.error());
          continue;
        }
        changes.push_back({.deleted = event.type == Type::kDeleted, .object = event.object, .value = *value});
      }
      if (!changes.empty()) state->on_changes(changes);
      if (end_of_initial) state->synced = true;
      if (poll == Poll::kEnd) open = false;
      if (poll == Poll::kPending) co_await state->wake->Wait();
    }
  }
}

}  // namespace keelson::controlplane
