#include "registry/informer.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <mutex>

#include "async/deadlines.h"
#include "async/event.h"
#include "base/btree.h"
#include "base/check.h"
#include "telemetry/log.h"

namespace keelson::registry {
namespace {

constexpr std::size_t kBatchMax = 512;
constexpr std::size_t kBatchBytesMax = std::size_t{256} * 1024;  // stored; decoded they take about ten times as much
constexpr std::chrono::milliseconds kRetry{200};

struct KeyOf {
  std::string_view operator()(const storage::ObjectPtr& object) const {
    return object ? object->key() : std::string_view();
  }
};
using Objects = base::BTree<storage::ObjectPtr, KeyOf>;
using RegistrationPtr = std::shared_ptr<Informer::Registration>;

Awaitable<void> WaitUntil(async::Event& event, std::chrono::milliseconds at_most) {
  const auto entry =
      async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + at_most, [&event] { event.Set(); });
  co_await event.Wait();
}

std::shared_ptr<const meta::FieldSelector> NameSelector(const std::string& name) {
  auto parsed = meta::FieldSelector::Parse("metadata.name=" + name);
  KS_CHECK(parsed.ok());
  return std::make_shared<const meta::FieldSelector>(*std::move(parsed));
}

}  // namespace

struct Informer::State {
  std::shared_ptr<Store> store;
  std::string name_space, name;  // "": all
  std::function<void()> on_synced;
  std::mutex mutex;  // guards `added`
  std::vector<RegistrationPtr> added;
  std::atomic<bool> stopping{false};
  // Shared with the stream's waker, which may be called after the stream is gone.
  std::shared_ptr<async::Event> wake = std::make_shared<async::Event>();
  std::future<void> done;
  mutable std::mutex all_mutex;
  std::vector<RegistrationPtr> all;

  // The rest belongs to Run().
  std::vector<RegistrationPtr> handlers;
  Objects known;
  Objects listed;         // what the present watch has shown of the first state
  bool listing = true;    // the present watch is still showing it
  bool complete = false;  // some watch has shown it whole

  void AddLateHandlers();
  void Deliver(const std::vector<Change>& changes);
  void DeliverTo(Registration& handler, const std::vector<Change>& changes);
  void Replay(Registration& handler);
  void Observe(const storage::WatchEvent& event, std::vector<Change>& changes);
  void EndOfList();
};

void Informer::State::DeliverTo(Registration& handler, const std::vector<Change>& changes) {
  if (changes.empty()) return;
  std::vector<Change> shown = changes;
  base::Arena arena;
  if (handler.form_ == Form::kDecoded) {
    for (Change& change : shown) {
      auto value = store->Decode(arena, change.object);
      if (value.ok()) {
        change.value = *value;
      } else {
        log::Error("Could not read an object", "key", change.object->key(), "err", value.error());
        change.deleted = true;
      }
    }
  }
  handler.on_changes_(shown);
}

void Informer::State::Deliver(const std::vector<Change>& changes) {
  for (const auto& handler : handlers) DeliverTo(*handler, changes);
}

void Informer::State::Replay(Registration& handler) {
  std::vector<Change> changes;
  std::size_t bytes = 0;
  for (auto at = known.begin(); at.valid(); at.Next()) {
    changes.push_back({.object = *at});
    bytes += (*at)->stored().size();
    if (changes.size() < kBatchMax && bytes < kBatchBytesMax) continue;
    DeliverTo(handler, changes);
    changes.clear();
    bytes = 0;
  }
  DeliverTo(handler, changes);
  if (complete) handler.synced_.store(true, std::memory_order_release);
}

void Informer::State::AddLateHandlers() {
  std::vector<RegistrationPtr> late;
  {
    const std::scoped_lock lock(mutex);
    late.swap(added);
  }
  for (auto& handler : late) {
    Replay(*handler);
    handlers.push_back(std::move(handler));
  }
}

void Informer::State::Observe(const storage::WatchEvent& event, std::vector<Change>& changes) {
  const bool deleted = event.type == storage::WatchEvent::Type::kDeleted;
  if (deleted) {
    known.Erase(event.object->key());
    listed.Erase(event.object->key());
  } else {
    if (listing) {
      listed.Put(event.object);
      const auto* before = known.Find(event.object->key());
      if (before != nullptr && (*before)->resource_version() == event.object->resource_version()) return;
    }
    known.Put(event.object);
  }
  changes.push_back({.deleted = deleted, .object = event.object});
}

// The watch has shown the whole state: other known objects were deleted while the watch was down.
void Informer::State::EndOfList() {
  std::vector<Change> gone;
  for (auto at = known.begin(); at.valid(); at.Next()) {
    if (listed.Find((*at)->key()) == nullptr) gone.push_back({.deleted = true, .object = *at});
  }
  for (const Change& change : gone) known.Erase(change.object->key());
  Deliver(gone);
  listed.Clear();
  listing = false;
  complete = true;
  for (const auto& handler : handlers) handler->synced_.store(true, std::memory_order_release);
  if (on_synced) std::exchange(on_synced, nullptr)();
}

