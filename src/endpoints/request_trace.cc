#include "endpoints/request_trace.h"

#include "base/strings.h"
#include "endpoints/exchange.h"
#include "endpoints/request_metrics.h"
#include "telemetry/trace.h"

namespace keelson::endpoints {
namespace {

constexpr std::size_t kUserAgentMax = 1024;
constexpr std::chrono::seconds kSerializeThreshold{5};
// The Go types of upstream's writers: of what the API installer has routed, and of everything else.
constexpr std::string_view kRoutedWriter = "*responsewriter.outerWithCloseNotifyFlushAndHijack";
constexpr std::string_view kOtherWriter =
    "struct { httpsnoop.Unwrapper; http.ResponseWriter; http.Flusher; http.CloseNotifier; http.Hijacker }";

std::string ClientAddress(std::string_view remote) {
  std::string_view host = remote.substr(0, remote.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

std::string CutUserAgent(std::string_view agent) {
  if (agent.size() <= kUserAgentMax) return std::string(agent);
  return std::string(agent.substr(0, kUserAgentMax)) + "...TRUNCATED";
}

std::string Protocol(const http::Request& http) {
  return http.http_major == 2 ? "HTTP/2.0" : "HTTP/1." + std::to_string(http.http_minor);
}

enum class Serializer : std::uint8_t { kObject, kStream };

// The identifiers of upstream's serializers, a text in a text.
std::string EncoderName(std::string_view version, const MediaTypeOptions& media, Serializer serializer) {
  std::string inner;
  switch (media.format) {
    case Format::kProtobuf:
      inner = serializer == Serializer::kStream ? "raw-protobuf" : "protobuf";
      break;
    case Format::kCBOR:
      inner = "cbor";
      break;
    default: {
      const bool yaml = media.format == Format::kYAML;
      inner = std::string(R"({\"name\":\"json\",\"pretty\":\")") + (media.pretty && !yaml ? "true" : "false") +
              R"(\",\"strict\":\"false\",\"yaml\":\")" + (yaml ? "true" : "false") + R"(\"})";
    }
  }
  const std::string gv = version.empty() ? "" : R"("encodeGV":")" + std::string(version) + R"(",)";
  return "{" + gv + R"("encoder":")" + inner + R"(","name":"versioning"})";
}

std::string_view StreamMediaType(Format format) {
  if (format == Format::kProtobuf) return "application/vnd.kubernetes.protobuf;stream=watch";
  return format == Format::kCBOR ? "application/cbor-seq" : MediaType(format);
}

std::string_view VerbOf(const Exchange& exchange) {
  const http::Request& http = exchange.http;
  if (exchange.context.info.subresource == "log") return "CONNECT";
  const bool apply = http.method == "PATCH" && http.headers.Get("Content-Type").starts_with("application/apply-patch");
  return CanonicalVerb(exchange.context.info, http.method, apply);
}

std::string VersionOf(const request::RequestInfo& info) {
  return info.api_group.empty() ? info.api_version : info.api_group + "/" + info.api_version;
}

}  // namespace

void RequestTrace::Start(Exchange& exchange, std::string_view operation) {
  request::Context& context = exchange.context;
  if (!context.span.active()) return;
  const request::RequestInfo& info = context.info;
  const http::Request& http = exchange.http;
  context.span = context.span.Start(operation, {{"accept", http.headers.Get("Accept")},
                                                {"audit-id", context.span.audit_id()},
                                                {"client", ClientAddress(http.remote_address)},
                                                {"api-group", info.api_group},
                                                {"api-version", info.api_version},
                                                {"name", info.name},
                                                {"subresource", info.subresource},
                                                {"namespace", info.name_space},
                                                {"protocol", Protocol(http)},
                                                {"resource", info.resource},
                                                {"scope", ScopeOf(info)},
                                                {"url", http.path},
                                                {"user-agent", CutUserAgent(context.user_agent)},
                                                {"verb", VerbOf(exchange)}});
  std::lock_guard lock(mutex_);
  spans_.verb = context.span;
}

void RequestTrace::Step(std::string_view message, std::string_view unit, std::int64_t count) const {
  const telemetry::Span verb = Snapshot().verb;
  if (!verb.recording()) return;
  if (unit.empty()) {
    verb.AddEvent(message);
  } else {
    verb.AddEvent(message, {{unit, count}});
  }
}

void RequestTrace::WriteFailed(std::string_view error, std::int64_t length) const {
  const telemetry::Span verb = Snapshot().verb;
  if (verb.recording()) verb.AddEvent("Write to database call failed", {{"len", length}, {"err", error}});
}

void RequestTrace::AboutToRespond() {
  Step("About to write a response");
  std::lock_guard lock(mutex_);
  spans_.responds = true;
}

void RequestTrace::Serialize(const Exchange& exchange, const MediaTypeOptions& media, std::uint64_t size) const {
  if (!exchange.context.span.active()) return;
  if (media.transform != Transform::kNone) return SerializeAs(exchange, "meta.k8s.io/v1", media, size);
  SerializeAs(exchange, encode_version_.empty() ? VersionOf(exchange.context.info) : encode_version_, media, size);
}

void RequestTrace::SerializeAs(const Exchange& exchange, std::string_view version, const MediaTypeOptions& media,
                               std::uint64_t size) const {
  const telemetry::Span& parent = exchange.context.span;
  if (!parent.active()) return;
  const telemetry::Span span = parent.Start("SerializeObject",
                                            {{"audit-id", parent.audit_id()},
                                             {"method", exchange.http.method},
                                             {"url", exchange.http.path},
                                             {"protocol", Protocol(exchange.http)},
                                             {"mediaType", MediaType(media.format)},
                                             {"encoder", EncoderName(version, media, Serializer::kObject)}},
                                            kSerializeThreshold);
  // An unauthenticated request is answered before upstream's tracing wraps the writer.
  const bool plain = exchange.routed || !exchange.context.user;
  span.AddEvent("About to start writing response", {{"writer", plain ? kRoutedWriter : kOtherWriter}, {"size", size}});
  std::lock_guard lock(mutex_);
  spans_.answer = span;
}

std::function<void()> RequestTrace::ServeWatch(const Exchange& exchange, const MediaTypeOptions& media) {
  const telemetry::Span& parent = exchange.context.span;
  if (!parent.active()) return nullptr;
  const std::string version = encode_version_.empty() ? VersionOf(exchange.context.info) : encode_version_;
  const telemetry::Span span =
      parent.Start("WatchServer.HandleHTTP", {{"audit-id", parent.audit_id()},
                                              {"method", exchange.http.method},
                                              {"url", exchange.http.path},
                                              {"protocol", Protocol(exchange.http)},
                                              {"mediaType", StreamMediaType(media.format)},
                                              {"encoder", EncoderName(version, media, Serializer::kStream)}});
  span.AddEvent("About to start writing response");
  std::lock_guard lock(mutex_);
  spans_.answer = span;
  spans_.streams = true;
  const telemetry::Span verb = spans_.verb;
  return [trace = exchange.context.trace, span, verb] {
    span.AddEvent("Writing initial events done");
    span.End();
    verb.End();
    trace->LogIfLong(verb);
  };
}

void RequestTrace::ServedBy(telemetry::Span server) {
  std::lock_guard lock(mutex_);
  spans_.server = server;
}

std::function<void(std::uint64_t bytes, bool complete)> RequestTrace::Finish(const Exchange& exchange,
                                                                             int status) const {
  const Spans spans = Snapshot();
  if (!spans.server.recording() && !spans.verb.recording() && !spans.answer.recording()) return nullptr;
  if (spans.streams && !spans.server.recording()) return nullptr;  // a watch keeps nothing for the log
  if (body_bytes_ > 0) spans.server.SetAttribute({"http.request.body.size", body_bytes_});
  spans.server.SetAttribute({"http.response.status_code", status});
  if (status >= 500) spans.server.SetError("");
  return [trace = exchange.context.trace, spans](std::uint64_t bytes, bool complete) {
    if (!spans.streams && complete) spans.answer.AddEvent("Write call succeeded", {{"size", bytes}});
    spans.answer.End();
    if (spans.responds) spans.verb.AddEvent("Writing http response done");
    spans.verb.End();
    if (bytes > 0) spans.server.SetAttribute({"http.response.body.size", bytes});
    spans.server.End();
    trace->LogIfLong(spans.verb.recording() ? spans.verb : spans.answer);
  };
}

}  // namespace keelson::endpoints
