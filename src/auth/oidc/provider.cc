#include "auth/oidc/provider.h"

#include <algorithm>
#include <exception>

#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::auth {
namespace {

constexpr std::chrono::seconds kKeysExpiryDelta{30};
constexpr std::chrono::seconds kKeysAgeMax{24 * 3600};

// max-age of a Cache-Control header; nothing where it forbids keeping or does not say.
std::chrono::seconds MaxAge(std::string_view header) {
  std::chrono::seconds age{0};
  for (const std::string_view piece : base::Split(header, ',')) {
    const std::string directive = base::ToLower(base::Trim(piece));
    if (directive == "no-store" || directive == "no-cache" || directive == "private") return std::chrono::seconds(0);
    const std::string_view prefix = "max-age=";
    if (!directive.starts_with(prefix)) continue;
    const auto seconds = base::ParseInt64(std::string_view(directive).substr(prefix.size()));
    if (seconds && *seconds > 0) age = std::chrono::seconds(std::min<std::int64_t>(*seconds, kKeysAgeMax.count()));
  }
  return age;
}

bool VerifiedBy(const std::vector<SetKey>& keys, const Token& token) {
  return std::ranges::any_of(keys, [&](const SetKey& key) {
    return (token.key_id.empty() || key.id == token.key_id) && !token.critical &&
           key.key.Verify(token.algorithm, token.signed_text, token.signature);
  });
}

}  // namespace

Provider::Provider(std::shared_ptr<DocumentFetcher> fetcher, std::string issuer, std::string discovery_url,
                   const base::Clock& clock, OnKeysFetched on_keys_fetched)
    : fetcher_(std::move(fetcher)),
      issuer_(std::move(issuer)),
      discovery_url_(std::move(discovery_url)),
      clock_(clock),
      on_keys_fetched_(std::move(on_keys_fetched)),
      problem_("oidc: authenticator for issuer " + base::GoQuote(issuer_) + " is not initialized"),
      fetches_(std::make_shared<async::SingleFlight>(
          async::SingleFlight::Options{.burst = kFetchBurst, .interval = kFetchInterval, .clock = &clock})) {}

bool Provider::ready() const {
  std::lock_guard lock(mutex_);
  return !jwks_url_.empty();
}

std::string Provider::problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

Awaitable<std::string> Provider::Discover() {
  std::string base_url = issuer_;
  if (base_url.ends_with('/')) base_url.pop_back();
  const std::string url = discovery_url_.empty() ? base_url + "/.well-known/openid-configuration" : discovery_url_;
  auto fetched = co_await fetcher_->Get(url, "");
  std::string problem, jwks_url;
  if (!fetched.ok()) {
    problem = fetched.error();
  } else if (fetched->status != 200) {
    problem = "status " + std::to_string(fetched->status) + " from " + url;
  } else {
    base::Arena arena;
    const auto document = object::ParseJSON(arena, fetched->body);
    const std::string said(document ? (*document)["issuer"].as_string() : std::string_view());
    jwks_url = document ? (*document)["jwks_uri"].as_string() : std::string_view();
    if (!document || !document->is_map()) {
      problem = "oidc: failed to decode provider discovery object";
    } else if (said != issuer_) {
      problem = "oidc: issuer did not match the issuer returned by provider, expected " + base::GoQuote(issuer_) +
                " got " + base::GoQuote(said);
    } else if (jwks_url.empty()) {
      problem = "provider did not return JWKS URL";
    }
  }
  std::lock_guard lock(mutex_);
  problem_ = problem;
  if (problem.empty()) jwks_url_ = std::move(jwks_url);
  co_return problem;
}

Awaitable<std::string> Provider::UpdateKeys(std::string url) {
  auto fetched = co_await fetcher_->Get(std::move(url), "");
  if (!fetched.ok()) co_return "oidc: get keys failed " + fetched.error();
  if (fetched->status != 200) co_return "oidc: get keys failed: status " + std::to_string(fetched->status);
  auto keys = ParseKeySet(fetched->body);
  if (!keys.ok()) co_return "oidc: failed to decode keys: " + keys.error();
  auto shared = std::make_shared<const std::vector<SetKey>>(*std::move(keys));
  if (on_keys_fetched_) on_keys_fetched_(&fetched->body);
  std::lock_guard lock(mutex_);
  keys_ = std::move(shared);
  keys_expire_ = clock_.Monotonic() + MaxAge(fetched->cache_control);
  co_return std::string();
}

Awaitable<std::string> Provider::FetchKeys(std::shared_ptr<Provider> self) {
  std::string url;
  {
    std::lock_guard lock(self->mutex_);
    url = self->jwks_url_;
  }
  std::string error;
  try {
    error = co_await self->UpdateKeys(std::move(url));
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  if (!error.empty() && self->on_keys_fetched_) self->on_keys_fetched_(nullptr);
  co_return error;
}

Awaitable<std::string> Provider::Verify(Token token) {
  const auto self = shared_from_this();
  const std::string refused = "failed to verify id token signature";
  Keys keys;
  {
    std::lock_guard lock(mutex_);
    keys = keys_;
  }
  if (keys && VerifiedBy(*keys, token)) co_return std::string();
  {
    std::lock_guard lock(mutex_);
    if (keys_ && keys_ == keys && clock_.Monotonic() + kKeysExpiryDelta <= keys_expire_) co_return refused;
  }
  const auto error = co_await fetches_->Do(async::SingleFlight::Ration::kRationed, [self] { return FetchKeys(self); });
  if (!error) co_return refused;
  if (!error->empty()) co_return "fetching keys " + *error;
  {
    std::lock_guard lock(mutex_);
    keys = keys_;
  }
  co_return keys&& VerifiedBy(*keys, token) ? std::string() : refused;
}

}  // namespace keelson::auth
