#include "endpoints/filters/filters.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <optional>

#include "async/start.h"
#include "base/duration.h"
#include "base/go_regex.h"
#include "base/strings.h"
#include "endpoints/call_cancellation.h"
#include "endpoints/filters/audit.h"
#include "endpoints/filters/tracing.h"
#include "endpoints/responses.h"
#include "telemetry/log.h"

namespace keelson::endpoints::filters {
namespace {

using Clock = base::Clock;

constexpr std::string_view kShutdownExemptPrefixes[] = {"/readyz", "/livez", "/healthz", "/metrics"};
constexpr std::size_t kAuditIDLogged = 64;
constexpr std::chrono::seconds kAnswerGrace{10};  // to send an answer that was ready just before its deadline

bool IsExemptFromShutdown(const Exchange& exchange) {
  for (const auto prefix : kShutdownExemptPrefixes) {
    if (exchange.http.path.starts_with(prefix)) return true;
  }
  return exchange.context.user_agent.starts_with("kube-apiserver/");
}

std::string_view WhatOf(std::exception_ptr exception, std::string& text) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "unknown exception";
  }
  return text;
}

// A bug in one request ends that request, not the server.
http::Response PanicResponse(const Exchange& exchange, std::exception_ptr failure) {
  std::string text;
  log::Error("Request panicked", "err", WhatOf(failure, text), "method", exchange.http.method, "URI",
             exchange.http.target, "audit-ID", exchange.context.audit_id.substr(0, kAuditIDLogged));
  return PlainError(500, "This request caused apiserver to panic. Look in the logs for details.");
}

// Runs a function when its last copy is gone: with the response that holds one, or with the frame of a handler that
// threw or was given up on.
class Release {
 public:
  explicit Release(std::function<void()> function)
      : guard_(new std::function<void()>(std::move(function)), [](std::function<void()>* run) {
          (*run)();
          delete run;
        }) {}

 private:
  std::shared_ptr<std::function<void()>> guard_;
};

double SecondsSince(Clock::SteadyTime started) {
  return std::chrono::duration<double>(Clock::Real().Monotonic() - started).count();
}

RequestMetrics::Authorization ResultOf(const auth::Authorization& answer) {
  using enum RequestMetrics::Authorization;
  if (answer.decision == auth::Decision::kAllow) return kAllowed;
  if (!answer.error.empty()) return kError;
  return answer.decision == auth::Decision::kDeny ? kDenied : kNoOpinion;
}

// A small holder of the metrics' labels: a response that streams for hours must not keep the whole exchange alive.
struct Finished {
  request::RequestInfo info;
  std::string method;
  int code;
  Clock::SteadyTime received;
  bool dry_run;
  bool apply;
  double waited_seconds;
  std::shared_ptr<void> in_group;
};

// The fields that metrics read.
request::RequestInfo LabelsOf(const request::RequestInfo& info) {
  request::RequestInfo labels;
  labels.is_resource_request = info.is_resource_request;
  if (!info.is_resource_request) labels.path = info.path;
  labels.verb = info.verb;
  labels.api_group = info.api_group;
  labels.api_version = info.api_version;
  labels.name_space = info.name_space;
  labels.resource = info.resource;
  labels.subresource = info.subresource;
  labels.name = info.name;
  return labels;
}

// Time that service levels do not count: webhooks and the queues of priority and fairness.
double WaitedSeconds(const telemetry::LatencyTrackers& latencies) {
  using enum telemetry::LatencyTrackers::Layer;
  return std::chrono::duration<double>(latencies.spent(kMutatingWebhook) + latencies.spent(kValidatingWebhook) +
                                       latencies.spent(kAPFQueueWait))
      .count();
}

}  // namespace

