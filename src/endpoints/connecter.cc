#include "endpoints/connecter.h"

#include <boost/asio/this_coro.hpp>
#include <span>
#include <string_view>

#include "base/strings.h"
#include "endpoints/responses.h"
#include "http/websocket.h"
#include "proxy/body_bridge.h"

namespace keelson::endpoints {
namespace {

constexpr std::string_view kTextTypes[] = {"text/plain", "application/json", "application/yaml",
                                           "application/vnd.kubernetes.protobuf"};

std::span<const std::string_view> MethodsOf(ConnectKind kind) {
  static constexpr std::string_view kMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"};
  return std::span(kMethods).first(kind == ConnectKind::kProxy ? 7 : kind == ConnectKind::kStream ? 2 : 1);
}

// Bytes of a text as messages of a WebSocket, in the protocol that was agreed on.
Awaitable<void> SendText(std::shared_ptr<http::BodyReader> body, bool text, std::shared_ptr<http::WebSocket> socket) {
  const auto opcode = text ? http::WebSocketOpcode::kText : http::WebSocketOpcode::kBinary;
  (void)co_await socket->Write(opcode, http::SharedBytes());  // says that the text begins
  for (;;) {
    auto bytes = co_await body->Read();
    if (!bytes.ok() || bytes->empty()) break;
    auto message = text ? http::SharedBytes::FromString(base::Base64Encode(bytes->view())) : *std::move(bytes);
    const bool written = co_await socket->Write(opcode, std::move(message));
    if (!written) break;
  }
}

http::Response TextOverWebSocket(const http::Request& request, std::unique_ptr<http::BodyReader> body) {
  auto offered = http::WebSocketProtocols(request);
  if (offered.empty()) offered.emplace_back();
  for (const std::string& protocol : offered) {
    const bool text = protocol == "base64.binary.k8s.io";
    if (!protocol.empty() && protocol != "binary.k8s.io" && !text) continue;
    std::shared_ptr<http::BodyReader> shared = std::move(body);
    return http::AcceptWebSocket(request, protocol, [shared, text](std::shared_ptr<http::WebSocket> socket) {
      return SendText(shared, text, std::move(socket));
    });
  }
  http::Response refused;
  refused.status = 403;
  refused.headers.Add("Connection", "close");
  return refused;
}

Awaitable<http::Response> ServeText(StreamedText text, ExchangePtr exchange) {
  http::Response response;
  if (!text.body) {
    exchange->trace.AboutToRespond();
    response.status = 204;
    co_return response;
  }
  if (http::IsWebSocketRequest(exchange->http)) co_return TextOverWebSocket(exchange->http, std::move(text.body));
  response.headers.Add("Content-Type", "text/plain");
  response.body = proxy::NewBridge(co_await asio::this_coro::executor, std::move(text.body));
  co_return response;
}

Awaitable<http::Response> ServeProxied(ProxiedConnection proxied, ExchangePtr exchange) {
  using Form = ProxiedConnection::Form;
  if (proxied.form == Form::kStreamTranslator)
    co_return ServeStreamTranslator(std::move(proxied.options), proxied.streams, exchange);
  if (proxied.form == Form::kTunnel) co_return co_await ServeTunnel(std::move(proxied.options), exchange);
  co_return co_await ServeUpgradeAware(std::move(proxied.options), exchange);
}

Awaitable<http::Response> Serve(ConnectKind kind, std::shared_ptr<const Connecter> connecter, ScopePtr scope,
                                ExchangePtr exchange) {
  // Only proxies have paths below their name.
  if (kind != ConnectKind::kProxy && exchange->context.info.part_count > 3) co_return NoRoute(*exchange);
  if (kind == ConnectKind::kText) {
    if (auto refused = CheckAccept(*exchange, kTextTypes)) co_return std::move(*refused);
    if (auto media = NegotiateOutput(exchange->http, exchange->query, scope->restrictions); !media.ok())
      co_return StatusResponse(*exchange, media.error());
    exchange->trace.Start(*exchange, "Get");
  }
  auto connection = co_await connecter->Connect(scope, exchange);
  if (!connection.ok()) co_return StatusResponse(*exchange, connection.error());
  if (auto* text = std::get_if<StreamedText>(&*connection)) co_return co_await ServeText(std::move(*text), exchange);
  co_return co_await ServeProxied(std::get<ProxiedConnection>(*std::move(connection)), exchange);
}

}  // namespace

Route ConnectRoute(ScopePtr scope, ConnectKind kind, std::shared_ptr<const Connecter> connecter) {
  Route route{.scope = std::move(scope)};
  for (const std::string_view method : MethodsOf(kind)) {
    route.item[std::string(method)] = [kind, connecter](ScopePtr scoped, ExchangePtr exchange) {
      return Serve(kind, connecter, std::move(scoped), std::move(exchange));
    };
  }
  route.connects = true;
  return route;
}

}  // namespace keelson::endpoints
