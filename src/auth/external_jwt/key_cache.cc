#include "auth/external_jwt/key_cache.h"

#include <algorithm>

#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::auth::external_jwt {
namespace {

using Ration = async::SingleFlight::Ration;

// protobuf-go's Timestamp.CheckValid; "" when it is valid.
std::string TimestampProblem(const std::optional<Timestamp>& time) {
  constexpr std::int64_t kFirst = -62'135'596'800, kLast = 253'402'300'799;
  constexpr std::int32_t kNanosMax = 999'999'999;
  if (!time) return "proto: invalid nil Timestamp";
  std::string shown;
  if (time->seconds != 0) shown = "seconds:" + std::to_string(time->seconds);
  if (time->nanos != 0) shown += (shown.empty() ? "nanos:" : " nanos:") + std::to_string(time->nanos);
  const std::string start = "proto: timestamp (" + shown + ") ";
  if (time->seconds < kFirst) return start + "before 0001-01-01";
  if (time->seconds > kLast) return start + "after 9999-12-31";
  if (time->nanos < 0 || time->nanos > kNanosMax) return start + "has out-of-range nanos";
  return {};
}

}  // namespace

Outcome<VerificationKeys, std::string> ReadKeys(const FetchKeysResponse& response) {
  if (response.refresh_hint_seconds <= 0) {
    return "found invalid refresh hint (" + std::to_string(response.refresh_hint_seconds) + "s)";
  }
  if (response.keys.empty()) return std::string("found no keys");
  if (std::string problem = TimestampProblem(response.data_timestamp); !problem.empty()) {
    return "invalid data timestamp: " + problem;
  }
  VerificationKeys read;
  for (const FetchedKey& fetched : response.keys) {
    if (fetched.id.empty() || fetched.id.size() > KeyCache::kKeyIDBytesMax) {
      return "found invalid public key id " + base::GoQuote(fetched.id);
    }
    if (fetched.pkix.empty()) return std::string("found empty public key");
    auto key = PublicKey::FromPKIX(fetched.pkix, fetched.id);
    if (!key.ok()) return "while parsing external public keys: " + key.error();
    read.keys.push_back(*key);
    if (!fetched.exclude_from_oidc_discovery) read.published.push_back(*std::move(key));
  }
  return read;
}

KeyCache::KeyCache(Options options)
    : options_(std::move(options)),
      fetches_(std::make_shared<async::SingleFlight>(
          async::SingleFlight::Options{.burst = kFetchBurst, .interval = kFetchInterval, .clock = options_.clock})) {}

std::shared_ptr<const VerificationKeys> KeyCache::Current() const {
  std::lock_guard lock(mutex_);
  return keys_;
}

std::chrono::seconds KeyCache::CacheAgeMax() const {
  std::lock_guard lock(mutex_);
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(next_refresh_ - options_.clock->Now());
  return std::max(left, std::chrono::seconds(0));
}

// Fetches once and publishes the keys; "" or what went wrong.
Awaitable<std::string> KeyCache::FetchKeys(std::shared_ptr<KeyCache> self) {
  const Options& options = self->options_;
  auto response = co_await options.service->FetchKeys(options.timeout);
  const auto now = options.clock->Now();
  auto keys = response.ok() ? ReadKeys(*response) : Outcome<VerificationKeys, std::string>(std::string());
  const std::string_view code = !response.ok() ? std::string_view(response.error().code) : keys.ok() ? "OK" : kNotGRPC;
  if (options.metrics != nullptr) options.metrics->Fetched(code, now);
  if (!response.ok()) {
    co_return "while fetching token verification keys: while getting externally supported jwt signing keys: " +
        response.error().message;
  }
  if (!keys.ok()) co_return "while fetching token verification keys: " + keys.error();
  if (options.metrics != nullptr) {
    options.metrics->DataTimestamp(static_cast<double>(response->data_timestamp->seconds) +
                                   static_cast<double>(response->data_timestamp->nanos) / 1e9);
  }
  auto shared = std::make_shared<const VerificationKeys>(*std::move(keys));
  std::lock_guard lock(self->mutex_);
  self->keys_ = std::move(shared);
  // A hint beyond a century would overflow the clock.
  constexpr std::int64_t kHintSecondsMax = std::int64_t{100} * 365 * 24 * 3600;
  self->next_refresh_ = now + std::chrono::seconds(std::min(response->refresh_hint_seconds, kHintSecondsMax));
  self->retry_at_ = {};
  co_return std::string();
}

Awaitable<std::optional<std::string>> KeyCache::SyncKeys(async::SingleFlight::Ration ration) {
  return fetches_->Do(ration, [self = shared_from_this()] { return FetchKeys(self); });
}

Awaitable<std::string> KeyCache::InitialFill() {
  const std::string error = (co_await SyncKeys(Ration::kFree)).value_or("");
  co_return error.empty() ? std::string() : "while performing initial cache fill: " + error;
}

Awaitable<void> KeyCache::RefreshWhenDue() {
  {
    std::lock_guard lock(mutex_);
    const auto now = options_.clock->Now();
    if (now < next_refresh_ || now < retry_at_) co_return;
  }
  const std::string error = (co_await SyncKeys(Ration::kFree)).value_or("");
  if (error.empty()) co_return;
  log::Error("Could not sync the supported public keys, stale keys stay in force", "err", error);
  std::lock_guard lock(mutex_);
  retry_at_ = options_.clock->Now() + kFallbackRefresh;
}

Awaitable<bool> KeyCache::Sync() {
  const auto error = co_await SyncKeys(Ration::kRationed);
  // Tokens with made-up key ids must not fill the log.
  if (error && !error->empty()) log::Error("Could not sync keys for an unknown key id", "err", *error);
  co_return error && error->empty();
}

Awaitable<bool> KeyCache::Excluded(std::string key_id) {
  const auto has = [&](const std::vector<PublicKey>& keys) {
    return std::ranges::any_of(keys, [&](const PublicKey& key) { return key.id() == key_id; });
  };
  auto keys = Current();
  if (!has(keys->keys) && co_await Sync()) keys = Current();
  // Two keys may have one id: a single excluded one is enough, as upstream decides.
  const auto times = [&](const std::vector<PublicKey>& in) {
    return std::ranges::count_if(in, [&](const PublicKey& key) { return key.id() == key_id; });
  };
  co_return times(keys->keys) > times(keys->published);
}

}  // namespace keelson::auth::external_jwt