namespace {

void LogHTTP(const Exchange& exchange, int status) {
  const auto verbose = log::V(3);
  if (!verbose.enabled()) return;
  const auto latency = Clock::Real().Monotonic() - exchange.context.received;
  verbose.Info("HTTP", "verb", CanonicalVerb(exchange.context.info, exchange.http.method, false), "URI",
               exchange.http.target, "latency", latency, "userAgent", exchange.context.user_agent, "audit-ID",
               exchange.context.audit_id.substr(0, kAuditIDLogged), "srcIP", exchange.http.remote_address, "resp",
               status);
}

void FillContext(Exchange& exchange, base::Random& random) {
  request::Context& context = exchange.context;
  context.audit_id = exchange.http.headers.Get("Audit-ID");
  if (context.audit_id.empty()) context.audit_id = random.UUID();
  context.user_agent = exchange.http.headers.Get("User-Agent");
  context.remote_address = exchange.http.remote_address;
  context.received = exchange.http.received;
  exchange.query = base::Query(exchange.http.raw_query);
}

void CancelWhenClientGoes(Exchange& exchange) {
  request::Context& context = exchange.context;
  if (!exchange.http.on_close || context.info.verb == "watch") return;
  context.cancellation = async::Cancellation::New();
  exchange.http.on_close([weak = std::weak_ptr(context.cancellation)] {
    if (const auto cancellation = weak.lock()) cancellation->Cancel();
  });
}

void FinishTraceWhenWritten(const Exchange& exchange, http::Response& response) {
  auto finish = exchange.trace.Finish(exchange, response.status);
  if (!finish) return;
  // Of a HEAD the bytes count that were made, though none is sent.
  const auto* made = std::get_if<base::SharedBytes>(&response.body);
  if (exchange.http.method == "HEAD" && made != nullptr) {
    finish = [finish, bytes = made->size()](std::uint64_t, bool complete) { finish(bytes, complete); };
  }
  response.on_end.push_back(std::move(finish));
}

// Records metrics and traces when the response has been written.
void RecordWhenWritten(const ExchangePtr& exchange, RequestMetrics& metrics, http::Response& response) {
  const request::Context& context = exchange->context;
  Finished finished{.info = LabelsOf(context.info),
                    .method = exchange->http.method,
                    .code = response.status,
                    .received = context.received,
                    .dry_run = exchange->query.Has("dryRun"),
                    .apply = exchange->http.method == "PATCH" &&
                             exchange->http.headers.Get("Content-Type").starts_with("application/apply-patch"),
                    .waited_seconds = WaitedSeconds(context.latencies),
                    .in_group = std::move(exchange->in_group)};
  if (!exchange->routed) metrics.ForgetLabels(finished.info);
  FinishTraceWhenWritten(*exchange, response);
  const bool watch = finished.info.verb == "watch" && (response.status == 200 || response.status == 101);
  if (watch) {
    const RequestMetrics::WatchKind& kind = metrics.WatchStarted(finished.info);
    response.on_end.push_back([&metrics, &kind, code = finished.code, dry_run = finished.dry_run](std::uint64_t, bool) {
      metrics.WatchEnded(kind, code, dry_run);
    });
    return;
  }
  response.on_end.push_back([&metrics, finished = std::move(finished)](std::uint64_t bytes, bool complete) {
    metrics.Record(finished.info, finished.method, finished.code, SecondsSince(finished.received), bytes,
                   finished.dry_run, finished.apply, finished.waited_seconds);
    if (!complete) metrics.RequestAborted(finished.info, finished.method);
  });
}

}  // namespace

namespace {

class ContextFilter {
 public:
  ContextFilter(Handler next, base::Random& random, RequestMetrics& metrics, RunningRequests* running,
                TracingOptions tracing)
      : next_(std::move(next)), random_(random), metrics_(metrics), running_(running), tracing_(std::move(tracing)) {}

  Awaitable<http::Response> Serve(http::Request request) const {
    auto exchange = std::make_shared<Exchange>();
    exchange->http = std::move(request);
    std::optional<RunningRequests::Entry> noted;
    if (running_ != nullptr) noted.emplace(*running_, exchange->http.method, exchange->http.target);
    exchange->metrics = &metrics_;
    FillContext(*exchange, random_);
    BeginTrace(*exchange, tracing_);

    http::Response response;
    request::Context& context = exchange->context;
    auto info = request::NewRequestInfo(exchange->http.method, exchange->http.path, exchange->query);
    if (info.ok()) {
      context.info = *std::move(info);
      CancelWhenClientGoes(*exchange);
      std::exception_ptr failure;
      try {
        response = co_await next_(exchange);
      } catch (...) {
        failure = std::current_exception();
      }
      if (failure) response = PanicResponse(*exchange, failure);
      LogHTTP(*exchange, response.status);
    } else {
      response = InternalErrorText(*exchange, "failed to create RequestInfo: " + info.error());
    }
    // Upstream's timeout covers writing, too. A 504 at the deadline gets a little extra time.
    if (context.deadline)
      response.write_deadline = std::max(*context.deadline, Clock::Real().Monotonic() + kAnswerGrace);
    // A handshake has no other headers than its own.
    if (!response.headers.Has("Audit-Id") && response.status != 101 && !exchange->relayed)
      response.headers.Add("Audit-Id", context.audit_id);
    RecordWhenWritten(exchange, metrics_, response);
    co_return response;
  }

