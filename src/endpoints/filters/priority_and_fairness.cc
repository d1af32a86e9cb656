#include "endpoints/filters/priority_and_fairness.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "base/strings.h"
#include "endpoints/filters/tracing.h"
#include "endpoints/responses.h"
#include "http/event_source.h"

namespace keelson::endpoints::filters {
namespace {

using flowcontrol::Classification;
using flowcontrol::MemoryBudget;
using flowcontrol::Seat;
using flowcontrol::WorkEstimate;
using flowcontrol::WorkKind;

constexpr std::chrono::nanoseconds kWaitMax = std::chrono::minutes(1);

// A watch's body: holds the seats until all initial events are out (the source has nothing to send for the first time),
// and the watch's registration until it ends.
class WatchSource final : public http::EventSource {
 public:
  WatchSource(std::unique_ptr<http::BodySource> inner, Seat seat, MemoryBudget::Reservation memory,
              flowcontrol::WatchTracker::Registration watch)
      : inner_(std::move(inner)), seat_(std::move(seat)), memory_(std::move(memory)), watch_(std::move(watch)) {}

  void Start(std::function<void()> wake) override { inner_->Start(std::move(wake)); }
  State Pull(std::size_t budget, std::vector<http::SharedBytes>& out) override {
    const State state = inner_->Pull(budget, out);
    if (state != State::kMore) {
      seat_.Release();
      memory_.Release();
    }
    return state;
  }
  const http::Headers* Trailers() override { return inner_->Trailers(); }
  bool may_wait() const override { return http::MayWait(*inner_); }

 private:
  std::unique_ptr<http::BodySource> inner_;
  Seat seat_;
  MemoryBudget::Reservation memory_;
  flowcontrol::WatchTracker::Registration watch_;
};

class Filter {
 public:
  Filter(Handler next, PriorityAndFairness options, RequestMetrics& metrics)
      : next_(std::move(next)), options_(std::move(options)), metrics_(metrics) {}

  Awaitable<http::Response> Serve(ExchangePtr exchange);

 private:
  WorkEstimate Estimate(const Exchange& exchange, const Classification& classification) const;
  base::Clock::SteadyTime WaitUntil(const request::Context& context) const;
  std::optional<MemoryBudget::Reservation> ReserveMemory(const Exchange& exchange) const;
  http::Response Rejected(const Exchange& exchange, const Classification& classification);
  static void SetHeaders(const Classification& classification, http::Response& response);
  void NoteExecuting(bool mutating, int delta);

