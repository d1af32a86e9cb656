// The storage of a resource that comes and goes while the server runs. Its watch cache starts with the first read (cold
// → warming → warm) and ends on its own thread when the resource is removed (closing); streams and requests hold what
// they use, so that nothing goes from under them. Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "async/blocking_pool.h"
#include "cacher/cacher.h"
#include "storage/interface.h"
#include "storage/metrics.h"
#include "storage/resource_codec.h"
#include "storage/store.h"

namespace keelson::server {

// Members in the order of their dependence: each is used by those below it.
class Backing {
 public:
  enum class State : std::uint8_t { kCold, kStarted, kClosing };

  std::shared_ptr<const storage::ResourceCodec> codec;
  std::unique_ptr<storage::ResourceMetrics> metrics;  // null where nothing is counted
  std::unique_ptr<storage::Store> store;
  std::unique_ptr<cacher::Cacher> cacher;  // null where it is not cached

  std::atomic<std::int64_t> average_bytes{0};  // of an object, as last polled

  Backing() = default;
  ~Backing() { Close(); }  // REQUIRES: not on an I/O thread
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  State state() const { return state_.load(std::memory_order_acquire); }
  bool started() const { return state() == State::kStarted; }
  // Starts the cache unless it runs or is closing.
  void Start();
  // Ends the cache and its watches, and waits for that. REQUIRES: not on an I/O thread.
  void Close();

 private:
  std::mutex close_mutex_;  // a second Close() waits for the first; taken before state_mutex_
  std::mutex state_mutex_;  // of changes of state; never held while something waits
  std::atomic<State> state_{State::kCold};
};

using BackingPtr = std::shared_ptr<Backing>;
// The last reference may be dropped on any thread: the backing is destroyed on `pool`, which must outlive it.
BackingPtr NewBacking(async::BlockingPool& pool);

// Reads start the cache and wait for its first state. After Close() reads are answered 429, as by a cache that is
// stopped.
std::shared_ptr<storage::Interface> NewLazyStorage(BackingPtr backing);
// Whether no request and no watch uses `lazy`, made by NewLazyStorage() and reachable only by the owner of the Backing.
// One may come the next moment. False for any other storage.
bool IsIdle(const storage::Interface& lazy);

}  // namespace keelson::server