 private:
  const Handler next_;
  base::Random& random_;
  RequestMetrics& metrics_;
  RunningRequests* const running_;
  const TracingOptions tracing_;
};

}  // namespace

http::Handler WithContext(Handler next, base::Random& random, RequestMetrics& metrics, RunningRequests* running,
                          TracingOptions tracing) {
  auto filter = std::make_shared<const ContextFilter>(std::move(next), random, metrics, running, std::move(tracing));
  return [filter](http::Request request) { return filter->Serve(std::move(request)); };
}

namespace {

// `next` belongs to the handler chain, which outlives every request.
Awaitable<http::Response> ApplyResponseFilters(const Handler& next, const std::vector<ResponseFilter>& filters,
                                               ExchangePtr exchange) {
  http::Response response = co_await next(exchange);
  for (const ResponseFilter& filter : filters) filter(*exchange, response);
  co_return response;
}

}  // namespace

Handler WithResponseFilters(Handler next, std::vector<ResponseFilter> filters) {
  if (filters.empty()) return next;
  return [next = std::move(next), filters = std::move(filters)](ExchangePtr exchange) {
    return ApplyResponseFilters(next, filters, std::move(exchange));
  };
}

ResponseFilter HSTS(const std::vector<std::string>& directives) {
  return [value = base::Join(directives, "; ")](const Exchange&, http::Response& response) {
    if (!response.headers.Has("Strict-Transport-Security")) response.headers.Add("Strict-Transport-Security", value);
  };
}

ResponseFilter CacheControl() {
  return [](const Exchange&, http::Response& response) {
    if (!response.headers.Has("Cache-Control") && response.status != 101)
      response.headers.Add("Cache-Control", "no-cache, private");
  };
}

ResponseFilter ProbabilisticGoaway(double chance, base::Random& random) {
  return [chance, &random](const Exchange& exchange, http::Response& response) {
    if (exchange.http.http_major == 2 && random.Unit() < chance) response.headers.Set("Connection", "close");
  };
}

// The end of a group: no request is inside, and none can enter any more.
struct RequestGroup::End {
  std::mutex mutex;
  bool reached = false;
  std::function<void()> callback;

  void Reach() {
    std::function<void()> call;
    {
      std::lock_guard lock(mutex);
      reached = true;
      call = std::exchange(callback, nullptr);
    }
    if (call) call();
  }
};

RequestGroup::RequestGroup()
    : end_(std::make_shared<End>()), inside_(end_.get(), [end = end_](void*) { end->Reach(); }), requests_(inside_) {}

std::shared_ptr<void> RequestGroup::Enter() {
  std::lock_guard lock(mutex_);
  return inside_;
}

void RequestGroup::Close() {
  std::shared_ptr<void> last;  // let go of without the lock
  std::lock_guard lock(mutex_);
  last.swap(inside_);
}

std::size_t RequestGroup::count() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(requests_.use_count()) - (inside_ ? 1 : 0);
}

void RequestGroup::OnEmpty(std::function<void()> callback) {
  {
    std::lock_guard lock(end_->mutex);
    if (!end_->reached) {
      end_->callback = std::move(callback);
      return;
    }
  }
  callback();
}

Handler WithWatchTerminationDuringShutdown(Handler next, std::shared_ptr<WatchGroup> group) {
  return [next = std::move(next), group](ExchangePtr exchange) {
    if (exchange->context.info.verb == "watch") {
      if (group->ending()) return Immediately(ShuttingDown());
      exchange->watches = group;
    }
    return next(std::move(exchange));
  };
}

Handler WithWaitGroup(Handler next, std::shared_ptr<RequestGroup> group) {
  return [next = std::move(next), group](ExchangePtr exchange) {
    if (exchange->context.info.IsLongRunning()) return next(std::move(exchange));
    exchange->in_group = group->Enter();
    if (!exchange->in_group && !IsExemptFromShutdown(*exchange)) return Immediately(ShuttingDown());
    return next(std::move(exchange));
  };
}

