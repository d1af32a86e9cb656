#include "async/io_pool.h"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

namespace keelson::async {
namespace asio = boost::asio;

namespace {

// Coroutines call each other across the threads of a pool (a handler, the client it calls, the proxy's client behind
// that). Destroying one posts the end of its caller to the caller's context, so each step of such a chain takes one
// pass over all contexts. More than any chain has.
constexpr int kShutdownPasses = 8;

class Context : public asio::io_context {
 public:
  Context() : io_context(1) {}
  // Destroys all handlers that wait. Objects of the context (sockets, timers) may still be destroyed afterwards.
  void Shutdown() { shutdown(); }
};

}  // namespace

struct IOPool::Impl {
  struct Worker {
    Context context;
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
    std::thread thread;
  };
  std::vector<std::unique_ptr<Worker>> workers;
  std::atomic<std::size_t> next{0};
};

IOPool::IOPool(std::size_t threads) : impl_(std::make_unique<Impl>()) {
  for (std::size_t i = 0; i < threads; ++i) {
    auto worker = std::make_unique<Impl::Worker>();
    worker->thread = std::thread([&context = worker->context, i] {
      pthread_setname_np(pthread_self(), ("io-" + std::to_string(i)).c_str());
      context.run();
    });
    impl_->workers.push_back(std::move(worker));
  }
}

IOPool::~IOPool() { Join(); }

void IOPool::Join() {
  Stop();
  for (auto& worker : impl_->workers) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  // On all threads before the first context goes: what they hold may belong to another one.
  for (int pass = 0; pass < kShutdownPasses; ++pass) {
    for (auto& worker : impl_->workers) worker->context.Shutdown();
  }
}

std::size_t IOPool::size() const { return impl_->workers.size(); }

asio::any_io_executor IOPool::executor(std::size_t index) const {
  return impl_->workers[index]->context.get_executor();
}

asio::any_io_executor IOPool::Next() { return executor(impl_->next++ % impl_->workers.size()); }

void IOPool::Stop() {
  for (auto& worker : impl_->workers) {
    worker->work.reset();
    worker->context.stop();
  }
}

}  // namespace keelson::async
