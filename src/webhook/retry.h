// upstream's webhook.WithExponentialBackoff.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "async/awaitable.h"
#include "async/cancellation.h"
#include "base/random.h"
#include "webhook/rest_client.h"

namespace keelson::webhook {

struct Backoff {  // wait.Backoff
  std::chrono::milliseconds duration{500};
  double factor = 1.5;
  double jitter = 0.2;
  int steps = 5;  // calls at most
};

struct RetryOptions {
  Backoff backoff;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  async::CancellationPtr cancellation;
  base::Random* random = nullptr;  // null: Random::Real()
};

// Connection reset, HTTP/2 connection lost, 500, 504 (Timeout), 429, or a Retry-After.
bool DefaultShouldRetry(const Error& error);

// `call` is repeated until it succeeds, fails with an error that `should_retry` refuses, or the steps are used up; the
// last error is returned.
Awaitable<Outcome<Response, Error>> WithExponentialBackoff(
    RetryOptions options, std::function<Awaitable<Outcome<Response, Error>>()> call,
    std::function<bool(const Error&)> should_retry = DefaultShouldRetry);

}  // namespace keelson::webhook
