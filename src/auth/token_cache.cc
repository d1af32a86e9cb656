#include "auth/token_cache.h"

#include <openssl/crypto.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <unordered_map>

#include "async/cancellable_wait.h"
#include "async/event.h"
#include "auth/keyed_hash.h"

namespace keelson::auth {
namespace {

using Key = KeyedHash::Digest;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data() + sizeof(hash), sizeof(hash));  // the first byte chooses the stripe
    return hash;
  }
};
using ResultPtr = std::shared_ptr<const AuthenticationResult>;

// One call shared by concurrent requests for the same token.
struct Call {
  async::Event done;
  ResultPtr result;
};

struct Stripe {
  struct Entry {
    ResultPtr result;
    base::Clock::SteadyTime until;
  };
  std::mutex mutex;
  std::unordered_map<Key, Entry, KeyHash> entries;
  std::deque<std::pair<base::Clock::SteadyTime, Key>> by_age;  // one per entry, oldest first
  std::unordered_map<Key, std::shared_ptr<Call>, KeyHash> calls;

  // REQUIRES of both: mutex held.
  ResultPtr Find(const Key& key, base::Clock::SteadyTime now) const {
    const auto found = entries.find(key);
    return found != entries.end() && found->second.until > now ? found->second.result : nullptr;
  }
  void Insert(const Key& key, ResultPtr result, base::Clock::SteadyTime now, std::chrono::nanoseconds ttl) {
    while (!by_age.empty() && (by_age.front().first <= now || entries.size() >= TokenCache::kEntriesMax)) {
      // A newer entry of the same key has its own place in the queue.
      const auto found = entries.find(by_age.front().second);
      if (found != entries.end() && found->second.until == by_age.front().first) entries.erase(found);
      by_age.pop_front();
    }
    entries.insert_or_assign(key, Entry{std::move(result), now + ttl});
    by_age.emplace_back(now + ttl, key);
  }
};

}  // namespace

struct TokenCache::Impl : std::enable_shared_from_this<TokenCache::Impl> {
  Impl(std::shared_ptr<TokenAuthenticator> asked, const Options& given, std::span<const std::uint8_t> secret)
      : next(std::move(asked)), options(given), hash(secret) {}
  const std::shared_ptr<TokenAuthenticator> next;
  const Options options;
  const KeyedHash hash;
  std::array<Stripe, kStripes> stripes;

  Key KeyOf(std::string_view token, const std::vector<std::string>& audiences) const {
    auto text = hash.Begin();
    text.AddLength(token.size()).Add(token).AddLength(audiences.size());
    for (const std::string& audience : audiences) text.AddLength(audience.size()).Add(audience);
    return text.Finish();
  }
  Stripe& StripeOf(const Key& key) { return stripes[key[0] % kStripes]; }

  std::chrono::nanoseconds TTLOf(const AuthenticationResult& result) const {
    if (result.user) return options.success_ttl;
    return result.errors.empty() || options.keep_errors ? options.failure_ttl : std::chrono::nanoseconds(0);
  }

  void Count(std::string_view status, base::Clock::SteadyTime started) const {
    if (options.metrics == nullptr) return;
    const std::chrono::duration<double> took = options.clock->Monotonic() - started;
    options.metrics->requests.With({status}).Inc();
    options.metrics->duration.With({status}).Observe(took.count());
  }

  // Free of references to the caller: it may leave before the answer comes.
  static Awaitable<void> Fetch(std::shared_ptr<Impl> impl, std::shared_ptr<Call> call, Key key, std::string token,
                               std::vector<std::string> audiences) {
    TokenCacheMetrics* const metrics = impl->options.metrics;
    if (metrics != nullptr) metrics->active.With({"in_flight"}).Add(1);
    AuthenticationResult answer;
    try {
      answer = co_await impl->next->AuthenticateToken(std::move(token), std::move(audiences));
    } catch (const std::exception& exception) {
      answer = AuthenticationResult::Failed(std::string("panic in token authentication: ") + exception.what());
    }
    auto result = std::make_shared<const AuthenticationResult>(std::move(answer));
    if (metrics != nullptr) {
      metrics->active.With({"in_flight"}).Add(-1);
      metrics->fetches.With({result->errors.empty() ? "ok" : "error"}).Inc();
    }
    const auto ttl = impl->TTLOf(*result);
    {
      Stripe& stripe = impl->StripeOf(key);
      std::lock_guard lock(stripe.mutex);
      if (ttl.count() > 0) stripe.Insert(key, result, impl->options.clock->Monotonic(), ttl);
      stripe.calls.erase(key);
      call->result = std::move(result);
    }
    call->done.Set();
  }
};

