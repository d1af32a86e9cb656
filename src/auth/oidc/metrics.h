// apiserver_authentication_config_controller_* and apiserver_authentication_jwt_authenticator_*.
// Thread safety: all members from any thread. The registry must outlive this.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "telemetry/metrics.h"

namespace keelson::auth {

// "sha256:..." of a text, as labels show identities and configurations; "" of "".
std::string MetricHash(std::string_view text);

class JWTMetrics {
 public:
  // `server_id` shows as its hash.
  JWTMetrics(telemetry::MetricsRegistry& registry, std::string_view server_id);
  // The configuration in use: `text` shows as its hash.
  void Configured(std::string_view text);
  // A changed file; `text` is null when it could not be used.
  void Reloaded(const std::string* text);

  // An issuer as one authenticator counts its keys.
  class Issuer {
   public:
    explicit Issuer(std::string_view url) : hash_(MetricHash(url)) {}

   private:
    friend class JWTMetrics;
    const std::string hash_;
    bool retired_ = false;  // guarded by JWTMetrics' mutex
  };
  // The keys of an issuer; `key_set` is null when they could not be fetched.
  void KeysFetched(const Issuer& issuer, const std::string* key_set);
  // The authenticator was replaced: fetches that end later do not count. kForget: its series go, since no other
  // authenticator has this issuer.
  enum class Series : std::uint8_t { kKeep, kForget };
  void Retire(Issuer& issuer, Series series);
  void Authenticated(std::string_view issuer, bool success, double seconds);

 private:
  const std::string server_hash_;
  telemetry::CounterVec& reloads_;
  telemetry::GaugeVec& last_reload_;
  telemetry::GaugeVec& configuration_;
  telemetry::HistogramVec& latency_;
  telemetry::GaugeVec& last_fetch_;
  telemetry::GaugeVec& key_set_;

  std::mutex mutex_;
  std::string configuration_hash_;
  std::map<std::string, std::string, std::less<>> key_set_hashes_;  // by issuer's hash
};

}  // namespace keelson::auth
