#include "app/repeated.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <utility>

#include "async/deadlines.h"
#include "base/clock.h"
#include "base/random.h"

namespace keelson::app {

Repeated::Repeated(asio::any_io_executor executor, std::chrono::nanoseconds period,
                   std::function<Awaitable<void>()> work, double jitter, std::chrono::nanoseconds first)
    : state_(std::make_shared<State>()) {
  if (period.count() <= 0) return;
  auto loop = Loop(state_, period, jitter, first, std::move(work));
  done_ = asio::co_spawn(executor, std::move(loop), asio::use_future);
}

Repeated::~Repeated() {
  state_->stopping = true;
  state_->wake.Set();
  if (done_.valid()) done_.wait();
}

Awaitable<void> Repeated::Loop(std::shared_ptr<State> state, std::chrono::nanoseconds period, double jitter,
                               std::chrono::nanoseconds first, std::function<Awaitable<void>()> work) {
  while (!state->stopping) {
    state->wake.Reset();
    if (state->stopping) co_return;
    const double longer = jitter > 0 ? jitter * base::Random::Real().Unit() : 0;
    const auto wait = std::chrono::duration_cast<base::Clock::SteadyTime::duration>(
        first.count() > 0 ? std::exchange(first, {})
                          : period + std::chrono::nanoseconds(
                                         static_cast<std::int64_t>(static_cast<double>(period.count()) * longer)));
    const auto entry =
        async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + wait, [state] { state->wake.Set(); });
    co_await state->wake.Wait();
    if (!state->stopping) co_await work();
  }
}

}  // namespace keelson::app
