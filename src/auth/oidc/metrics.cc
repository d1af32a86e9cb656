#include "auth/oidc/metrics.h"

#include <openssl/sha.h>

#include "base/clock.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

std::string HashOf(std::string_view text) {
  if (text.empty()) return {};
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return "sha256:" + base::HexEncode(digest);
}

}  // namespace

JWTMetrics::JWTMetrics(telemetry::MetricsRegistry& registry, std::string_view server_id)
    : server_hash_(HashOf(server_id)),
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
      latency_(registry.Histograms(
          {.name = "apiserver_authentication_jwt_authenticator_latency_seconds",
           .help = "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token "
                   "for cache miss only (i.e. when the token is not found in the cache).",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"result", "jwt_issuer_hash"},
           .buckets = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}})) {}

void JWTMetrics::Reloaded(bool success) {
  const std::string_view status = success ? "success" : "failure";
  const std::chrono::duration<double> now = base::Clock::Real().Now().time_since_epoch();
  reloads_.With({status, server_hash_}).Inc();
  last_reload_.With({status, server_hash_}).Set(now.count());
}

void JWTMetrics::Authenticated(std::string_view issuer, bool success, double seconds) {
  latency_.With({success ? "success" : "failure", HashOf(issuer)}).Observe(seconds);
}

}  // namespace keelson::auth
