#include "auth/token_cache.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "async/event.h"

namespace keelson::auth {
namespace {

using Key = std::array<std::uint8_t, SHA256_DIGEST_LENGTH>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data() + sizeof(hash), sizeof(hash));  // the first byte chooses the stripe
    return hash;
  }
};
using ResultPtr = std::shared_ptr<const AuthenticationResult>;

// One call for everybody who asks the same at the same time.
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

void AppendLength(std::string& out, std::size_t size) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((size >> shift) & 0xff);
}

}  // namespace

struct TokenCache::Impl : std::enable_shared_from_this<TokenCache::Impl> {
  std::shared_ptr<TokenAuthenticator> next;
  Options options;
  std::array<std::uint8_t, 32> secret;
  std::array<Stripe, kStripes> stripes;

  Key KeyOf(std::string_view token, const std::vector<std::string>& audiences) const {
    std::string text;
    text.reserve(token.size() + 64);
    AppendLength(text, token.size());
    text += token;
    AppendLength(text, audiences.size());
    for (const std::string& audience : audiences) {
      AppendLength(text, audience.size());
      text += audience;
    }
    Key key{};
    unsigned size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), key.data(), &size);
    OPENSSL_cleanse(text.data(), text.size());
    return key;
  }
  Stripe& StripeOf(const Key& key) { return stripes[key[0] % kStripes]; }

  std::chrono::nanoseconds TTLOf(const AuthenticationResult& result) const {
    if (result.user) return options.success_ttl;
    return result.errors.empty() || options.keep_errors ? options.failure_ttl : std::chrono::nanoseconds(0);
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

TokenCache::TokenCache(std::shared_ptr<TokenAuthenticator> next, Options options) : impl_(std::make_shared<Impl>()) {
  impl_->next = std::move(next);
  impl_->options = options;
  options.random->Fill(impl_->secret);
}
TokenCache::~TokenCache() = default;

Awaitable<AuthenticationResult> TokenCache::AuthenticateToken(std::string token, std::vector<std::string> audiences) {
  const auto impl = impl_;
  const auto started = impl->options.clock->Monotonic();
  const Key key = impl->KeyOf(token, audiences);
  Stripe& stripe = impl->StripeOf(key);
  ResultPtr result;
  std::shared_ptr<Call> call;
  bool first = false;
  {
    std::lock_guard lock(stripe.mutex);
    const auto found = stripe.entries.find(key);
    if (found != stripe.entries.end() && found->second.until > started) {
      result = found->second.result;
    } else {
      auto& shared = stripe.calls[key];
      first = shared == nullptr;
      if (first) shared = std::make_shared<Call>();
      call = shared;
    }
  }
  const bool hit = result != nullptr;
  if (first) {
    auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, Impl::Fetch(impl, call, key, std::move(token), std::move(audiences)), asio::detached);
  }
  TokenCacheMetrics* const metrics = impl->options.metrics;
  if (call) {
    if (metrics != nullptr) metrics->active.With({"blocked"}).Add(1);
    co_await call->done.Wait();
    if (metrics != nullptr) metrics->active.With({"blocked"}).Add(-1);
    result = call->result;
  }
  if (metrics != nullptr) {
    const std::chrono::duration<double> took = impl->options.clock->Monotonic() - started;
    metrics->requests.With({hit ? "hit" : "miss"}).Inc();
    metrics->duration.With({hit ? "hit" : "miss"}).Observe(took.count());
  }
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
