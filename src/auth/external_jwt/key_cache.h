// The keys that an external signer publishes, fetched at the start, when its refresh hint says so, and when a token
// names a key that is not among them. The last good set stays in force while the signer is away. Thread safety: all
// members from any thread. Ownership: a shared object; a fetch under way keeps it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "async/single_flight.h"
#include "auth/external_jwt/metrics.h"
#include "auth/external_jwt/service.h"
#include "auth/service_account/public_keys.h"
#include "base/clock.h"

namespace keelson::auth::external_jwt {

class KeyCache final : public PublicKeysGetter, public std::enable_shared_from_this<KeyCache> {
 public:
  static constexpr std::chrono::seconds kFallbackRefresh{10};  // after a failed fetch
  static constexpr std::size_t kKeyIDBytesMax = 1024;
  // Fetches on account of unknown key ids, at most: so many at once after a quiet time, then one per kFetchInterval.
  // Tokens with made-up key ids cannot make more.
  static constexpr double kFetchBurst = 10;
  static constexpr std::chrono::seconds kFetchInterval{1};

  struct Options {
    std::shared_ptr<SignerService> service;
    std::shared_ptr<Metrics> metrics;           // may be null
    std::chrono::milliseconds timeout{60'000};  // of a fetch
    const base::Clock* clock = &base::Clock::Real();
  };
  explicit KeyCache(Options options);

  // Fetches the keys; "" or upstream's text of the failure.
  Awaitable<std::string> InitialFill();
  // Fetches when the refresh hint of the last fetch has passed. For a caller that comes by every second or so.
  Awaitable<void> RefreshWhenDue();

  std::shared_ptr<const VerificationKeys> Current() const override;
  Awaitable<bool> Sync() override;
  std::chrono::seconds CacheAgeMax() const override;
  // Whether the signer wants the key out of the discovery documents, that is: for old tokens only. A key id that is not
  // known is looked for.
  Awaitable<bool> Excluded(std::string key_id);

 private:
  // "" when newer keys are there; nothing when the ration is used up.
  Awaitable<std::optional<std::string>> SyncKeys(async::SingleFlight::Ration ration);
  static Awaitable<std::string> FetchKeys(std::shared_ptr<KeyCache> self);

  const Options options_;
  mutable std::mutex mutex_;
  std::shared_ptr<const VerificationKeys> keys_ = std::make_shared<const VerificationKeys>();
  base::Clock::SystemTime next_refresh_{};
  base::Clock::SystemTime retry_at_{};
  const std::shared_ptr<async::SingleFlight> fetches_;
};

// The keys of an answer, checked; or upstream's text of what is wrong with it.
Outcome<VerificationKeys, std::string> ReadKeys(const FetchKeysResponse& response);

}  // namespace keelson::auth::external_jwt
