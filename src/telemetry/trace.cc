#include "telemetry/trace.h"

#include <algorithm>
#include <utility>

namespace keelson::telemetry {
namespace {

constexpr std::size_t kAuditIDMax = 64;

template <class ID>
ID NewID(base::Random& random) {
  ID id{};
  while (id == ID{}) random.Fill(id);
  return id;
}

Trace::Options Completed(Trace::Options options) {
  if (options.audit_id.size() > kAuditIDMax) options.audit_id.resize(kAuditIDMax);
  return options;
}

}  // namespace

Trace::Trace(Options options)
    : options_(Completed(std::move(options))),
      start_(options_.clock->Now()),
      start_steady_(options_.clock->Monotonic()) {
  if (options_.incoming.span) current_ = *options_.incoming.span;
}

Trace::~Trace() {
  if (!options_.sink) return;
  const auto now = Elapsed();
  std::erase_if(spans_, [](const SpanData& span) { return !span.context.sampled; });
  if (spans_.empty()) return;
  for (SpanData& span : spans_) {
    if (!span.ended) span.end = now;
  }
  options_.sink->Export({.start = start_, .spans = std::move(spans_)});
}

std::chrono::nanoseconds Trace::Elapsed() const { return options_.clock->Monotonic() - start_steady_; }

SpanID Trace::NewSpanID() { return NewID<SpanID>(*options_.random); }
TraceID Trace::NewTraceID() { return NewID<TraceID>(*options_.random); }

// OpenTelemetry's TraceIDRatioBased: the same answer for the same trace on every server.
bool Trace::ShouldSample(const TraceID& id) const {
  if (options_.sampling_per_million <= 0) return false;
  if (options_.sampling_per_million >= 1'000'000) return true;
  std::uint64_t number = 0;
  for (std::size_t i = 8; i < id.size(); ++i) number = number << 8 | id[i];
  const double bound = static_cast<double>(options_.sampling_per_million) / 1e6 * static_cast<double>(1ULL << 63);
  return (number >> 1) < static_cast<std::uint64_t>(bound);
}

Span Trace::Add(SpanData span, std::uint32_t parent) {
  span.parent = parent;
  std::lock_guard lock(mutex_);
  if (spans_.size() == kSpansMax) {
    ++dropped_;
    return Unrecorded();
  }
  if (spans_.empty()) spans_.reserve(16);
  spans_.push_back(std::move(span));
  return At(static_cast<std::uint32_t>(spans_.size() - 1));
}

Span Trace::StartRoot(Instrumentation instrumentation, std::string_view name) {
  if (!options_.sink) return Unrecorded();
  SpanContext context{.trace_id = NewTraceID(), .span_id = NewSpanID()};
  context.sampled = ShouldSample(context.trace_id);
  {
    std::lock_guard lock(mutex_);
    current_ = context;
  }
  if (!context.sampled) return Unrecorded();
  SpanData span{.name = std::string(name), .instrumentation = instrumentation, .context = std::move(context)};
  span.start = Elapsed();
  return Add(std::move(span), Span::kNotRecorded);
}

Span Trace::StartServer(Server server) {
  if (!options_.sink) return Unrecorded();
  SpanData span{.name = std::move(server.name), .instrumentation = Instrumentation::kHTTP, .kind = SpanKind::kServer};
  span.start = server.start - start_steady_;
  const std::optional<SpanContext>& remote = options_.incoming.span;
  std::uint32_t parent = Span::kNotRecorded;
  if (server.trusted && remote) {
    span.context = *remote;
    span.parent_id = remote->span_id;
    span.parent_remote = true;
  } else if (server.trusted) {
    std::lock_guard lock(mutex_);
    span.context = current_;  // of the span before, recorded or not
    if (server.before.recording()) {
      parent = server.before.index_;
      span.parent_id = span.context.span_id;
    }
  } else {
    span.context.trace_id = NewTraceID();
    span.context.sampled = ShouldSample(span.context.trace_id);
    if (remote) span.links.push_back(*remote);
  }
  span.context.span_id = NewSpanID();
  {
    std::lock_guard lock(mutex_);
    current_ = span.context;
  }
  if (!span.context.sampled) return Unrecorded();
  return Add(std::move(span), parent);
}

Span Trace::StartChild(std::uint32_t parent, SpanData span) {
  span.start = Elapsed();
  if (parent != Span::kNotRecorded) {
    std::lock_guard lock(mutex_);
    const SpanContext& of = spans_[parent].context;
    span.context = of;
    span.parent_id = of.span_id;
  }
  const bool logged = options_.log_slow && span.instrumentation == Instrumentation::kComponent;
  if (!span.context.sampled && !logged) return Unrecorded();
  if (span.context.sampled) span.context.span_id = NewSpanID();
  return Add(std::move(span), parent);
}

std::vector<std::pair<std::string_view, std::string>> Trace::Propagation(std::uint32_t index) {
  SpanContext context;
  {
    std::lock_guard lock(mutex_);
    context = current_;
    if (index != Span::kNotRecorded && spans_[index].context.sampled) context = spans_[index].context;
  }
  // Spans that are not recorded have distinct IDs, too.
  if (options_.sink && !context.sampled) context.span_id = NewSpanID();
  std::vector<std::pair<std::string_view, std::string>> headers;
  if (context.valid()) {
    headers.emplace_back(kTraceparent, FormatTraceparent(context));
    if (!context.trace_state.empty()) headers.emplace_back(kTracestate, context.trace_state);
  }
  if (!options_.incoming.baggage.empty()) headers.emplace_back(kBaggage, options_.incoming.baggage);
  return headers;
}

std::vector<SpanData> Trace::spans() const {
  std::lock_guard lock(mutex_);
  return spans_;
}

}  // namespace keelson::telemetry