  const Handler next_;
  const PriorityAndFairness options_;
  RequestMetrics& metrics_;
  std::atomic<int> executing_[2] = {0, 0};  // read-only, mutating
};

Awaitable<http::Response> Filter::Serve(ExchangePtr exchange) {
  const request::RequestInfo& info = exchange->context.info;
  const bool watch = info.is_resource_request && info.verb == "watch";
  const telemetry::ScopedSpan span = StartFilterSpan(*exchange, "priorityandfairness");
  if (!exchange->context.user || (info.IsLongRunning() && !watch)) {
    span->End();
    co_return co_await next_(exchange);
  }
  const Classification classification = options_.controller->Classify(info, *exchange->context.user);
  auto memory = ReserveMemory(*exchange);
  if (!memory) co_return Rejected(*exchange, classification);
  const WorkEstimate work = Estimate(*exchange, classification);
  options_.controller->ObserveEstimate(classification, work);
  const flowcontrol::Controller::Request request{
      .info = &info,
      .user = &*exchange->context.user,
      .work = work,
      .type = watch ? flowcontrol::ExecutionType::kWatch : flowcontrol::ExecutionType::kRegular};
  auto acquired = options_.controller->Start(classification, request);
  if (acquired.ok() && !acquired->executing()) {
    const auto waited_from = base::Clock::Real().Monotonic();
    acquired = co_await options_.controller->Wait(
        *std::move(acquired), {.until = WaitUntil(exchange->context), .on_close = exchange->http.on_close});
    exchange->context.latencies.Add(telemetry::LatencyTrackers::kAPFQueueWait,
                                    base::Clock::Real().Monotonic() - waited_from);
  } else if (acquired.ok()) {
    exchange->context.latencies.Add(telemetry::LatencyTrackers::kAPFQueueWait, acquired->waited());
  }
  span->End();
  if (!acquired.ok()) co_return Rejected(*exchange, classification);
  Seat seat = *std::move(acquired);
  auto registration = watch ? options_.controller->watches().Register(info) : flowcontrol::WatchTracker::Registration();
  const bool mutating = flowcontrol::IsMutating(info);
  NoteExecuting(mutating, 1);
  http::Response response = co_await next_(exchange);
  NoteExecuting(mutating, -1);
  if (response.status == 101) co_return response;  // a WebSocket handshake takes no other headers
  SetHeaders(classification, response);
  auto* source = std::get_if<std::unique_ptr<http::BodySource>>(&response.body);
  if (source == nullptr || *source == nullptr) co_return response;  // the seats go back with this frame
  // A body that is made while it is sent (a LIST, a watch) holds its seats meanwhile.
  *source =
      std::make_unique<WatchSource>(std::move(*source), std::move(seat), *std::move(memory), std::move(registration));
  co_return response;
}

WorkEstimate Filter::Estimate(const Exchange& exchange, const Classification& classification) const {
  const request::RequestInfo& info = exchange.context.info;
  switch (flowcontrol::WorkKindOf(info)) {
    case WorkKind::kList: {
      const auto stats = options_.stats ? options_.stats(info.api_group, info.resource) : std::nullopt;
      return flowcontrol::EstimateList(info, exchange.http.raw_query, stats, classification.level_max_seats(),
                                       flowcontrol::ConsistentReads::kFromCache);
    }
    case WorkKind::kMutating: {
      const int watchers = options_.controller->watches().InterestedWatchers(info);
      options_.controller->ObserveWatchers(classification, watchers);
      return flowcontrol::EstimateMutating(info, watchers, classification.level_max_seats());
    }
    case WorkKind::kSimple:
      break;
  }
  return {};
}

// Probes and other non-resource requests are always served: they report whether the server is alive.
std::optional<MemoryBudget::Reservation> Filter::ReserveMemory(const Exchange& exchange) const {
  const request::RequestInfo& info = exchange.context.info;
  if (!options_.memory || !info.is_resource_request) return MemoryBudget::Reservation();
  const auto stats = options_.stats ? options_.stats(info.api_group, info.resource) : std::nullopt;
  const auto body = base::ParseInt64(exchange.http.headers.Get("Content-Length")).value_or(0);
  return options_.memory->Reserve(flowcontrol::EstimateResponseBytes(info, exchange.http.raw_query, stats, body));
}

// A quarter of the time that the request has, counted from its arrival.
base::Clock::SteadyTime Filter::WaitUntil(const request::Context& context) const {
  std::chrono::nanoseconds limit = options_.wait_limit;
  if (context.deadline) limit = std::chrono::nanoseconds(*context.deadline - context.received) / 4;
  limit = std::min(limit, kWaitMax);
  return context.received + std::chrono::duration_cast<base::Clock::SteadyTime::duration>(limit);
}

http::Response Filter::Rejected(const Exchange& exchange, const Classification& classification) {
  request::RequestInfo info = exchange.context.info;
  metrics_.ForgetLabels(info);  // whether they name a resource is not known before routing
  metrics_.RequestTerminated(info, exchange.http.method, 429);
  http::Response response = PlainError(429, "Too many requests, please try again later.");
  response.headers.Set("Retry-After", std::to_string(options_.controller->RecordDropped(classification)));
  SetHeaders(classification, response);
  return response;
}

void Filter::SetHeaders(const Classification& classification, http::Response& response) {
  response.headers.Set("X-Kubernetes-PF-FlowSchema-UID", classification.flow_schema_uid());
  response.headers.Set("X-Kubernetes-PF-PriorityLevel-UID", classification.priority_level_uid());
}

void Filter::NoteExecuting(bool mutating, int delta) {
  const int now = executing_[mutating ? 1 : 0].fetch_add(delta, std::memory_order_relaxed) + delta;
  metrics_.InFlight(mutating, now);
}

}  // namespace

Handler WithPriorityAndFairness(Handler next, PriorityAndFairness options, RequestMetrics& metrics) {
  auto filter = std::make_shared<Filter>(std::move(next), std::move(options), metrics);
  return [filter](ExchangePtr exchange) { return filter->Serve(std::move(exchange)); };
}

}  // namespace keelson::endpoints::filters
