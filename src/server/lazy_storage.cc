#include "server/lazy_storage.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>

namespace keelson::server {
namespace {

using storage::ObjectList;
using storage::ObjectPtr;
using storage::Result;

constexpr std::chrono::milliseconds kWarmingMax{3000};  // a read waits so long for a cache that has just started
constexpr std::chrono::milliseconds kWarmingPoll{1};

// Keeps the cache and everything below it alive during a watch.
class HoldingStream final : public storage::WatchStream {
 public:
  HoldingStream(BackingPtr backing, std::unique_ptr<storage::WatchStream> stream)
      : backing_(std::move(backing)), stream_(std::move(stream)) {}
  void Start(std::function<void()> wake) override { stream_->Start(std::move(wake)); }
  Poll Next(storage::WatchEvent& event) override { return stream_->Next(event); }

 private:
  BackingPtr backing_;
  std::unique_ptr<storage::WatchStream> stream_;
};

Awaitable<void> WaitUntilWarm(BackingPtr backing) {
  if (!backing->cacher || backing->cacher->Ready()) co_return;
  backing->Start();
  const auto give_up = std::chrono::steady_clock::now() + kWarmingMax;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (backing->started() && !backing->cacher->Ready() && std::chrono::steady_clock::now() < give_up) {
    timer.expires_after(kWarmingPoll);
    co_await timer.async_wait(kNoThrow);
  }
}

Awaitable<Result<ObjectPtr>> Create(BackingPtr backing, std::string key, Value object, std::uint64_t ttl_seconds,
                                    telemetry::Caller caller) {
  co_return co_await backing->store->Create(std::move(key), object, ttl_seconds, caller);
}

storage::Interface& Reads(const BackingPtr& backing) {
  if (backing->cacher) return *backing->cacher;
  return *backing->store;
}

Awaitable<Result<ObjectPtr>> Delete(BackingPtr backing, std::string key, storage::Preconditions preconditions,
                                    storage::ValidateDeletion validate, ObjectPtr cached, telemetry::Caller caller) {
  co_return co_await Reads(backing).Delete(std::move(key), std::move(preconditions), std::move(validate),
                                           std::move(cached), caller);
}

Awaitable<Result<void>> DeleteUnread(BackingPtr backing, std::string key) {
  co_return co_await backing->store->DeleteUnread(std::move(key));
}

Awaitable<Result<ObjectPtr>> Get(BackingPtr backing, std::string key, storage::GetOptions options) {
  // A read of the newest state needs no cache; one of any state is answered by it once it is there.
  co_return co_await Reads(backing).Get(std::move(key), std::move(options));
}

Awaitable<Result<ObjectList>> GetList(BackingPtr backing, std::string key, storage::ListOptions options) {
  co_await WaitUntilWarm(backing);
  co_return co_await Reads(backing).GetList(std::move(key), std::move(options));
}

Awaitable<Result<ObjectPtr>> GuaranteedUpdate(BackingPtr backing, std::string key, bool ignore_not_found,
                                              storage::Preconditions preconditions, storage::UpdateFunc update,
                                              ObjectPtr cached, telemetry::Caller caller) {
  co_return co_await Reads(backing).GuaranteedUpdate(std::move(key), ignore_not_found, std::move(preconditions),
                                                     std::move(update), std::move(cached), caller);
}

Awaitable<Result<std::unique_ptr<storage::WatchStream>>> Watch(BackingPtr backing, std::string key,
                                                               storage::ListOptions options) {
  co_await WaitUntilWarm(backing);
  auto stream = co_await Reads(backing).Watch(std::move(key), std::move(options));
  if (!stream.ok()) co_return stream.error();
  co_return std::unique_ptr<storage::WatchStream>(
      std::make_unique<HoldingStream>(std::move(backing), *std::move(stream)));
}

Awaitable<Result<storage::Stats>> GetStats(BackingPtr backing) { co_return co_await Reads(backing).GetStats(); }

Awaitable<Result<std::uint64_t>> GetCurrentResourceVersion(BackingPtr backing) {
  co_return co_await backing->store->GetCurrentResourceVersion();
}

class LazyStorage final : public storage::Interface {
 public:
  explicit LazyStorage(BackingPtr backing) : backing_(std::move(backing)) {}

  Awaitable<Result<ObjectPtr>> Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                      telemetry::Caller caller) override {
    return server::Create(backing_, std::move(key), object, ttl_seconds, caller);
  }
  Awaitable<Result<ObjectPtr>> Delete(std::string key, storage::Preconditions preconditions,
                                      storage::ValidateDeletion validate, ObjectPtr cached,
                                      telemetry::Caller caller) override {
    return server::Delete(backing_, std::move(key), std::move(preconditions), std::move(validate), std::move(cached),
                          caller);
  }
  Awaitable<Result<void>> DeleteUnread(std::string key) override {
    return server::DeleteUnread(backing_, std::move(key));
  }
  Awaitable<Result<ObjectPtr>> Get(std::string key, storage::GetOptions options) override {
    return server::Get(backing_, std::move(key), std::move(options));
  }
  Awaitable<Result<ObjectList>> GetList(std::string key, storage::ListOptions options) override {
    return server::GetList(backing_, std::move(key), std::move(options));
  }
  Awaitable<Result<ObjectPtr>> GuaranteedUpdate(std::string key, bool ignore_not_found,
                                                storage::Preconditions preconditions, storage::UpdateFunc update,
                                                ObjectPtr cached, telemetry::Caller caller) override {
    return server::GuaranteedUpdate(backing_, std::move(key), ignore_not_found, std::move(preconditions),
                                    std::move(update), std::move(cached), caller);
  }
  Awaitable<Result<std::unique_ptr<storage::WatchStream>>> Watch(std::string key,
                                                                 storage::ListOptions options) override {
    return server::Watch(backing_, std::move(key), std::move(options));
  }
  Awaitable<Result<storage::Stats>> GetStats() override { return server::GetStats(backing_); }
  Awaitable<Result<std::uint64_t>> GetCurrentResourceVersion() override {
    return server::GetCurrentResourceVersion(backing_);
  }
  bool Ready() const override { return !backing_->cacher || backing_->cacher->Ready(); }
  long users() const { return backing_.use_count(); }

 private:
  const BackingPtr backing_;
};

}  // namespace

void Backing::Start() {
  std::lock_guard lock(state_mutex_);
  if (state() != State::kCold) return;
  if (cacher) cacher->Start();
  state_.store(State::kStarted, std::memory_order_release);
}

// Stop() waits for an I/O thread, and Start() is called on I/O threads: state_mutex_ must not be held while it waits.
void Backing::Close() {
  std::lock_guard closing(close_mutex_);
  State was;
  {
    std::lock_guard lock(state_mutex_);
    was = state_.exchange(State::kClosing, std::memory_order_acq_rel);
  }
  if (was == State::kStarted && cacher) cacher->Stop();
}

BackingPtr NewBacking(async::BlockingPool& pool) {
  return BackingPtr(new Backing, [&pool](Backing* backing) { pool.Post([backing] { delete backing; }); });
}

std::shared_ptr<storage::Interface> NewLazyStorage(BackingPtr backing) {
  return std::make_shared<LazyStorage>(std::move(backing));
}

bool IsIdle(const storage::Interface& lazy) {
  constexpr long kOwn = 2;  // the owner's and the storage's; every read in flight and every stream has another
  const auto* const storage = dynamic_cast<const LazyStorage*>(&lazy);
  return storage != nullptr && storage->users() <= kOwn;
}

}  // namespace keelson::server
