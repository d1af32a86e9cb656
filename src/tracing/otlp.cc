#include "tracing/otlp.h"

#include <cstdint>

namespace keelson::tracing {
namespace {

using telemetry::Attribute;
using telemetry::Instrumentation;
using telemetry::SpanBatch;
using telemetry::SpanContext;
using telemetry::SpanData;
using telemetry::SpanEvent;

constexpr std::uint32_t kHasIsRemote = 0x100;  // SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
constexpr std::uint32_t kIsRemote = 0x200;     // SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
constexpr std::uint64_t kStatusError = 2;

// Protobuf's wire format.
class Message {
 public:
  void Varint(int field, std::uint64_t value) {
    Tag(field, 0);
    Raw(value);
  }
  void Fixed64(int field, std::uint64_t value) {
    Tag(field, 1);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void Fixed32(int field, std::uint32_t value) {
    Tag(field, 5);
    for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void Bytes(int field, std::string_view value) {
    Tag(field, 2);
    Raw(value.size());
    bytes_ += value;
  }
  template <std::size_t N>
  void Bytes(int field, const std::array<std::uint8_t, N>& value) {
    Bytes(field, std::string_view(reinterpret_cast<const char*>(value.data()), N));
  }
  void Text(int field, std::string_view value) {  // the empty text is the default, which is not written
    if (!value.empty()) Bytes(field, value);
  }
  void Nested(int field, const Message& value) { Bytes(field, value.bytes_); }
  void Append(const Message& fields) { bytes_ += fields.bytes_; }  // of the same message
  std::string Take() { return std::move(bytes_); }
  bool empty() const { return bytes_.empty(); }

 private:
  void Tag(int field, int type) { Raw(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type)); }
  void Raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message KeyValue(const Attribute& attribute) {
  Message value;  // AnyValue: a oneof, whose empty text is written
  if (attribute.is_number) {
    value.Varint(3, static_cast<std::uint64_t>(attribute.number));
  } else {
    value.Bytes(1, attribute.text);
  }
  Message pair;
  pair.Text(1, attribute.key);
  pair.Nested(2, value);
  return pair;
}

std::uint64_t UnixNanos(const SpanBatch& batch, std::chrono::nanoseconds offset) {
  const auto start = std::chrono::duration_cast<std::chrono::nanoseconds>(batch.start.time_since_epoch());
  return static_cast<std::uint64_t>((start + offset).count());
}

Message Encode(const SpanBatch& batch, const SpanEvent& event) {
  Message message;
  message.Fixed64(1, UnixNanos(batch, event.at));
  message.Text(2, event.name);
  for (const Attribute& attribute : event.attributes) message.Nested(3, KeyValue(attribute));
  return message;
}

Message EncodeLink(const SpanContext& link) {
  Message message;
  message.Bytes(1, link.trace_id);
  message.Bytes(2, link.span_id);
  message.Text(3, link.trace_state);
  message.Fixed32(6, kHasIsRemote | kIsRemote | (link.sampled ? 1 : 0));
  return message;
}

Message Encode(const SpanBatch& batch, const SpanData& span) {
  Message message;
  message.Bytes(1, span.context.trace_id);
  message.Bytes(2, span.context.span_id);
  message.Text(3, span.context.trace_state);
  if (span.parent_id != telemetry::SpanID{}) message.Bytes(4, span.parent_id);
  message.Text(5, span.name);
  message.Varint(6, static_cast<std::uint64_t>(span.kind));
  message.Fixed64(7, UnixNanos(batch, span.start));
  message.Fixed64(8, UnixNanos(batch, span.end));
  for (const Attribute& attribute : span.attributes) message.Nested(9, KeyValue(attribute));
  for (const SpanEvent& event : span.events) message.Nested(11, Encode(batch, event));
  if (span.dropped_events > 0) message.Varint(12, span.dropped_events);
  for (const SpanContext& link : span.links) message.Nested(13, EncodeLink(link));
  Message status;
  if (span.error) {
    status.Text(2, span.error_message);
    status.Varint(3, kStatusError);
  }
  message.Nested(15, status);
  message.Fixed32(16, kHasIsRemote | (span.parent_remote ? kIsRemote : 0) | (span.context.sampled ? 1 : 0));
  return message;
}

}  // namespace

std::string_view ScopeName(Instrumentation instrumentation) {
  switch (instrumentation) {
    case Instrumentation::kFilter:
      return "k8s.op/apiserver/pkg/endpoints/filterlatency";
    case Instrumentation::kHTTP:
      return "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp";
    case Instrumentation::kGRPC:
      return "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc";
    case Instrumentation::kComponent:
      break;
  }
  return "k8s.io/component-base/tracing";
}

std::string EncodeExportRequest(const Resource& resource, std::span<const SpanBatch> batches) {
  constexpr Instrumentation kScopes[] = {Instrumentation::kComponent, Instrumentation::kFilter, Instrumentation::kHTTP,
                                         Instrumentation::kGRPC};
  Message about;
  about.Nested(1, KeyValue({"service.instance.id", resource.service_instance_id}));
  about.Nested(1, KeyValue({"service.name", resource.service_name}));
  Message resource_spans;
  resource_spans.Nested(1, about);
  for (const Instrumentation instrumentation : kScopes) {
    Message spans;
    for (const SpanBatch& batch : batches) {
      for (const SpanData& span : batch.spans) {
        if (span.instrumentation == instrumentation) spans.Nested(2, Encode(batch, span));
      }
    }
    if (spans.empty()) continue;
    Message scope;
    scope.Text(1, ScopeName(instrumentation));
    Message scope_spans;
    scope_spans.Nested(1, scope);
    scope_spans.Append(spans);
    resource_spans.Nested(2, scope_spans);
  }
  Message request;
  request.Nested(1, resource_spans);
  return request.Take();
}

}  // namespace keelson::tracing
