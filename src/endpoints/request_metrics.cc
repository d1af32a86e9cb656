#include "endpoints/request_metrics.h"

#include <charconv>

namespace keelson::endpoints {
namespace {

using telemetry::MetricsRegistry;
using telemetry::Stability;

const std::vector<double> kDurationBuckets = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2,
                                              3,     4,     5,    6,   8,   10,  15,  20,  30,  45,   60};
const std::vector<double> kSLIDurationBuckets(kDurationBuckets.begin() + 2, kDurationBuckets.end());  // from 0.05
const std::vector<double> kAuthDurationBuckets = telemetry::ExponentialBuckets(0.001, 2, 15);

// Few kinds of names, so that users are neither shown nor counted one by one.
std::string_view CompressedUsername(std::string_view name) {
  for (const std::string_view known :
       {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}) {
    if (name == known) return known;
  }
  return name.contains('@') ? "email_id" : "other";
}

constexpr std::string_view kAuthentications[] = {"success", "failure", "error"};              // by Authentication
constexpr std::string_view kAuthorizations[] = {"allowed", "denied", "no-opinion", "error"};  // by Authorization

// Health checks are labelled by their paths.
std::string_view SubresourceOf(const request::RequestInfo& info) {
  if (info.is_resource_request) return info.subresource;
  const bool check = info.path == "/healthz" || info.path == "/livez" || info.path == "/readyz";
  return check ? std::string_view(info.path) : "";
}

struct CodeText {
  char text[8];
  std::string_view view;
  explicit CodeText(int code) {
    const auto end = std::to_chars(text, text + sizeof(text), code).ptr;
    view = {text, static_cast<std::size_t>(end - text)};
  }
};

}  // namespace

std::string_view CanonicalVerb(const request::RequestInfo& info, std::string_view method, bool apply) {
  if (info.verb == "list") return "LIST";
  if (info.verb == "watch") return "WATCH";
  if (apply) return "APPLY";
  if (info.is_resource_request && (info.subresource == "exec" || info.subresource == "attach" ||
                                   info.subresource == "portforward" || info.subresource == "proxy")) {
    return "CONNECT";
  }
  if (method == "GET" || method == "HEAD") return "GET";
  if (method == "POST" || method == "PUT" || method == "PATCH" || method == "DELETE" || method == "CONNECT")
    return method;
  return "other";
}

std::string_view ScopeOf(const request::RequestInfo& info) {
  if (!info.is_resource_request) return "";
  if (!info.name.empty() || info.verb == "create") return "resource";
  if (!info.name_space.empty()) return "namespace";
  return "cluster";
}

