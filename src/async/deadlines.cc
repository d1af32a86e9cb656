#include "async/deadlines.h"

#include <pthread.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace keelson::async {

struct Deadlines::Impl {
  using Key = std::pair<base::Clock::SteadyTime, std::uint64_t>;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::function<void()>> waiting;
  std::uint64_t next_id = 1;
  bool stopping = false;
  std::thread thread;

  void Loop() {
    pthread_setname_np(pthread_self(), "deadlines");
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (waiting.empty()) {
        changed.wait(lock);
        continue;
      }
      const auto now = std::chrono::steady_clock::now();
      if (waiting.begin()->first.first > now) {
        changed.wait_until(lock, std::max(waiting.begin()->first.first, now + kResolution));
        continue;
      }
      // Callbacks are taken one by one, so that an entry that another callback destroys is not called.
      std::function<void()> callback = std::move(waiting.begin()->second);
      waiting.erase(waiting.begin());
      lock.unlock();
      callback();
      callback = nullptr;
      lock.lock();
    }
  }
};

Deadlines::Deadlines() : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->Loop(); });
}

Deadlines::~Deadlines() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

Deadlines::Entry Deadlines::Add(base::Clock::SteadyTime at, std::function<void()> callback) {
  Entry entry;
  entry.owner_ = this;
  entry.at_ = at;
  std::lock_guard lock(impl_->mutex);
  entry.id_ = impl_->next_id++;
  const bool first = impl_->waiting.empty() || at < impl_->waiting.begin()->first.first;
  impl_->waiting.emplace(Impl::Key{at, entry.id_}, std::move(callback));
  if (first) impl_->changed.notify_one();
  return entry;
}

Deadlines& Deadlines::Global() {
  static Deadlines deadlines;
  return deadlines;
}

Deadlines::Entry::Entry(Entry&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), at_(other.at_), id_(other.id_) {}

Deadlines::Entry& Deadlines::Entry::operator=(Entry&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(at_, other.at_);
  std::swap(id_, other.id_);
  return *this;
}

Deadlines::Entry::~Entry() {
  if (owner_ == nullptr) return;
  std::function<void()> forgotten;  // destroyed outside the lock
  std::lock_guard lock(owner_->impl_->mutex);
  const auto found = owner_->impl_->waiting.find({at_, id_});
  if (found == owner_->impl_->waiting.end()) return;
  forgotten = std::move(found->second);
  owner_->impl_->waiting.erase(found);
}

}  // namespace keelson::async