Handler WithRetryAfter(Handler next, std::shared_ptr<std::atomic<bool>> not_accepting) {
  return [next = std::move(next), not_accepting](ExchangePtr exchange) {
    if (!*not_accepting || IsExemptFromShutdown(*exchange)) return next(std::move(exchange));
    http::Response response = PlainError(429, "The apiserver is shutting down, please try again later.");
    response.headers.Set("Retry-After", "5");
    response.headers.Set("Connection", "close");
    return Immediately(std::move(response));
  };
}

Handler WithRequestDeadline(Handler next, std::chrono::nanoseconds timeout) {
  return [next = std::move(next), timeout](ExchangePtr exchange) {
    request::Context& context = exchange->context;
    if (context.info.IsLongRunning()) return next(std::move(exchange));
    auto effective = timeout;
    if (const auto text = exchange->query.Get("timeout"); !text.empty()) {
      std::string error;
      const auto parsed = base::ParseDuration(text, &error);
      if (!parsed) {
        return Immediately(
            FailedRequest(*exchange, meta::NewBadRequest("invalid timeout specified in the request URL - " + error)));
      }
      if (parsed->count() > 0) effective = std::min(effective, *parsed);
    }
    context.deadline = context.received + std::chrono::duration_cast<Clock::SteadyTime::duration>(effective);
    return next(std::move(exchange));
  };
}

namespace {

// Upstream's requestTimeoutUpperBound: how long the handler of a write may take, whatever --request-timeout says.
constexpr std::chrono::seconds kWriteTimeoutMax{34};

bool IsBoundedWrite(const request::RequestInfo& info) {
  if (!info.is_resource_request) return false;
  return info.verb == "create" || info.verb == "update" || info.verb == "patch" || info.verb == "delete" ||
         info.verb == "deletecollection";
}

void AddWarnings(const request::Warnings& warnings, http::Response& response) {
  if (warnings.empty()) return;
  for (const auto& value : warnings.HeaderValues()) response.headers.Add("Warning", value);
}

// `next` belongs to the handler chain, which outlives every request.
Awaitable<http::Response> ServeWithWarnings(const Handler& next, ExchangePtr exchange) {
  http::Response response = co_await next(exchange);
  AddWarnings(exchange->context.warnings, response);
  co_return response;
}

struct Race {
  explicit Race(asio::any_io_executor executor) : executor(std::move(executor)) {}
  const asio::any_io_executor executor;
  std::optional<http::Response> response;
  std::optional<asio::steady_timer> timer;  // none until a coroutine waits
};

// `next` belongs to the handler chain, which outlives every request.
async::Entry RunInRace(const Handler& next, ExchangePtr exchange, std::shared_ptr<Race> race) {
  // A shutdown waits for the handler, too, after its client has been answered with 504.
  const std::shared_ptr<void> in_group = exchange->in_group;
  std::exception_ptr failure;
  try {
    race->response = co_await next(exchange);
    AddWarnings(exchange->context.warnings, *race->response);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) race->response = PanicResponse(*exchange, failure);
  if (race->timer) race->timer->cancel();
}

}  // namespace

namespace {

// `next` belongs to the handler chain, which outlives every request.
Awaitable<http::Response> ServeInTime(const Handler& next, RequestMetrics& metrics, ExchangePtr exchange) {
  auto race = std::make_shared<Race>(co_await asio::this_coro::executor);
  const auto write_bound = base::Clock::Real().Monotonic() + kWriteTimeoutMax;
  const bool bounded = IsBoundedWrite(exchange->context.info) && write_bound < *exchange->context.deadline;
  if (bounded) exchange->context.deadline = write_bound;
  auto running = RunInRace(next, exchange, race);
  async::Start(race->executor, std::move(running));
  if (!race->response) {
    race->timer.emplace(race->executor, *exchange->context.deadline);
    co_await race->timer->async_wait(kNoThrow);
  }
  // A handler whose calls have the same deadline answers 504 at the same moment: upstream's filter wins.
  const bool late =
      race->response && race->response->status == 504 && base::Clock::Real().Monotonic() >= *exchange->context.deadline;
  if (race->response && !late) co_return std::move(*race->response);
  // The handler goes on until it notices; its seat and its leases stay taken until then.
  if (exchange->context.cancellation) exchange->context.cancellation->Cancel();
  if (bounded) {
    const std::string_view text = "request did not complete within requested timeout - context deadline exceeded";
    co_return StatusResponse(*exchange, meta::NewTimeout(text, 0));
  }
  request::RequestInfo info = exchange->context.info;
  if (!exchange->routed) metrics.ForgetLabels(info);
  metrics.RequestTerminated(info, exchange->http.method, 504);
  http::Response response;
  response.status = 504;
  response.headers.Set("Content-Type", "text/plain; charset=utf-8");
  response.body = base::SharedBytes::Static(
      R"({"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504})"
      "\n");
  co_return response;
}

}  // namespace

