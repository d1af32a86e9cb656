#include "auth/oidc/metrics.h"

#include <openssl/sha.h>

#include "base/clock.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

double NowSeconds() { return std::chrono::duration<double>(base::Clock::Real().Now().time_since_epoch()).count(); }

}  // namespace

std::string MetricHash(std::string_view text) {
  if (text.empty()) return {};
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return "sha256:" + base::HexEncode(digest);
}

JWTMetrics::JWTMetrics(telemetry::MetricsRegistry& registry, std::string_view server_id)
    : server_hash_(MetricHash(server_id)),
      reloads_(registry.Counters(
          {.name = "apiserver_authentication_config_controller_automatic_reloads_total",
           .help = "Total number of automatic reloads of authentication configuration split by status and apiserver "
                   "identity.",
           .stability = telemetry::Stability::kBeta,
           .labels = {"status", "apiserver_id_hash"}})),
      last_reload_(registry.Gauges(
          {.name = "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
           .help = "Timestamp of the last automatic reload of authentication configuration split by status and "
                   "apiserver identity.",
           .stability = telemetry::Stability::kBeta,
           .labels = {"status", "apiserver_id_hash"}})),
      configuration_(registry.Gauges({.name = "apiserver_authentication_config_controller_last_config_info",
                                      .help = "Information about the last applied authentication configuration with "
                                              "hash as label, split by apiserver identity.",
                                      .stability = telemetry::Stability::kAlpha,
                                      .labels = {"apiserver_id_hash", "hash"}})),
      latency_(registry.Histograms(
          {.name = "apiserver_authentication_jwt_authenticator_latency_seconds",
           .help = "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token "
                   "for cache miss only (i.e. when the token is not found in the cache).",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"result", "jwt_issuer_hash"},
           .buckets = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}})),
      last_fetch_(registry.Gauges(
          {.name = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
           .help = "Timestamp of the last successful or failed JWKS fetch split by result, api server identity and jwt "
                   "issuer for the JWT authenticator.",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"result", "jwt_issuer_hash", "apiserver_id_hash"}})),
      key_set_(registry.Gauges({.name = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
                                .help = "Information about the last JWKS fetched by the JWT authenticator with hash as "
                                        "label, split by api server identity and jwt issuer.",
                                .stability = telemetry::Stability::kAlpha,
                                .labels = {"jwt_issuer_hash", "apiserver_id_hash", "hash"}})) {}

void JWTMetrics::Configured(std::string_view text) {
  std::string hash = MetricHash(text);
  std::lock_guard lock(mutex_);
  // Set to 0, the outdated series is not exposed any more.
  if (!configuration_hash_.empty()) configuration_.With({server_hash_, configuration_hash_}).Set(0);
  configuration_.With({server_hash_, hash}).Set(1);
  configuration_hash_ = std::move(hash);
}

void JWTMetrics::Reloaded(const std::string* text) {
  const std::string_view status = text != nullptr ? "success" : "failure";
  reloads_.With({status, server_hash_}).Inc();
  last_reload_.With({status, server_hash_}).Set(NowSeconds());
  if (text != nullptr) Configured(*text);
}

void JWTMetrics::KeysFetched(const Issuer& issuer, const std::string* key_set) {
  std::lock_guard lock(mutex_);
  if (issuer.retired_) return;
  last_fetch_.With({key_set != nullptr ? "success" : "failure", issuer.hash_, server_hash_}).Set(NowSeconds());
  if (key_set == nullptr) return;
  const std::string hash = MetricHash(*key_set);
  std::string& before = key_set_hashes_[issuer.hash_];
  if (!before.empty()) key_set_.With({issuer.hash_, server_hash_, before}).Set(0);
  key_set_.With({issuer.hash_, server_hash_, hash}).Set(1);
  before = hash;
}

void JWTMetrics::Retire(Issuer& issuer, Series series) {
  std::lock_guard lock(mutex_);
  issuer.retired_ = true;
  if (series == Series::kKeep) return;
  // Set to 0, a series is not exposed any more.
  for (const char* const result : {"success", "failure"}) last_fetch_.With({result, issuer.hash_, server_hash_}).Set(0);
  const auto before = key_set_hashes_.find(issuer.hash_);
  if (before == key_set_hashes_.end()) return;
  key_set_.With({issuer.hash_, server_hash_, before->second}).Set(0);
  key_set_hashes_.erase(before);
}

void JWTMetrics::Authenticated(std::string_view issuer, bool success, double seconds) {
  latency_.With({success ? "success" : "failure", MetricHash(issuer)}).Observe(seconds);
}

}  // namespace keelson::auth
