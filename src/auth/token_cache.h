// Caches token authentication for a short time, so that verifying a token again costs a hash. Concurrent requests with
// the same token share one call, which goes on when they leave. Tokens themselves are not kept, only their HMAC under a
// per-process key.
// Thread safety: all members from any thread. Ownership: a call in progress keeps what it needs when this is destroyed.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/cancellation.h"
#include "auth/token_authenticator.h"
#include "base/clock.h"
#include "base/random.h"
#include "telemetry/metrics.h"

namespace keelson::auth {

// authentication_token_cache_*, of all caches together. The registry must outlive this.
struct TokenCacheMetrics {
  explicit TokenCacheMetrics(telemetry::MetricsRegistry& registry);
  telemetry::CounterVec& requests;
  telemetry::HistogramVec& duration;
  telemetry::CounterVec& fetches;
  telemetry::GaugeVec& active;
};

class TokenCache final : public TokenAuthenticator {
 public:
  static constexpr std::size_t kStripes = 32;
  static constexpr std::size_t kEntriesMax = 1024;  // per stripe; the oldest goes first

  struct Options {
    std::chrono::nanoseconds success_ttl{0}, failure_ttl{0};  // 0: not kept
    bool keep_errors = false;                                 // whether an error counts as a failure that may be kept
    TokenCacheMetrics* metrics = nullptr;                     // must outlive this
    const base::Clock* clock = &base::Clock::Real();
    base::Random* random = &base::Random::Real();
  };
  TokenCache(std::shared_ptr<TokenAuthenticator> next, Options options);
  ~TokenCache() override;
  // The answer that is remembered; null: none. Counts as a request only when there is one.
  std::shared_ptr<const AuthenticationResult> Find(std::string_view token, const std::vector<std::string>& audiences);
  // The error is "context canceled" when the cancellation (null: never) comes before the answer; the call goes on.
  Awaitable<AuthenticationResult> AuthenticateFor(async::CancellationPtr cancellation, std::string token,
                                                  std::vector<std::string> audiences);
  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::auth
