#include "async/watchdog.h"

#include <pthread.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace keelson::async {

using Steady = std::chrono::steady_clock;

struct Watchdog::Impl {
  struct Ping {
    std::atomic<bool> answered{true};
    Steady::time_point sent;
    bool reported = false;
  };

  IOPool& pool;
  Options options;
  std::function<void(const Report&)> report;
  std::vector<std::shared_ptr<Ping>> pings;  // shared with what is posted, which may run after this is gone
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::thread thread;

  void Look(Steady::time_point now) {
    for (std::size_t i = 0; i < pings.size(); ++i) {
      Ping& ping = *pings[i];
      const auto held = std::chrono::duration_cast<std::chrono::milliseconds>(now - ping.sent);
      if (ping.answered.load(std::memory_order_acquire)) {
        if (std::exchange(ping.reported, false)) report({i, held, true});
        ping.sent = now;
        ping.answered.store(false, std::memory_order_relaxed);
        boost::asio::post(pool.executor(i),
                          [shared = pings[i]] { shared->answered.store(true, std::memory_order_release); });
      } else if (!ping.reported && held >= options.held) {
        ping.reported = true;
        report({i, held, false});
      }
    }
  }

  void Run() {
    pthread_setname_np(pthread_self(), "watchdog");
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, options.period, [this] { return stopping; })) Look(Steady::now());
  }
};

Watchdog::Watchdog(IOPool& pool, Options options, std::function<void(const Report&)> report)
    : impl_(new Impl{.pool = pool, .options = options, .report = std::move(report)}) {
  for (std::size_t i = 0; i < pool.size(); ++i) impl_->pings.push_back(std::make_shared<Impl::Ping>());
  impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

}  // namespace keelson::async
