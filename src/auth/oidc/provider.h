// One issuer of tokens: its discovery document and its keys, fetched when needed.
// Thread safety: all members from any thread. Ownership: a shared object; calls under way keep it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "async/single_flight.h"
#include "auth/jose/keys.h"
#include "base/clock.h"
#include "base/outcome.h"

namespace keelson::auth {

struct FetchedDocument {
  int status = 0;
  std::string cache_control;  // the header
  std::string body;
};

// HTTP GET with the issuer's authorities. Implementations bound time and size; redirects are not followed.
class DocumentFetcher {
 public:
  virtual ~DocumentFetcher() = default;
  // The error is one line without the token.
  virtual Awaitable<Outcome<FetchedDocument, std::string>> Get(std::string url, std::string bearer_token) = 0;
};

// Told of every fetch of an issuer's keys; `key_set` is null when it failed.
using OnKeysFetched = std::function<void(const std::string* key_set)>;

class Provider : public std::enable_shared_from_this<Provider> {
 public:
  // Fetches of the keys, at most: so many at once after a quiet time, then one per kFetchInterval. Tokens with made-up
  // key ids cannot make more.
  static constexpr double kFetchBurst = 10;
  static constexpr std::chrono::seconds kFetchInterval{10};

  // `discovery_url` "": where OpenID Connect puts it below the issuer.
  Provider(std::shared_ptr<DocumentFetcher> fetcher, std::string issuer, std::string discovery_url,
           const base::Clock& clock = base::Clock::Real(), OnKeysFetched on_keys_fetched = nullptr);

  const std::string& issuer() const { return issuer_; }
  bool ready() const;           // the discovery document is there
  std::string problem() const;  // why it is not; "" once it is
  // Fetches the discovery document; "" or what is wrong.
  Awaitable<std::string> Discover();
  // "" when a key of the issuer verifies the token, else upstream's text. REQUIRES: ready().
  Awaitable<std::string> Verify(Token token);

 private:
  using Keys = std::shared_ptr<const std::vector<SetKey>>;
  static Awaitable<std::string> FetchKeys(std::shared_ptr<Provider> self);
  Awaitable<std::string> UpdateKeys(std::string url);

  const std::shared_ptr<DocumentFetcher> fetcher_;
  const std::string issuer_, discovery_url_;
  const base::Clock& clock_;
  const OnKeysFetched on_keys_fetched_;

  mutable std::mutex mutex_;
  std::string jwks_url_, problem_;
  Keys keys_;
  base::Clock::SteadyTime keys_expire_{};
  const std::shared_ptr<async::SingleFlight> fetches_;
};

}  // namespace keelson::auth
