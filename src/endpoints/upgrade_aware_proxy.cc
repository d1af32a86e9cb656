#include "endpoints/upgrade_aware_proxy.h"

#include <boost/asio/this_coro.hpp>

#include "base/strings.h"
#include "base/url.h"
#include "endpoints/call_cancellation.h"
#include "endpoints/responses.h"
#include "http/gunzip_reader.h"
#include "http/websocket.h"
#include "net/address.h"
#include "proxy/body_bridge.h"
#include "proxy/gzip.h"
#include "proxy/html_rewrite.h"

namespace keelson::endpoints {
namespace {

constexpr std::string_view kHopHeaders[] = {
    "Connection", "Proxy-Connection",  "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te",
    "Trailer",    "Transfer-Encoding", "Upgrade"};
constexpr std::string_view kCORSHeaders[] = {"Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
                                             "Access-Control-Allow-Methods", "Access-Control-Allow-Origin"};
constexpr std::size_t kPageBytesMax = 16 * 1024 * 1024;  // larger pages pass with their links as they are
constexpr std::size_t kMessageBytesMax = 32 * 1024 * 1024;
constexpr std::string_view kTunnelPrefix = "SPDY/3.1+";

void RemoveHopHeaders(http::Headers& headers) {
  std::vector<std::string> named;
  for (const std::string_view list : headers.Values("Connection")) {
    for (const std::string_view name : base::Split(list, ',')) named.emplace_back(base::Trim(name));
  }
  for (const std::string& name : named) headers.Remove(name);
  for (const std::string_view name : kHopHeaders) headers.Remove(name);
}

void AppendForwardedFor(http::Headers& headers, const http::Request& request) {
  const auto peer = net::SplitHostPort(request.remote_address);
  if (!peer) return;
  std::vector<std::string> chain;
  for (const std::string_view value : headers.Values("X-Forwarded-For")) chain.emplace_back(value);
  chain.push_back(peer->host);
  headers.Set("X-Forwarded-For", base::Join(chain, ", "));
}

http::Response PlainFailure(const Exchange& exchange, std::string_view message) {
  return StatusResponse(exchange, meta::NewPlainError(message));
}

http::Response Failure(const ProxyOptions& options, const Exchange& exchange, std::string_view message) {
  return options.aggregated ? PlainError(503, message) : PlainFailure(exchange, message);
}

// The answer of a backend as it is, on a connection that ends with it.
Awaitable<http::Response> PassOn(http::ClientResponse answer) {
  http::Response response;
  response.status = answer.status;
  response.headers = std::move(answer.headers);
  RemoveHopHeaders(response.headers);
  response.body = proxy::NewBridge(co_await asio::this_coro::executor, std::move(answer.body));
  co_return response;
}

http::ClientRequest UpgradeRequest(const ProxyOptions& options, const Exchange& exchange) {
  http::ClientRequest request;
  request.method = exchange.http.method;
  request.headers = exchange.http.headers;
  request.headers.Remove("Content-Length");
  request.headers.Set("Host", options.aggregated ? options.location.Authority() : exchange.http.host);
  AppendForwardedFor(request.headers, exchange.http);
  request.upgrade = true;
  request.cancellation = CancellationOf(exchange);
  return request;
}

std::string UpgradeError(const http::ClientError& error) {
  const bool dialed =
      error.kind == http::ClientError::Kind::kClosed || error.kind == http::ClientError::Kind::kProtocol;
  return dialed ? error.message : "error dialing backend: " + error.message;
}

Awaitable<void> RelayTo(std::shared_ptr<http::Stream> backend, std::int64_t bytes_per_second,
                        std::unique_ptr<http::Stream> client) {
  co_await proxy::Relay(std::shared_ptr<http::Stream>(std::move(client)), std::move(backend), bytes_per_second);
}

Awaitable<http::Response> Upgrade(ProxyOptions options, ExchangePtr exchange) {
  auto answer = co_await options.transport->Do(options.location, UpgradeRequest(options, *exchange));
  if (!answer.ok()) co_return Failure(options, *exchange, UpgradeError(answer.error()));
  if (answer->status != 101) {
    if (answer->status < 400) {
      const std::string text = "invalid upgrade response: status code " + std::to_string(answer->status);
      co_return Failure(options, *exchange, text);
    }
    exchange->relayed = true;
    co_return co_await PassOn(*std::move(answer));
  }
  http::Response response;
  response.status = 101;
  response.headers = std::move(answer->headers);
  std::shared_ptr<http::Stream> backend = std::move(answer->stream);
  response.upgrade = [backend, limit = options.bytes_per_second](std::unique_ptr<http::Stream> client) {
    return RelayTo(backend, limit, std::move(client));
  };
  co_return response;
}

proxy::RewriteRules RulesOf(const ProxyOptions& options, const Exchange& exchange) {
  proxy::RewriteRules rules;
  std::string suffix = options.location.path;
  const std::string& path = exchange.http.path;
  if (path.ends_with('/') && !suffix.ends_with('/')) suffix += '/';
  rules.path_prepend = path.ends_with(suffix) ? path.substr(0, path.size() - suffix.size()) : path;
  rules.source_host = options.location.Authority();
  rules.request_host = exchange.http.host;
  if (options.aggregated) {
    rules.path_prepend.clear();
    rules.scheme = options.location.scheme;
    rules.host = rules.request_host = rules.source_host;
  }
  return rules;
}

// Reads the page if it is not too large. Otherwise what was read is in front of the rest.
Awaitable<Outcome<bool, http::BodyError>> ReadPage(http::BodyReader& reader, std::string& page) {
  while (page.size() <= kPageBytesMax) {
    auto bytes = co_await reader.Read();
    if (!bytes.ok()) co_return bytes.error();
    if (bytes->empty()) co_return true;
    page += bytes->view();
  }
  co_return false;
}

std::optional<std::string> RewritePage(const proxy::RewriteRules& rules, std::string_view encoding,
                                       std::string_view body) {
  const auto rewrite = [&](std::string_view url) { return proxy::RewriteURL(rules, url); };
  if (encoding.empty()) return proxy::RewriteHTML(body, rewrite);
  const auto compression = encoding == "gzip" ? proxy::Compression::kGzip : proxy::Compression::kDeflate;
  const auto plain = proxy::Decompress(compression, body, kPageBytesMax);
  if (!plain) return std::nullopt;
  return proxy::Compress(compression, proxy::RewriteHTML(*plain, rewrite));
}

// Rewrites redirects and links so that a browser stays within the proxy.
Awaitable<http::Response> Wrap(ProxyOptions options, ExchangePtr exchange, http::ClientResponse answer) {
  for (const std::string_view name : kCORSHeaders) answer.headers.Remove(name);
  const proxy::RewriteRules rules = RulesOf(options, *exchange);
  if (const std::string location(answer.headers.Get("Location")); !location.empty()) {
    answer.headers.Set("Location", proxy::RewriteURL(rules, location));
    co_return co_await PassOn(std::move(answer));
  }
  const std::string_view type = answer.headers.Get("Content-Type");
  const std::string encoding(answer.headers.Get("Content-Encoding"));
  const bool page = base::Trim(type.substr(0, type.find(';'))) == "text/html";
  if (!page || exchange->http.method == "HEAD" || !(encoding.empty() || encoding == "gzip" || encoding == "deflate")) {
    co_return co_await PassOn(std::move(answer));
  }
  std::string body;
  auto whole = co_await ReadPage(*answer.body, body);
  if (!whole.ok()) co_return PlainFailure(*exchange, "unexpected EOF");
  if (*whole) {
    auto rewritten = RewritePage(rules, encoding, body);
    if (!rewritten) co_return PlainFailure(*exchange, "errorf making gzip reader: gzip: invalid header");
    http::Response response;
    response.status = answer.status;
    response.headers = std::move(answer.headers);
    RemoveHopHeaders(response.headers);
    response.headers.Remove("Content-Length");
    response.body = http::SharedBytes::FromString(*std::move(rewritten));
    co_return response;
  }
  auto executor = co_await asio::this_coro::executor;
  http::Response response;
  response.status = answer.status;
  response.headers = std::move(answer.headers);
  RemoveHopHeaders(response.headers);
  response.body = proxy::NewBridge(executor, std::move(answer.body), http::SharedBytes::FromString(std::move(body)));
  co_return response;
}

Awaitable<http::Response> Forward(ProxyOptions options, ExchangePtr exchange) {
  const http::Request& incoming = exchange->http;
  http::ClientRequest request;
  request.method = incoming.method;
  request.headers = incoming.headers;
  RemoveHopHeaders(request.headers);
  AppendForwardedFor(request.headers, incoming);
  request.headers.Set("Host", options.aggregated ? options.location.Authority() : incoming.host);
  request.deadline = options.deadline;
  request.cancellation = CancellationOf(*exchange);
  // Go's transport requests gzip if the client has no Accept-Encoding, and decompresses the response.
  const bool unpack = options.aggregated && !request.headers.Has("Accept-Encoding") && !request.headers.Has("Range") &&
                      request.method != "HEAD";
  if (unpack) request.headers.Add("Accept-Encoding", "gzip");
  if (options.wrap_transport) {
    const proxy::RewriteRules rules = RulesOf(options, *exchange);
    std::string uri = proxy::JoinPath(rules.path_prepend, base::EscapePath(options.location.path));
    if (options.location.path.ends_with('/')) uri += '/';
    request.headers.Set("X-Forwarded-Uri", uri);
    if (!rules.host.empty()) request.headers.Set("X-Forwarded-Host", rules.host);
    if (!rules.scheme.empty()) request.headers.Set("X-Forwarded-Proto", rules.scheme);
  }
  auto first = co_await exchange->http.body->Read();
  if (!first.ok()) co_return PlainFailure(*exchange, "http: request body could not be read");
  if (!first->empty()) {
    auto executor = co_await asio::this_coro::executor;
    request.body = proxy::NewBridge(executor, std::move(exchange->http.body), *std::move(first), exchange);
  } else {
    request.headers.Remove("Content-Length");
  }
  const std::string method = request.method;
  auto answer = co_await options.transport->Do(options.location, std::move(request));
  if (!answer.ok()) {
    if (!options.wrap_transport) co_return PlainFailure(*exchange, answer.error().message);
    if (options.aggregated) co_return PlainError(503, "error trying to reach service: " + answer.error().message);
    co_return StatusResponse(*exchange,
                             meta::NewServiceUnavailable("error trying to reach service: " + answer.error().message));
  }
  if (options.reject_redirects && answer->status >= 300 && answer->status <= 399 &&
      !answer->headers.Get("Location").empty()) {
    co_return Text(502, "the backend attempted to redirect this request, which is not permitted");
  }
  if (unpack && answer->headers.Get("Content-Encoding") == "gzip") {
    answer->headers.Remove("Content-Encoding");
    answer->headers.Remove("Content-Length");
    answer->body = http::NewGunzipReader(std::move(answer->body));
  }
  if (options.wrap_transport) co_return co_await Wrap(std::move(options), exchange, *std::move(answer));
  co_return co_await PassOn(*std::move(answer));
}

// A WebSocket whose binary messages are the bytes of a stream.
class WebSocketStream final : public http::Stream {
 public:
  explicit WebSocketStream(std::shared_ptr<http::WebSocket> socket) : socket_(std::move(socket)) {}
  Awaitable<Outcome<http::SharedBytes, http::BodyError>> Read() override {
    for (;;) {
      auto message = co_await socket_->Read();
      if (!message) co_return http::SharedBytes();
      if (!message->data.empty()) co_return http::SharedBytes::FromString(std::move(message->data));
    }
  }
  Awaitable<Outcome<void, http::BodyError>> Write(http::SharedBytes bytes) override {
    const bool written = co_await socket_->Write(http::WebSocketOpcode::kBinary, std::move(bytes));
    if (!written) co_return http::BodyError::kClientGone;
    co_return Outcome<void, http::BodyError>();
  }
  void Close() override { socket_->Abort(); }

