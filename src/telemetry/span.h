// Handles of spans, passed to lower layers to identify the request.
//   const ScopedSpan span = parent.Start("cacher.Get", {{"key", key}});
//   ...
//   span->AddEvent("About to Get from underlying storage");
// A null handle, or one of a trace that is not recorded, costs a test of a pointer; texts of attributes should then not
// be made either: check recording().
// Thread safety: all members from any thread. Ownership: a handle must not outlive its Trace (telemetry/trace.h), which
// the request holds until its response has been written.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::telemetry {

class Trace;  // telemetry/trace.h

struct Attribute {
  Attribute(std::string_view name, std::string value) : key(name), text(std::move(value)) {}
  Attribute(std::string_view name, std::string_view value) : key(name), text(value) {}
  Attribute(std::string_view name, const char* value) : key(name), text(value) {}
  template <std::integral T>
  Attribute(std::string_view name, T value) : key(name), number(static_cast<std::int64_t>(value)), is_number(true) {}

  std::string_view key;  // a literal
  std::string text;
  std::int64_t number = 0;
  bool is_number = false;
};

// The upstream library that makes this span there (its instrumentation scope).
enum class Instrumentation : std::uint8_t { kComponent, kFilter, kHTTP, kGRPC };
enum class SpanKind : std::uint8_t { kInternal = 1, kServer = 2, kClient = 3 };  // OTLP's numbers

class Span {
 public:
  // Spans that took as long are written to the log of slow requests.
  static constexpr std::chrono::milliseconds kLogThreshold{500};

  Span() = default;

  // Whether children of it may be recorded: false where making attributes would be in vain.
  bool active() const { return trace_ != nullptr && (index_ != kNotRecorded || logged_); }
  bool recording() const { return trace_ != nullptr && index_ != kNotRecorded; }
  // A child. Spans of kComponent also appear in the log of slow requests; others are recorded for export only. A child
  // that is not recorded still passes the trace context on.
  Span Start(std::string_view name, std::initializer_list<Attribute> attributes = {},
             std::chrono::nanoseconds log_threshold = kLogThreshold) const;
  Span StartAs(Instrumentation instrumentation, SpanKind kind, std::string_view name,
               std::initializer_list<Attribute> attributes = {}) const;
  void AddEvent(std::string_view name, std::initializer_list<Attribute> attributes = {}) const;  // `name`: a literal
  void SetAttribute(Attribute attribute) const;
  void SetError(std::string_view message) const;  // status Error
  void End() const;                               // The first End() counts.

  std::string_view audit_id() const;  // of the request, at most 64 characters; "" without a trace
  // Headers (or gRPC metadata) that carry the context to another server: traceparent, tracestate, baggage.
  std::vector<std::pair<std::string_view, std::string>> Propagation() const;

 private:
  friend class Trace;
  static constexpr std::uint32_t kNotRecorded = UINT32_MAX;
  Span(Trace* trace, std::uint32_t index, bool logged) : trace_(trace), index_(index), logged_(logged) {}

  Trace* trace_ = nullptr;
  std::uint32_t index_ = kNotRecorded;
  bool logged_ = false;  // spans of kComponent are recorded for the log
};

// Ends its span with the scope.
class ScopedSpan {
 public:
  explicit(false) ScopedSpan(Span span) : span_(span) {}
  ~ScopedSpan() { span_.End(); }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;
  const Span& operator*() const { return span_; }
  const Span* operator->() const { return &span_; }

 private:
  const Span span_;
};

// Time that one request spent in each layer (upstream's LatencyTrackers). Thread safety: all members from any thread.
class LatencyTrackers {
 public:
  enum Layer : std::uint8_t {
    kMutatingWebhook,
    kValidatingWebhook,  // calls run at once: the longest counts
    kAPFQueueWait,
    kEtcd,
    kTransformResponseObject,
    kSerializeResponseObject,
    kResponseWrite,
    kDecodeResponseObject,
    kAuthentication,
    kAuthorization,
    kImpersonation,
    kLayers,
  };
  void Add(Layer layer, std::chrono::nanoseconds took) {
    spent_[layer].fetch_add(took.count(), std::memory_order_relaxed);
  }
  void AtLeast(Layer layer, std::chrono::nanoseconds took);  // the longest of several at once
  std::chrono::nanoseconds spent(Layer layer) const {
    return std::chrono::nanoseconds(spent_[layer].load(std::memory_order_relaxed));
  }
  static std::string_view Name(Layer layer);  // "etcd", "transform-response-object"

 private:
  std::atomic<std::int64_t> spent_[kLayers] = {};
};

// Adds the time of its scope.
class LatencyScope {
 public:
  LatencyScope(LatencyTrackers* trackers, LatencyTrackers::Layer layer)
      : trackers_(trackers), layer_(layer), begun_(std::chrono::steady_clock::now()) {}
  ~LatencyScope() {
    if (trackers_ != nullptr) trackers_->Add(layer_, std::chrono::steady_clock::now() - begun_);
  }
  LatencyScope(const LatencyScope&) = delete;
  LatencyScope& operator=(const LatencyScope&) = delete;

 private:
  LatencyTrackers* const trackers_;
  const LatencyTrackers::Layer layer_;
  const std::chrono::steady_clock::time_point begun_;
};

// The request that a lower layer works for. By default: none.
struct Caller {
  Span span;
  LatencyTrackers* latencies = nullptr;  // outlives the call

  Caller Under(const Span& child) const { return {child, latencies}; }
};

}  // namespace keelson::telemetry