Informer::Informer(std::shared_ptr<Store> store) : state_(std::make_shared<State>()) {
  state_->store = std::move(store);
}

Informer::Informer(std::shared_ptr<Store> store, OnChanges on_changes) : Informer(std::move(store)) {
  AddHandler(std::move(on_changes));
}

Informer::~Informer() { Stop(); }

std::shared_ptr<const Informer::Registration> Informer::AddHandler(OnChanges on_changes, Form form) {
  auto handler = std::make_shared<Registration>();
  handler->on_changes_ = std::move(on_changes);
  handler->form_ = form;
  {
    const std::scoped_lock lock(state_->all_mutex);
    state_->all.push_back(handler);
  }
  {
    const std::scoped_lock lock(state_->mutex);
    state_->added.push_back(handler);
  }
  state_->wake->Set();
  return handler;
}

bool Informer::HasSynced() const {
  const std::scoped_lock lock(state_->all_mutex);
  return std::ranges::all_of(state_->all, [](const auto& handler) { return handler->HasSynced(); });
}

void Informer::Start(boost::asio::any_io_executor executor) {
  auto run = Run(state_);
  state_->done = asio::co_spawn(executor, std::move(run), asio::use_future);
}

void Informer::Stop() {
  state_->stopping = true;
  state_->wake->Set();
  if (state_->done.valid()) state_->done.wait();
}

void Informer::OnSynced(std::function<void()> on_synced) { state_->on_synced = std::move(on_synced); }

void Informer::Narrow(std::string name_space, std::string name) {
  state_->name_space = std::move(name_space);
  state_->name = std::move(name);
}

std::future<void> Informer::Abandon() {
  state_->stopping = true;
  state_->wake->Set();
  return std::exchange(state_->done, {});
}

Awaitable<void> Informer::Run(std::shared_ptr<State> state) {
  using Poll = storage::WatchStream::Poll;
  using Type = storage::WatchEvent::Type;
  const auto executor = co_await asio::this_coro::executor;
  while (!state->stopping) {
    storage::ListOptions options;
    options.send_initial_events = true;
    options.resource_version_match = "NotOlderThan";
    options.predicate.allow_watch_bookmarks = true;
    options.scope_namespace = state->name_space;
    options.scope_name = state->name;
    if (!state->name.empty()) options.predicate.field = NameSelector(state->name);
    auto stream = co_await state->store->Watch(state->name_space, std::move(options));
    if (!stream.ok()) {
      state->wake->Reset();
      if (!state->stopping) co_await WaitUntil(*state->wake, kRetry);
      continue;
    }
    state->listing = true;
    state->listed.Clear();
    (*stream)->Start([wake = state->wake] { wake->Set(); });
    bool open = true;
    while (open && !state->stopping) {
      state->wake->Reset();
      state->AddLateHandlers();
      std::vector<Change> changes;
      bool end_of_list = false;
      Poll poll = Poll::kEvent;
      std::size_t bytes = 0;
      while (changes.size() < kBatchMax && bytes < kBatchBytesMax && !end_of_list) {
        storage::WatchEvent event;
        poll = (*stream)->Next(event);
        if (poll != Poll::kEvent) break;
        if (event.type == Type::kError) {
          poll = Poll::kEnd;
          break;
        }
        if (event.type == Type::kBookmark) {
          end_of_list = state->listing && event.initial_events_end;
        } else {
          bytes += event.object->stored().size();
          state->Observe(event, changes);
        }
      }
      state->Deliver(changes);
      if (end_of_list) state->EndOfList();
      if (poll == Poll::kEnd) open = false;
      if (poll == Poll::kPending && !state->stopping) co_await state->wake->Wait();
      if (poll == Poll::kEvent) co_await asio::post(executor, asio::use_awaitable);  // others use this thread, too
    }
  }
}

Informer* SharedInformers::Get(std::string_view group, std::string_view resource) {
  auto [place, added] = informers_.try_emplace({std::string(group), std::string(resource)});
  if (added) {
    auto store = find_(group, resource);
    if (!store) {
      informers_.erase(place);
      return nullptr;
    }
    place->second = std::make_unique<Informer>(std::move(store));
    if (io_ != nullptr) place->second->Start(io_->Next());
  }
  return place->second.get();
}

void SharedInformers::Start(async::IOPool& io) {
  io_ = &io;
  for (auto& [resource, informer] : informers_) informer->Start(io.Next());
}

void SharedInformers::Stop() {
  for (auto& [resource, informer] : informers_) informer->Stop();
  io_ = nullptr;
}

bool SharedInformers::HasSynced() const {
  return std::ranges::all_of(informers_, [](const auto& entry) { return entry.second->HasSynced(); });
}

}  // namespace keelson::registry