Handler WithTimeoutAndWarnings(Handler next, RequestMetrics& metrics) {
  return [next = std::move(next), &metrics](ExchangePtr exchange) {
    if (!exchange->context.deadline) return ServeWithWarnings(next, std::move(exchange));
    return ServeInTime(next, metrics, std::move(exchange));
  };
}

namespace {

using Origins = std::vector<base::GoRegex>;

// `next` belongs to the handler chain, which outlives every request.
Awaitable<http::Response> ServeCORS(const Handler& next, const Origins& origins, ExchangePtr exchange) {
  const std::string origin(exchange->http.headers.Get("Origin"));
  bool allowed = false;
  if (!origin.empty()) {
    for (const auto& pattern : origins) allowed = allowed || pattern.Matches(origin);
  }
  if (!allowed) co_return co_await next(exchange);
  http::Response response;
  if (exchange->http.method == "OPTIONS") {
    response.status = 204;
  } else {
    response = co_await next(exchange);
  }
  response.headers.Set("Access-Control-Allow-Origin", origin);
  response.headers.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH");
  response.headers.Set("Access-Control-Allow-Headers",
                       "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, "
                       "X-Requested-With, If-Modified-Since");
  response.headers.Set("Access-Control-Expose-Headers", "Date");
  response.headers.Set("Access-Control-Allow-Credentials", "true");
  co_return response;
}

}  // namespace

Handler WithCORS(Handler next, const CORSOptions& options) {
  if (options.allowed_origins.empty()) return next;
  auto patterns = std::make_shared<Origins>();
  for (const auto& text : options.allowed_origins) patterns->emplace_back(text);
  return [next = std::move(next), patterns](ExchangePtr exchange) {
    return ServeCORS(next, *patterns, std::move(exchange));
  };
}

namespace {

// Applies the authorizer's decision: none to continue, or the 403 response.
std::optional<http::Response> Judge(Exchange& exchange, const auth::Attributes& attributes,
                                    const auth::Authorization& answer) {
  request::AuditAnnotations& annotations = exchange.context.audit_annotations;
  if (answer.decision == auth::Decision::kAllow) {
    annotations.Add("authorization.k8s.io/decision", "allow");
    annotations.Add("authorization.k8s.io/reason", answer.reason);
    return std::nullopt;
  }
  if (!answer.error.empty()) {
    annotations.Add("authorization.k8s.io/reason", "internal error");
    return InternalErrorText(exchange, answer.error);
  }
  annotations.Add("authorization.k8s.io/decision", "forbid");
  annotations.Add("authorization.k8s.io/reason", answer.reason);
  const std::string message = auth::ForbiddenMessage(attributes, answer.reason);
  const request::RequestInfo& info = exchange.context.info;
  const meta::GroupResource resource{info.api_group, info.resource};
  http::Response response = StatusResponse(exchange, meta::NewForbidden(resource, info.name, message));
  response.headers.Set("X-Content-Type-Options", "nosniff");
  return response;
}

class AuthorizationFilter {
 public:
  AuthorizationFilter(Handler next, std::shared_ptr<auth::Authorizer> authorizer, RequestMetrics& metrics)
      : next_(std::move(next)), authorizer_(std::move(authorizer)), metrics_(metrics) {}

  Awaitable<http::Response> Serve(ExchangePtr exchange) const {
    const auto started = Clock::Real().Monotonic();
    const telemetry::Span span = StartFilterSpan(*exchange, "authorization");
    auth::Attributes attributes = auth::AttributesOf(exchange->context.user, exchange->context.info);
    const auto decided = authorizer_->TryAuthorize(attributes);
    if (!decided) {
      attributes.cancellation = CancellationOf(*exchange);
      return Ask(std::move(exchange), std::move(attributes), started, span);
    }
    span.End();
    exchange->context.latencies.Add(telemetry::LatencyTrackers::kAuthorization, Clock::Real().Monotonic() - started);
    metrics_.Authorized(ResultOf(*decided), SecondsSince(started));
    if (auto refused = Judge(*exchange, attributes, *decided)) return Immediately(*std::move(refused));
    return next_(std::move(exchange));
  }