 private:
  std::shared_ptr<http::WebSocket> socket_;
};

Awaitable<void> RelayMessages(std::shared_ptr<http::Stream> backend, std::int64_t bytes_per_second,
                              std::shared_ptr<http::WebSocket> socket) {
  co_await proxy::Relay(std::make_shared<WebSocketStream>(socket), std::move(backend), bytes_per_second);
}

std::vector<std::string> TunneledProtocols(const http::Request& request) {
  std::vector<std::string> protocols;
  for (const std::string& protocol : http::WebSocketProtocols(request)) {
    if (protocol.starts_with(kTunnelPrefix) && protocol.ends_with(".k8s.io")) {
      protocols.push_back(protocol.substr(kTunnelPrefix.size()));
    }
  }
  return protocols;
}

}  // namespace

bool IsUpgradeRequest(const http::Request& request) {
  for (const std::string_view value : request.headers.Values("Connection")) {
    if (base::ToLower(value).find("upgrade") != std::string::npos) return true;
  }
  return false;
}

std::string RequestError(std::string_view method, const proxy::Location& location, const http::ClientError& error) {
  std::string verb = base::ToLower(method);
  if (!verb.empty() && verb[0] >= 'a' && verb[0] <= 'z') verb[0] = static_cast<char>(verb[0] - 'a' + 'A');
  return verb + " " + base::GoQuote(location.URL()) + ": " + error.message;
}

Awaitable<http::Response> ServeUpgradeAware(ProxyOptions options, ExchangePtr exchange) {
  if (options.location.scheme.empty()) options.location.scheme = "http";
  if (IsUpgradeRequest(exchange->http)) co_return co_await Upgrade(std::move(options), std::move(exchange));
  if (options.upgrade_required) co_return StatusResponse(*exchange, meta::NewBadRequest("Upgrade request required"));
  const http::Request& request = exchange->http;
  if (options.aggregated) co_return co_await Forward(std::move(options), std::move(exchange));
  options.location.raw_query = request.raw_query;
  if (!options.location.path.ends_with('/') && request.path.ends_with('/')) options.location.path += '/';
  if (options.location.path.empty() && (request.method == "GET" || request.method == "HEAD")) {
    http::Response response;
    response.status = 301;
    response.headers.Add("Location", request.path + "/" + (request.raw_query.empty() ? "" : "?" + request.raw_query));
    co_return response;
  }
  co_return co_await Forward(std::move(options), std::move(exchange));
}

bool IsTunnelingRequest(const http::Request& request) {
  return http::IsWebSocketRequest(request) && !TunneledProtocols(request).empty();
}

Awaitable<http::Response> ServeTunnel(ProxyOptions options, ExchangePtr exchange) {
  http::ClientRequest request = UpgradeRequest(options, *exchange);
  for (const std::string_view name : {"Sec-WebSocket-Protocol", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
                                      "Sec-WebSocket-Extensions", "X-Stream-Protocol-Version"}) {
    request.headers.Remove(name);
  }
  request.method = "POST";
  request.headers.Set("Upgrade", "SPDY/3.1");
  for (const std::string& protocol : TunneledProtocols(exchange->http)) {
    request.headers.Add("X-Stream-Protocol-Version", protocol);
  }
  auto answer = co_await options.transport->Do(options.location, std::move(request));
  if (!answer.ok()) co_return PlainFailure(*exchange, UpgradeError(answer.error()));
  if (answer->status != 101) {
    if (answer->status < 400) {
      co_return PlainFailure(*exchange, "invalid upgrade response: status code " + std::to_string(answer->status));
    }
    co_return co_await PassOn(*std::move(answer));
  }
  if (base::ToLower(answer->headers.Get("Upgrade")).find("spdy/3.1") == std::string::npos) {
    co_return PlainError(500, "unable to upgrade: missing upgrade headers in response");
  }
  std::string protocol(base::Trim(answer->headers.Get("X-Stream-Protocol-Version")));
  if (!protocol.empty()) protocol.insert(0, kTunnelPrefix);
  std::shared_ptr<http::Stream> backend = std::move(answer->stream);
  co_return http::AcceptWebSocket(
      exchange->http, protocol,
      [backend, limit = options.bytes_per_second](std::shared_ptr<http::WebSocket> socket) {
        return RelayMessages(backend, limit, std::move(socket));
      },
      kMessageBytesMax);
}

}  // namespace keelson::endpoints
