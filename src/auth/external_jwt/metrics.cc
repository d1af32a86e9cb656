#include "auth/external_jwt/metrics.h"

namespace keelson::auth::external_jwt {

using telemetry::Stability;

Metrics::Metrics(telemetry::MetricsRegistry& registry)
    : success_timestamp_(registry.Gauges({.name = "apiserver_externaljwt_fetch_keys_success_timestamp",
                                          .help = "Unix Timestamp in seconds of the last successful FetchKeys request",
                                          .stability = Stability::kAlpha})),
      data_timestamp_(registry.Gauges({.name = "apiserver_externaljwt_fetch_keys_data_timestamp",
                                       .help = "Unix Timestamp in seconds of the last successful FetchKeys "
                                               "data_timestamp value returned by the external signer",
                                       .stability = Stability::kAlpha})),
      fetches_(registry.Counters({.name = "apiserver_externaljwt_fetch_keys_request_total",
                                  .help = "Total attempts at syncing supported JWKs",
                                  .stability = Stability::kAlpha,
                                  .labels = {"code"}})),
      signs_(registry.Counters({.name = "apiserver_externaljwt_sign_request_total",
                                .help = "Total attempts at signing JWT",
                                .stability = Stability::kAlpha,
                                .labels = {"code"}})),
      durations_(registry.Histograms({.name = "apiserver_externaljwt_request_duration_seconds",
                                      .help = "Request duration and time for calls to external-jwt-signer",
                                      .stability = Stability::kAlpha,
                                      .labels = {"method", "code"},
                                      .buckets = {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}})) {}

void Metrics::Fetched(std::string_view code, base::Clock::SystemTime now) {
  fetches_.With({code}).Inc();
  if (code == "OK") {
    success_timestamp_.Only().Set(std::chrono::duration<double>(now.time_since_epoch()).count());
  }
}

void Metrics::DataTimestamp(double unix_seconds) { data_timestamp_.Only().Set(unix_seconds); }

void Metrics::Signed(std::string_view code) { signs_.With({code}).Inc(); }

void Metrics::Called(std::string_view method, std::string_view code, std::chrono::nanoseconds took) {
  durations_.With({method, code}).Observe(std::chrono::duration<double>(took).count());
}

}  // namespace keelson::auth::external_jwt