TokenCache::TokenCache(std::shared_ptr<TokenAuthenticator> next, Options options) {
  std::array<std::uint8_t, KeyedHash::kDigestBytes> secret;
  options.random->Fill(secret);
  impl_ = std::make_shared<Impl>(std::move(next), options, secret);
  OPENSSL_cleanse(secret.data(), secret.size());
}
TokenCache::~TokenCache() = default;

std::shared_ptr<const AuthenticationResult> TokenCache::Find(std::string_view token,
                                                             const std::vector<std::string>& audiences) {
  const auto started = impl_->options.clock->Monotonic();
  const Key key = impl_->KeyOf(token, audiences);
  Stripe& stripe = impl_->StripeOf(key);
  ResultPtr result;
  {
    std::lock_guard lock(stripe.mutex);
    result = stripe.Find(key, started);
  }
  if (result != nullptr) impl_->Count("hit", started);
  return result;
}

Awaitable<AuthenticationResult> TokenCache::AuthenticateToken(std::string token, std::vector<std::string> audiences) {
  return AuthenticateFor(nullptr, std::move(token), std::move(audiences));
}

Awaitable<AuthenticationResult> TokenCache::AuthenticateFor(async::CancellationPtr cancellation, std::string token,
                                                            std::vector<std::string> audiences) {
  const auto impl = impl_;
  const auto started = impl->options.clock->Monotonic();
  const Key key = impl->KeyOf(token, audiences);
  Stripe& stripe = impl->StripeOf(key);
  ResultPtr result;
  std::shared_ptr<Call> call;
  bool first = false;
  {
    std::lock_guard lock(stripe.mutex);
    result = stripe.Find(key, started);
    if (result == nullptr) {
      auto& shared = stripe.calls[key];
      first = shared == nullptr;
      if (first) shared = std::make_shared<Call>();
      call = shared;
    }
  }
  if (first) {
    auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, Impl::Fetch(impl, call, key, std::move(token), std::move(audiences)), asio::detached);
  }
  TokenCacheMetrics* const metrics = impl->options.metrics;
  if (call) {
    if (metrics != nullptr) metrics->active.With({"blocked"}).Add(1);
    const bool answered = co_await async::WaitUnlessCancelled(call->done, std::move(cancellation));
    if (metrics != nullptr) metrics->active.With({"blocked"}).Add(-1);
    if (!answered) co_return AuthenticationResult::Failed("context canceled");
    result = call->result;
  }
  impl->Count(call ? "miss" : "hit", started);
  co_return *result;
}

TokenCacheMetrics::TokenCacheMetrics(telemetry::MetricsRegistry& registry)
    : requests(registry.Counters({.name = "authentication_token_cache_request_total",
                                  .stability = telemetry::Stability::kAlpha,
                                  .labels = {"status"}})),
      duration(registry.Histograms({.name = "authentication_token_cache_request_duration_seconds",
                                    .stability = telemetry::Stability::kAlpha,
                                    .labels = {"status"},
                                    .buckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}})),
      fetches(registry.Counters({.name = "authentication_token_cache_fetch_total",
                                 .stability = telemetry::Stability::kAlpha,
                                 .labels = {"status"}})),
      active(registry.Gauges({.name = "authentication_token_cache_active_fetch_count",
                              .stability = telemetry::Stability::kAlpha,
                              .labels = {"status"}})) {}

}  // namespace keelson::auth
