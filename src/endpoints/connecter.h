// Subresources that are connections to somewhere else (upstream's rest.Connecter): exec, attach, portforward, proxy,
// log. A Connecter returns the destination of a connection; the route made here handles HTTP.
#pragma once

#include <memory>
#include <variant>

#include "endpoints/api_group_version.h"
#include "endpoints/handlers.h"
#include "endpoints/scope.h"
#include "endpoints/stream_translator.h"
#include "endpoints/upgrade_aware_proxy.h"
#include "http/message.h"

namespace keelson::endpoints {

struct ProxiedConnection {
  enum class Form : std::uint8_t {
    kUpgradeAware,
    kStreamTranslator,  // WebSocket here, SPDY there
    kTunnel,            // SPDY through a WebSocket
  };
  ProxyOptions options;
  Form form = Form::kUpgradeAware;
  StreamOptions streams = {};  // of kStreamTranslator
};
struct StreamedText {
  std::unique_ptr<http::BodyReader> body;  // null: there is nothing yet
};
using Connection = std::variant<ProxiedConnection, StreamedText>;

class Connecter {
 public:
  virtual ~Connecter() = default;
  // Checks the request and its admission, then finds the other end.
  virtual Task<Connection> Connect(ScopePtr scope, ExchangePtr exchange) const = 0;
};

enum class ConnectKind : std::uint8_t {
  kProxy,   // every method, and paths below the subresource's name
  kStream,  // GET and POST
  kText,    // GET, answered as text/plain or over a WebSocket
};
Route ConnectRoute(ScopePtr scope, ConnectKind kind, std::shared_ptr<const Connecter> connecter);

}  // namespace keelson::endpoints
