#include "proxy/body_bridge.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <mutex>

#include "async/event.h"

namespace keelson::proxy {
namespace {

constexpr std::size_t kBufferedMax = 256 * 1024;  // read ahead of the writer

struct Shared {
  std::mutex mutex;
  std::unique_ptr<http::BodyReader> reader;  // null once the source has gone
  std::shared_ptr<void> keep;
  std::deque<http::SharedBytes> pieces;
  std::size_t buffered = 0;
  bool ended = false;
  bool failed = false;
  bool gone = false;
  std::function<void()> wake;
  async::Event room;
};

// Guarded state is accessed in plain functions: no lock is held where a coroutine waits.
http::BodyReader* ReaderOf(Shared& shared) {
  std::lock_guard lock(shared.mutex);
  return shared.gone ? nullptr : shared.reader.get();
}

bool Full(Shared& shared) {
  std::lock_guard lock(shared.mutex);
  if (shared.gone || shared.buffered < kBufferedMax) return false;
  shared.room.Reset();
  return true;
}

// False when there will be nothing more.
bool Deliver(Shared& shared, Outcome<http::SharedBytes, http::BodyError> bytes) {
  std::function<void()> wake;
  bool more = false;
  {
    std::lock_guard lock(shared.mutex);
    if (shared.gone) return false;
    if (!bytes.ok()) {
      shared.failed = true;
    } else if (bytes->empty()) {
      shared.ended = true;
    } else {
      shared.buffered += bytes->size();
      shared.pieces.push_back(*std::move(bytes));
      more = true;
    }
    wake = shared.wake;
  }
  wake();
  return more;
}

Awaitable<void> Pump(std::shared_ptr<Shared> shared) {
  for (;;) {
    while (Full(*shared)) co_await shared->room.Wait();
    http::BodyReader* reader = ReaderOf(*shared);
    if (reader == nullptr) break;
    auto reading = reader->Read();  // does not touch the reader once it runs
    auto bytes = co_await std::move(reading);
    if (!Deliver(*shared, std::move(bytes))) break;
  }
  // Destroyed without the lock: their destructors may take it.
  std::unique_ptr<http::BodyReader> reader;
  std::shared_ptr<void> keep;
  std::lock_guard lock(shared->mutex);
  reader = std::move(shared->reader);
  keep = std::move(shared->keep);
}

class Bridge final : public http::BodySource {
 public:
  Bridge(asio::any_io_executor executor, std::shared_ptr<Shared> shared)
      : executor_(std::move(executor)), shared_(std::move(shared)) {}
  ~Bridge() override {
    std::unique_ptr<http::BodyReader> reader;
    {
      std::lock_guard lock(shared_->mutex);
      shared_->gone = true;
      // A reader with a caller's connection behind it is dropped, which cancels what is being read. One that belongs to
      // a request (`keep`) is left to its own connection.
      if (shared_->keep == nullptr) reader = std::move(shared_->reader);
    }
    shared_->room.Set();
  }

  void Start(std::function<void()> wake) override {
    {
      std::lock_guard lock(shared_->mutex);
      shared_->wake = std::move(wake);
    }
    asio::co_spawn(executor_, Pump(shared_), asio::detached);
  }

  State Pull(std::size_t budget, std::vector<http::SharedBytes>& out) override {
    std::lock_guard lock(shared_->mutex);
    std::size_t taken = 0;
    while (!shared_->pieces.empty() && taken < budget) {
      taken += shared_->pieces.front().size();
      out.push_back(std::move(shared_->pieces.front()));
      shared_->pieces.pop_front();
    }
    shared_->buffered -= taken;
    if (shared_->buffered < kBufferedMax) shared_->room.Set();
    if (!shared_->pieces.empty()) return State::kMore;
    if (shared_->failed) return State::kAbort;
    return shared_->ended ? State::kDone : State::kPending;
  }

 private:
  asio::any_io_executor executor_;
  std::shared_ptr<Shared> shared_;
};

// Waits as long as so many bytes at so many a second would have taken.
class Throttle {
 public:
  explicit Throttle(std::int64_t bytes_per_second)
      : bytes_per_second_(bytes_per_second), start_(std::chrono::steady_clock::now()) {}
  Awaitable<void> Passed(std::size_t bytes) {
    if (bytes_per_second_ <= 0) co_return;
    total_ += bytes;
    const auto due = start_ + std::chrono::milliseconds(static_cast<std::int64_t>(
                                  static_cast<double>(total_) * 1000.0 / static_cast<double>(bytes_per_second_)));
    if (due <= std::chrono::steady_clock::now()) co_return;
    asio::steady_timer timer(co_await asio::this_coro::executor, due);
    co_await timer.async_wait(kNoThrow);
  }

 private:
  const std::int64_t bytes_per_second_;
  const std::chrono::steady_clock::time_point start_;
  std::uint64_t total_ = 0;
};

struct Ends {
  std::shared_ptr<http::Stream> client;
  std::shared_ptr<http::Stream> backend;
  async::Event first_done;
  async::Event copied_up;
};

Awaitable<void> Copy(http::Stream& from, http::Stream& to, std::int64_t bytes_per_second) {
  Throttle throttle(bytes_per_second);
  for (;;) {
    auto bytes = co_await from.Read();
    if (!bytes.ok() || bytes->empty()) co_return;
    const std::size_t size = bytes->size();
    auto written = co_await to.Write(*std::move(bytes));
    if (!written.ok()) co_return;
    co_await throttle.Passed(size);
  }
}

void CloseBoth(Ends& ends) {
  ends.client->Close();
  ends.backend->Close();
}

Awaitable<void> CopyUp(std::shared_ptr<Ends> ends, std::int64_t bytes_per_second) {
  co_await Copy(*ends->client, *ends->backend, bytes_per_second);
  CloseBoth(*ends);
  ends->copied_up.Set();
}

}  // namespace

std::unique_ptr<http::BodySource> NewBridge(asio::any_io_executor executor, std::unique_ptr<http::BodyReader> reader,
                                            http::SharedBytes first, std::shared_ptr<void> keep) {
  auto shared = std::make_shared<Shared>();
  shared->reader = std::move(reader);
  shared->keep = std::move(keep);
  if (!first.empty()) {
    shared->buffered = first.size();
    shared->pieces.push_back(std::move(first));
  }
  return std::make_unique<Bridge>(std::move(executor), std::move(shared));
}

Awaitable<void> Relay(std::shared_ptr<http::Stream> client, std::shared_ptr<http::Stream> backend,
                      std::int64_t bytes_per_second) {
  auto ends = std::make_shared<Ends>();
  ends->client = std::move(client);
  ends->backend = std::move(backend);
  asio::co_spawn(co_await asio::this_coro::executor, CopyUp(ends, bytes_per_second), asio::detached);
  co_await Copy(*ends->backend, *ends->client, bytes_per_second);
  CloseBoth(*ends);
  co_await ends->copied_up.Wait();
}

}  // namespace keelson::proxy
