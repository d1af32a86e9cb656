#include "async/single_flight.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>

namespace keelson::async {

bool SingleFlight::Take() {
  const auto now = options_.clock->Monotonic();
  if (refilled_) {
    const std::chrono::duration<double> passed = now - *refilled_;
    left_ = std::min(options_.burst, left_ + passed / std::chrono::duration<double>(options_.interval));
  }
  refilled_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

Awaitable<void> SingleFlight::Run(std::shared_ptr<SingleFlight> self, std::shared_ptr<Flight> flight, Work work) {
  std::string error;
  try {
    error = co_await work();
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  {
    std::lock_guard lock(self->mutex_);
    self->flight_.reset();
    flight->error = std::move(error);
  }
  flight->done.Set();
}

Awaitable<std::optional<std::string>> SingleFlight::Do(Ration ration, Work work) {
  const auto self = shared_from_this();
  std::shared_ptr<Flight> flight;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    if (!flight_) {
      if (ration == Ration::kRationed && !Take()) co_return std::nullopt;
      flight_ = std::make_shared<Flight>();
      first = true;
    }
    flight = flight_;
  }
  if (first) {
    auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, Run(self, flight, std::move(work)), asio::detached);
  }
  co_await flight->done.Wait();
  co_return flight->error;
}

}  // namespace keelson::async