RequestMetrics::RequestMetrics(MetricsRegistry& registry)
    : total_(registry.Counters(
          {.name = "apiserver_request_total",
           .help = "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, "
                   "scope, component, and HTTP response code.",
           .stability = Stability::kStable,
           .labels = {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component",
                      "code"}})),
      duration_(registry.Histograms(
          {.name = "apiserver_request_duration_seconds",
           .help = "Response latency distribution in seconds for each verb, dry run value, group, version, "
                   "resource, subresource, scope and component.",
           .stability = Stability::kStable,
           .labels = {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"},
           .buckets = kDurationBuckets})),
      sli_duration_(registry.Histograms(
          {.name = "apiserver_request_sli_duration_seconds",
           .help = "Response latency distribution (not counting webhook duration and priority & fairness queue wait "
                   "times) in seconds for each verb, group, version, resource, subresource, scope and component.",
           .stability = Stability::kAlpha,
           .labels = {"verb", "group", "version", "resource", "subresource", "scope", "component"},
           .buckets = kSLIDurationBuckets})),
      response_sizes_(
          registry.Histograms({.name = "apiserver_response_sizes",
                               .help = "Response size distribution in bytes for each group, version, verb, resource, "
                                       "subresource, scope and component.",
                               .stability = Stability::kStable,
                               .labels = {"verb", "group", "version", "resource", "subresource", "scope", "component"},
                               .buckets = telemetry::ExponentialBuckets(1000, 10.0, 7)})),
      long_running_(registry.Gauges(
          {.name = "apiserver_longrunning_requests",
           .help = "Gauge of all active long-running apiserver requests broken out by verb, group, version, "
                   "resource, scope and component. Not all requests are tracked this way.",
           .stability = Stability::kStable,
           .labels = {"verb", "group", "version", "resource", "subresource", "scope", "component"}})),
      watch_list_(registry.Histograms(
          {.name = "apiserver_watch_list_duration_seconds",
           .help =
               "Response latency distribution in seconds for watch list requests broken by group, version, resource "
               "and scope.",
           .stability = Stability::kBeta,
           .labels = {"group", "version", "resource", "scope"},
           .buckets = {0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60}})),
      terminations_(registry.Counters(
          {.name = "apiserver_request_terminations_total",
           .help = "Number of requests which apiserver terminated in self-defense.",
           .stability = Stability::kAlpha,
           .labels = {"verb", "group", "version", "resource", "subresource", "scope", "component", "code"}})),
      aborts_(registry.Counters(
          {.name = "apiserver_request_aborts_total",
           .help = "Number of requests which apiserver aborted possibly due to a timeout, for each group, version, "
                   "verb, resource, subresource and scope",
           .stability = Stability::kAlpha,
           .labels = {"verb", "group", "version", "resource", "subresource", "scope"}})),
      inflight_(registry.Gauges({.name = "apiserver_current_inflight_requests",
                                 .help = "Maximal number of currently used inflight request limit of this apiserver "
                                         "per request kind in last second.",
                                 .stability = Stability::kStable,
                                 .labels = {"request_kind"}})),
      authentications_{
          .count = registry.Counters({.name = "authentication_attempts",
                                      .help = "Counter of authenticated attempts.",
                                      .stability = Stability::kAlpha,
                                      .labels = {"result"}}),
          .duration = registry.Histograms({.name = "authentication_duration_seconds",
                                           .help = "Authentication duration in seconds broken out by result.",
                                           .stability = Stability::kAlpha,
                                           .labels = {"result"},
                                           .buckets = kAuthDurationBuckets})},
      authorizations_{
          .count =
              registry.Counters({.name = "authorization_attempts_total",
                                 .help = "Counter of authorization attempts broken down by result. It can be either "
                                         "'allowed', 'denied', 'no-opinion' or 'error'.",
                                 .stability = Stability::kAlpha,
                                 .labels = {"result"}}),
          .duration = registry.Histograms({.name = "authorization_duration_seconds",
                                           .help = "Authorization duration in seconds broken out by result.",
                                           .stability = Stability::kAlpha,
                                           .labels = {"result"},
                                           .buckets = kAuthDurationBuckets})},
      authenticated_users_(registry.Counters({.name = "authenticated_user_requests",
                                              .help = "Counter of authenticated requests broken out by username.",
                                              .stability = Stability::kAlpha,
                                              .labels = {"username"}})),
      watch_events_(registry.Counters({.name = "apiserver_watch_events_total",
                                       .help = "Number of events sent in watch clients",
                                       .stability = Stability::kAlpha,
                                       .labels = {"group", "version", "resource"}})),
      watch_event_sizes_(registry.Histograms({.name = "apiserver_watch_events_sizes",
                                              .help = "Watch event size distribution in bytes",
                                              .stability = Stability::kAlpha,
                                              .labels = {"group", "version", "resource"},
                                              .buckets = telemetry::ExponentialBuckets(1024, 2.0, 8)})) {}

void RequestMetrics::ForgetLabels(request::RequestInfo& info) {
  info.api_group.clear();
  info.api_version.clear();
  info.resource.clear();
  info.subresource.clear();
}

void RequestMetrics::Record(const request::RequestInfo& info, std::string_view method, int code, double seconds,
                            std::uint64_t response_bytes, bool dry_run, bool apply, double waited_seconds) {
  const std::string_view verb = CanonicalVerb(info, method, apply);
  const std::string_view scope = ScopeOf(info);
  const std::string_view dry = dry_run ? "All" : "";
  const CodeText code_text(code);
  const std::string_view subresource = SubresourceOf(info);
  const std::string_view component = info.is_resource_request ? "apiserver" : "";
  total_
      .With({verb, dry, info.api_group, info.api_version, info.resource, subresource, scope, component, code_text.view})
      .Inc();
  if (verb == "WATCH") return;
  duration_.With({verb, dry, info.api_group, info.api_version, info.resource, subresource, scope, component})
      .Observe(seconds);
  if (!dry_run) {
    sli_duration_.With({verb, info.api_group, info.api_version, info.resource, subresource, scope, component})
        .Observe(seconds - waited_seconds);
  }
  if (verb == "GET" || verb == "LIST") {
    response_sizes_.With({verb, info.api_group, info.api_version, info.resource, subresource, scope, component})
        .Observe(static_cast<double>(response_bytes));
  }
}

const RequestMetrics::WatchKind& RequestMetrics::WatchStarted(const request::RequestInfo& info) {
  const std::string_view scope = ScopeOf(info);
  long_running_.With({"WATCH", info.api_group, info.api_version, info.resource, info.subresource, scope, "apiserver"})
      .Inc();
  std::string key;
  for (const std::string_view part : {std::string_view(info.api_group), std::string_view(info.api_version),
                                      std::string_view(info.resource), std::string_view(info.subresource), scope}) {
    key += part;
    key += '/';
  }
  std::lock_guard lock(mutex_);
  return watch_kinds_
      .try_emplace(std::move(key), WatchKind{info.api_group, info.api_version, info.resource, info.subresource, scope})
      .first->second;
}

void RequestMetrics::WatchEnded(const WatchKind& kind, int code, bool dry_run) {
  total_
      .With({"WATCH", dry_run ? "All" : "", kind.group, kind.version, kind.resource, kind.subresource, kind.scope,
             "apiserver", CodeText(code).view})
      .Inc();
  long_running_.With({"WATCH", kind.group, kind.version, kind.resource, kind.subresource, kind.scope, "apiserver"})
      .Dec();
}

void RequestMetrics::WatchListDone(std::string_view group, std::string_view version, std::string_view resource,
                                   std::string_view scope, double seconds) {
  watch_list_.With({group, version, resource, scope}).Observe(seconds);
}

void RequestMetrics::RequestTerminated(const request::RequestInfo& info, std::string_view method, int code) {
  terminations_
      .With({CanonicalVerb(info, method, false), info.api_group, info.api_version, info.resource, info.subresource,
             ScopeOf(info), "apiserver", CodeText(code).view})
      .Inc();
}

void RequestMetrics::RequestAborted(const request::RequestInfo& info, std::string_view method) {
  aborts_
      .With({CanonicalVerb(info, method, false), info.api_group, info.api_version, info.resource, info.subresource,
             ScopeOf(info)})
      .Inc();
}

void RequestMetrics::InFlight(bool mutating, int count) {
  inflight_.With({mutating ? "mutating" : "readOnly"}).Set(count);
}

void RequestMetrics::Attempts::Record(std::size_t result, std::string_view text, double seconds) {
  // Two threads that come first find the same series.
  telemetry::Counter* counter = counters[result].load(std::memory_order_acquire);
  if (counter == nullptr) counters[result] = counter = &count.With({text});
  telemetry::Histogram* histogram = histograms[result].load(std::memory_order_acquire);
  if (histogram == nullptr) histograms[result] = histogram = &duration.With({text});
  counter->Inc();
  histogram->Observe(seconds);
}

void RequestMetrics::Authenticated(Authentication result, std::string_view user, double seconds) {
  if (result == Authentication::kSuccess) authenticated_users_.With({CompressedUsername(user)}).Inc();
  const auto index = static_cast<std::size_t>(result);
  authentications_.Record(index, kAuthentications[index], seconds);
}

void RequestMetrics::Authorized(Authorization result, double seconds) {
  const auto index = static_cast<std::size_t>(result);
  authorizations_.Record(index, kAuthorizations[index], seconds);
}

RequestMetrics::WatchMeter RequestMetrics::Meter(std::string_view group, std::string_view version,
                                                 std::string_view resource) {
  return {watch_events_.With({group, version, resource}), watch_event_sizes_.With({group, version, resource})};
}

}  // namespace keelson::endpoints
