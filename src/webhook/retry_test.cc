#include "webhook/retry.h"

#include <gtest/gtest.h>

#include "async/testing/run_now.h"

namespace keelson::webhook {
namespace {

Awaitable<Outcome<Response, Error>> Fail(int* calls, Error error) {
  ++*calls;
  co_return error;
}

TEST(Retry, StepsAreBounded) {
  struct Case {
    const char* name;
    Error error;
    int calls;
  };
  const Case cases[] = {
      {"reset by peer", {.kind = Error::Kind::kConnection, .reset = true}, 4},
      {"internal error", {.kind = Error::Kind::kStatus, .status = meta::NewInternalError("x")}, 4},
      {"too many requests", {.kind = Error::Kind::kStatus, .status = meta::NewTooManyRequests("x", 0)}, 4},
      {"bad request", {.kind = Error::Kind::kStatus, .status = meta::NewBadRequest("x")}, 1},
      {"refused", {.kind = Error::Kind::kDial}, 1},
      {"deadline", {.kind = Error::Kind::kTimeout}, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    int calls = 0;
    RetryOptions options;
    options.backoff = {.duration = std::chrono::milliseconds(1), .steps = 4};
    auto result =
        async::RunNow(WithExponentialBackoff(options, [&] { return Fail(&calls, c.error); }, DefaultShouldRetry));
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(calls, c.calls);
  }
}

}  // namespace
}  // namespace keelson::webhook
