// The request metrics of upstream's apiserver: by verb, group, version, resource, subresource, scope and code.
// Thread safety: all members from any thread.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "request/request_info.h"
#include "telemetry/metrics.h"

namespace keelson::endpoints {

class RequestMetrics {
 public:
  explicit RequestMetrics(telemetry::MetricsRegistry& registry);  // must outlive this

  // For requests that no route took (401, 403, 404, 429): group, version, resource and subresource are then texts of
  // the client's own choice, and labels must come from a closed set.
  static void ForgetLabels(request::RequestInfo& info);

  // One finished request. `seconds` is not recorded for watches (they have a gauge).
  // `waited_seconds`: of them those that webhooks took or that passed in a queue, which a service level leaves out.
  void Record(const request::RequestInfo& info, std::string_view method, int code, double seconds,
              std::uint64_t response_bytes, bool dry_run, bool apply, double waited_seconds = 0);
  // The labels of a watch. One for all watches of a resource in a scope, so that an idle watch need not keep its own;
  // there are no more than series of the gauge, because only opened watches are counted.
  struct WatchKind {
    std::string group, version, resource, subresource;
    std::string_view scope;
  };
  const WatchKind& WatchStarted(const request::RequestInfo& info);  // lives as long as this
  void WatchEnded(const WatchKind& kind, int code, bool dry_run);
  void RequestTerminated(const request::RequestInfo& info, std::string_view method, int code);
  void RequestAborted(const request::RequestInfo& info, std::string_view method);
  // A streaming list has sent its initial events so long after its request came.
  void WatchListDone(std::string_view group, std::string_view version, std::string_view resource,
                     std::string_view scope, double seconds);
  void InFlight(bool mutating, int count);
  enum class Authentication { kSuccess, kFailure, kError };
  void Authenticated(Authentication result, std::string_view user, double seconds);  // `user` of a success
  enum class Authorization { kAllowed, kDenied, kNoOpinion, kError };
  void Authorized(Authorization result, double seconds);
  // Counters of a watch's events for one resource; lives as long as this.
  struct WatchMeter {
    telemetry::Counter& events;
    telemetry::Histogram& sizes;
    void Sent(std::size_t bytes) {
      events.Inc();
      sizes.Observe(static_cast<double>(bytes));
    }
  };
  WatchMeter Meter(std::string_view group, std::string_view version, std::string_view resource);

 private:
  telemetry::CounterVec& total_;
  telemetry::HistogramVec& duration_;
  telemetry::HistogramVec& sli_duration_;
  telemetry::HistogramVec& response_sizes_;
  telemetry::GaugeVec& long_running_;
  telemetry::HistogramVec& watch_list_;
  telemetry::CounterVec& terminations_;
  telemetry::CounterVec& aborts_;
  telemetry::GaugeVec& inflight_;
  // Attempts and durations by result. Every request comes by twice, so the series are kept once they were looked up.
  struct Attempts {
    telemetry::CounterVec& count;
    telemetry::HistogramVec& duration;
    std::array<std::atomic<telemetry::Counter*>, 4> counters{};
    std::array<std::atomic<telemetry::Histogram*>, 4> histograms{};
    void Record(std::size_t result, std::string_view text, double seconds);
  };
  Attempts authentications_;
  Attempts authorizations_;
  telemetry::CounterVec& authenticated_users_;
  telemetry::CounterVec& watch_events_;
  telemetry::HistogramVec& watch_event_sizes_;
  std::mutex mutex_;
  std::map<std::string, WatchKind, std::less<>> watch_kinds_;  // under the mutex; by the labels, joined
};

// GET LIST WATCH POST PUT PATCH APPLY DELETE CONNECT, as metrics and the access log name verbs.
std::string_view CanonicalVerb(const request::RequestInfo& info, std::string_view method, bool apply);
// cluster, namespace, resource, or "" for non-resource requests.
std::string_view ScopeOf(const request::RequestInfo& info);

}  // namespace keelson::endpoints
