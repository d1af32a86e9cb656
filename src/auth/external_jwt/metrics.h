// apiserver_externaljwt_*. Thread safety: all members from any thread. The registry must outlive this.
#pragma once

#include <chrono>
#include <string_view>

#include "base/clock.h"
#include "telemetry/metrics.h"

namespace keelson::auth::external_jwt {

inline constexpr std::string_view kNotGRPC = "unknown-non-grpc";  // the code of an error that gRPC did not report

class Metrics {
 public:
  explicit Metrics(telemetry::MetricsRegistry& registry);

  void Fetched(std::string_view code, base::Clock::SystemTime now);  // "OK" also sets the time of the last success
  void DataTimestamp(double unix_seconds);
  void Signed(std::string_view code);
  void Called(std::string_view method, std::string_view code, std::chrono::nanoseconds took);

 private:
  telemetry::GaugeVec &success_timestamp_, &data_timestamp_;
  telemetry::CounterVec &fetches_, &signs_;
  telemetry::HistogramVec& durations_;
};

}  // namespace keelson::auth::external_jwt
