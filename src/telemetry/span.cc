#include "telemetry/span.h"

#include "telemetry/trace.h"

namespace keelson::telemetry {

Span Span::Start(std::string_view name, std::initializer_list<Attribute> attributes,
                 std::chrono::nanoseconds log_threshold) const {
  if (trace_ == nullptr) return {};
  SpanData span{.name = std::string(name)};
  span.log_threshold = log_threshold;
  span.attributes = attributes;
  return trace_->StartChild(index_, std::move(span));
}

Span Span::StartAs(Instrumentation instrumentation, SpanKind kind, std::string_view name,
                   std::initializer_list<Attribute> attributes) const {
  if (trace_ == nullptr) return {};
  SpanData span{.name = std::string(name), .instrumentation = instrumentation, .kind = kind};
  span.attributes = attributes;
  return trace_->StartChild(index_, std::move(span));
}

void Span::AddEvent(std::string_view name, std::initializer_list<Attribute> attributes) const {
  if (!recording()) return;
  const auto at = trace_->Elapsed();
  std::lock_guard lock(trace_->mutex_);
  SpanData& span = trace_->spans_[index_];
  if (span.ended) return;
  if (span.events.size() == Trace::kEventsMax) {
    ++span.dropped_events;
    return;
  }
  span.events.push_back({name, at, attributes});
}

void Span::SetAttribute(Attribute attribute) const {
  if (!recording()) return;
  std::lock_guard lock(trace_->mutex_);
  SpanData& span = trace_->spans_[index_];
  if (!span.ended) span.attributes.push_back(std::move(attribute));
}

void Span::SetError(std::string_view message) const {
  if (!recording()) return;
  std::lock_guard lock(trace_->mutex_);
  SpanData& span = trace_->spans_[index_];
  span.error = true;
  span.error_message = message;
}

void Span::End() const {
  if (!recording()) return;
  const auto at = trace_->Elapsed();
  std::lock_guard lock(trace_->mutex_);
  SpanData& span = trace_->spans_[index_];
  if (std::exchange(span.ended, true)) return;
  span.end = at;
}

std::string_view Span::audit_id() const {
  return trace_ == nullptr ? std::string_view() : std::string_view(trace_->options_.audit_id);
}

std::vector<std::pair<std::string_view, std::string>> Span::Propagation() const {
  if (trace_ == nullptr) return {};
  return trace_->Propagation(index_);
}

void LatencyTrackers::AtLeast(Layer layer, std::chrono::nanoseconds took) {
  std::int64_t known = spent_[layer].load(std::memory_order_relaxed);
  while (known < took.count() && !spent_[layer].compare_exchange_weak(known, took.count(), std::memory_order_relaxed)) {
  }
}

std::string_view LatencyTrackers::Name(Layer layer) {
  static constexpr std::string_view kNames[] = {"mutating-webhook",
                                                "validating-webhook",
                                                "apf-queue-wait",
                                                "etcd",
                                                "transform-response-object",
                                                "serialize-response-object",
                                                "response-write",
                                                "decode-response-object",
                                                "authentication",
                                                "authorization",
                                                "impersonation"};
  static_assert(std::size(kNames) == kLayers);
  return kNames[layer];
}

}  // namespace keelson::telemetry
