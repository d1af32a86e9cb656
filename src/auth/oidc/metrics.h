// apiserver_authentication_config_controller_* and the latency of JWT authenticators.
// Thread safety: all members from any thread. The registry must outlive this.
#pragma once

#include <string>
#include <string_view>

#include "telemetry/metrics.h"

namespace keelson::auth {

class JWTMetrics {
 public:
  // `server_id` shows as its hash.
  JWTMetrics(telemetry::MetricsRegistry& registry, std::string_view server_id);
  void Reloaded(bool success);
  void Authenticated(std::string_view issuer, bool success, double seconds);

 private:
  const std::string server_hash_;
  telemetry::CounterVec& reloads_;
  telemetry::GaugeVec& last_reload_;
  telemetry::HistogramVec& latency_;
};

}  // namespace keelson::auth
