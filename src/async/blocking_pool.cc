#include "async/blocking_pool.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace keelson::async {

struct BlockingPool::Impl {
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<std::function<void()>> queue;
  bool stopping = false;
  std::vector<std::thread> threads;

  void Loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      ready.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      auto work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }
};

BlockingPool::BlockingPool(std::string name, std::size_t threads) : impl_(std::make_unique<Impl>()) {
  for (std::size_t i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get(), name] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      impl->Loop();
    });
  }
}

BlockingPool::~BlockingPool() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->ready.notify_all();
  for (auto& thread : impl_->threads) thread.join();
}

void BlockingPool::Post(std::function<void()> work) {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->queue.push_back(std::move(work));
  }
  impl_->ready.notify_one();
}

}  // namespace keelson::async
