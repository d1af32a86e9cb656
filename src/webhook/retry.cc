#include "webhook/retry.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

namespace keelson::webhook {

bool DefaultShouldRetry(const Error& error) {
  if (error.reset) return true;
  if (error.kind != Error::Kind::kStatus || !error.status) return false;
  switch (error.status->reason()) {
    case meta::StatusReason::kInternalError:
    case meta::StatusReason::kTimeout:
    case meta::StatusReason::kTooManyRequests:
      return true;
    default:
      break;
  }
  // SuggestsClientDelay: a ServerTimeout, or any status with retryAfterSeconds.
  const auto& details = error.status->details();
  return error.status->reason() == meta::StatusReason::kServerTimeout || (details && details->retry_after_seconds > 0);
}

Awaitable<Outcome<Response, Error>> WithExponentialBackoff(RetryOptions options,
                                                           std::function<Awaitable<Outcome<Response, Error>>()> call,
                                                           std::function<bool(const Error&)> should_retry) {
  base::Random& random = options.random != nullptr ? *options.random : base::Random::Real();
  auto pause = std::chrono::duration<double, std::milli>(options.backoff.duration);
  for (int step = 1;; ++step) {
    auto result = co_await call();
    if (result.ok() || !should_retry(result.error()) || step >= options.backoff.steps) co_return result;
    const auto wait = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        pause * (1.0 + options.backoff.jitter * random.Unit()));
    pause *= options.backoff.factor;
    auto until = std::chrono::steady_clock::now() + wait;
    if (options.deadline && until >= *options.deadline) co_return result;
    auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, until);
    async::Cancellation::Registration registration;
    if (options.cancellation != nullptr) {
      if (options.cancellation->cancelled()) co_return result;
      registration = options.cancellation->OnCancel([timer] {
        asio::post(timer->get_executor(), [timer] { timer->expires_at(asio::steady_timer::time_point::min()); });
      });
    }
    (void)co_await timer->async_wait(kNoThrow);
    if (options.cancellation != nullptr && options.cancellation->cancelled()) co_return result;
  }
}

}  // namespace keelson::webhook
