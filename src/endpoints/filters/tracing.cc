#include "endpoints/filters/tracing.h"

#include "base/strings.h"
#include "telemetry/log.h"
#include "telemetry/trace.h"

namespace keelson::endpoints::filters {
namespace {

using telemetry::Attribute;

bool IsTrusted(const request::User& user) {
  return user.InGroup("system:masters") || user.InGroup("system:monitoring");
}

// "GET /api/v1/namespaces/{:namespace}/pods/{:name}"; the method alone for non-resource requests.
std::string SpanName(const std::string& method, const request::RequestInfo& info) {
  if (!info.is_resource_request) return method;
  std::string name = method + " /" + info.api_prefix;
  if (!info.api_group.empty()) name += "/" + info.api_group;
  name += "/" + info.api_version;
  if (!info.name_space.empty()) name += "/namespaces/{:namespace}";
  name += "/" + info.resource;
  if (!info.name.empty()) name += "/{:name}";
  if (!info.subresource.empty()) name += "/" + info.subresource;
  return name;
}

struct HostPort {
  std::string_view host, port;
};

HostPort Split(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  const std::size_t bracket = address.rfind(']');
  HostPort parts{address, {}};
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    parts = {address.substr(0, colon), address.substr(colon + 1)};
  }
  if (parts.host.starts_with('[') && parts.host.ends_with(']'))
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

void SetPort(const telemetry::Span& span, std::string_view key, std::string_view port) {
  if (const auto number = base::ParseUint64(port)) span.SetAttribute({key, *number});
}

void Describe(const telemetry::Span& span, const http::Request& http) {
  span.SetAttribute({"audit-id", span.audit_id()});
  span.SetAttribute({"http.target", http.target});
  span.SetAttribute({"http.request.method", http.method});
  span.SetAttribute({"url.scheme", http.tls ? "https" : "http"});
  span.SetAttribute({"url.path", http.path});
  const HostPort server = Split(http.host);
  span.SetAttribute({"server.address", server.host});
  SetPort(span, "server.port", server.port);
  const HostPort peer = Split(http.remote_address);
  std::string_view client = http.headers.Get("X-Forwarded-For");
  client = base::Trim(client.substr(0, client.find(',')));
  span.SetAttribute({"client.address", client.empty() ? peer.host : client});
  span.SetAttribute({"network.peer.address", peer.host});
  SetPort(span, "network.peer.port", peer.port);
  span.SetAttribute(
      {"network.protocol.version", http.http_major == 2 ? std::string("2") : "1." + std::to_string(http.http_minor)});
  const std::string_view agent = http.headers.Get("User-Agent");
  if (!agent.empty()) span.SetAttribute({"user_agent.original", agent});
}

}  // namespace

void BeginTrace(Exchange& exchange, const TracingOptions& options) {
  const http::Headers& headers = exchange.http.headers;
  const std::string_view traceparent = headers.Get(telemetry::kTraceparent);
  const std::string_view baggage = headers.Get(telemetry::kBaggage);
  const bool log_slow = log::V(2).enabled();
  if (!options.sink && !log_slow && traceparent.empty() && baggage.empty()) return;
  telemetry::Trace::Options of{.sink = options.sink,
                               .sampling_per_million = options.sampling_per_million,
                               .log_slow = log_slow,
                               .audit_id = exchange.context.audit_id};
  of.incoming = telemetry::ParseContext(traceparent, headers.Get(telemetry::kTracestate), baggage);
  exchange.context.trace = std::make_shared<telemetry::Trace>(std::move(of));
  exchange.context.span = exchange.context.trace->Unrecorded();
}

telemetry::Span StartFilterSpan(Exchange& exchange, std::string_view name) {
  request::Context& context = exchange.context;
  if (!context.span.recording()) return {};
  context.span = context.span.StartAs(telemetry::Instrumentation::kFilter, telemetry::SpanKind::kInternal, name);
  return context.span;
}

Handler WithTracing(Handler next) {
  return [next = std::move(next)](ExchangePtr exchange) {
    request::Context& context = exchange->context;
    if (context.trace) {
      telemetry::Trace::Server server{
          .trusted = IsTrusted(*context.user), .before = context.span, .start = context.received};
      server.name = SpanName(exchange->http.method, context.info);
      context.span = context.trace->StartServer(std::move(server));
      if (context.span.recording()) {
        Describe(context.span, exchange->http);
        exchange->trace.ServedBy(context.span);
      }
    }
    return next(std::move(exchange));
  };
}

}  // namespace keelson::endpoints::filters