 private:
  // The asynchronous path: the authorizer makes a remote call.
  Awaitable<http::Response> Ask(ExchangePtr exchange, auth::Attributes attributes, Clock::SteadyTime started,
                                telemetry::Span span) const {
    const auth::Authorization answer = co_await authorizer_->Authorize(attributes);
    span.End();
    exchange->context.latencies.Add(telemetry::LatencyTrackers::kAuthorization, Clock::Real().Monotonic() - started);
    metrics_.Authorized(ResultOf(answer), SecondsSince(started));
    if (auto refused = Judge(*exchange, attributes, answer)) co_return *std::move(refused);
    co_return co_await next_(exchange);
  }

  const Handler next_;
  const std::shared_ptr<auth::Authorizer> authorizer_;
  RequestMetrics& metrics_;
};

}  // namespace

Handler WithAuthorization(Handler next, std::shared_ptr<auth::Authorizer> authorizer, RequestMetrics& metrics) {
  auto filter = std::make_shared<AuthorizationFilter>(std::move(next), std::move(authorizer), metrics);
  return [filter](ExchangePtr exchange) { return filter->Serve(std::move(exchange)); };
}

namespace {

// Requests that run, and the most that ran at once in the present second.
struct InFlight {
  std::atomic<int> count{0};
  std::atomic<std::int64_t> second{0};
  std::atomic<int> high{0};

  // The high-water mark of the current second. Two threads at the turn of a second may lose one of their values; it is
  // a gauge.
  int High(int now) {
    const auto present =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::Real().Monotonic().time_since_epoch()).count();
    if (second.exchange(present) != present) high = now;
    int known = high;
    while (known < now && !high.compare_exchange_weak(known, now)) {
    }
    return std::max(known, now);
  }
};

class MaxInFlightFilter : public std::enable_shared_from_this<MaxInFlightFilter> {
 public:
  MaxInFlightFilter(Handler next, int non_mutating_max, int mutating_max, RequestMetrics& metrics)
      : next_(std::move(next)), non_mutating_max_(non_mutating_max), mutating_max_(mutating_max), metrics_(metrics) {}

  Awaitable<http::Response> Serve(ExchangePtr exchange) {
    const request::RequestInfo& info = exchange->context.info;
    // Probes must get through when the server is busiest (priority and fairness exempts them upstream).
    const bool probe =
        !info.is_resource_request &&
        (info.path.starts_with("/healthz") || info.path.starts_with("/livez") || info.path.starts_with("/readyz"));
    if (info.IsLongRunning() || probe) co_return co_await next_(exchange);
    const bool reading = info.verb == "get" || info.verb == "list" || info.verb == "watch";
    const int max = reading ? non_mutating_max_ : mutating_max_;
    InFlight& in_flight = reading ? reading_ : mutating_;
    std::atomic<int>& count = in_flight.count;
    if (max <= 0) co_return co_await next_(exchange);
    const bool privileged = exchange->context.user && exchange->context.user->InGroup(request::kSystemMasters);
    const int now = ++count;
    metrics_.InFlight(!reading, in_flight.High(now));
    if (now > max && !privileged) {
      --count;
      http::Response response = PlainError(429, "Too many requests, please try again later.");
      response.headers.Set("Retry-After", "1");
      co_return response;
    }
    // Given back when the handler is done: a client that does not read its answer must not keep others out.
    const Release release([self = shared_from_this(), &count] { --count; });
    co_return co_await next_(exchange);
  }

 private:
  const Handler next_;
  const int non_mutating_max_;
  const int mutating_max_;
  RequestMetrics& metrics_;
  InFlight reading_;
  InFlight mutating_;
};

}  // namespace

Handler WithMaxInFlightLimit(Handler next, int non_mutating_max, int mutating_max, RequestMetrics& metrics) {
  if (non_mutating_max <= 0 && mutating_max <= 0) return next;
  auto filter = std::make_shared<MaxInFlightFilter>(std::move(next), non_mutating_max, mutating_max, metrics);
  return [filter](ExchangePtr exchange) { return filter->Serve(std::move(exchange)); };
}

}  // namespace keelson::endpoints::filters
