#include "auth/bearer.h"

#include <algorithm>

#include "base/strings.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kProtocolHeader = "Sec-WebSocket-Protocol";
constexpr std::string_view kProtocolPrefix = "base64url.bearer.authorization.k8s.io.";

// As upstream's wsstream.IsWebSocketRequest: any Connection value with "upgrade" in it will do.
bool IsWebSocketRequest(const http::Headers& headers) {
  if (!base::EqualsIgnoreCase(headers.Get("Upgrade"), "websocket")) return false;
  return std::ranges::any_of(headers.Values("Connection"), [](std::string_view value) {
    return base::ToLower(value).find("upgrade") != std::string::npos;
  });
}

}  // namespace

BearerHeader ReadBearerHeader(const http::Headers& headers) {
  const std::string_view header = base::Trim(headers.Get("Authorization"));
  const auto space = header.find(' ');
  if (space == std::string_view::npos || !base::EqualsIgnoreCase(header.substr(0, space), "bearer")) return {};
  const std::string_view rest = header.substr(space + 1);
  const auto end = rest.find(' ');
  return {.token = std::string(rest.substr(0, end)), .space_before = end == 0};
}

Outcome<BearerProtocol, std::string> ReadBearerProtocol(const http::Request& request) {
  if (!IsWebSocketRequest(request.headers)) return BearerProtocol();
  BearerProtocol found;
  bool seen = false, others = false;
  for (const std::string_view header : request.headers.Values(kProtocolHeader)) {
    for (const std::string_view piece : base::Split(header, ',')) {
      const std::string_view protocol = base::Trim(piece);
      if (!protocol.starts_with(kProtocolPrefix)) {
        if (others) found.others += ',';
        others = true;
        found.others += protocol;
        continue;
      }
      if (seen) return std::string("multiple base64.bearer.authorization tokens specified");
      seen = true;
      auto token = base::Base64URLDecode(protocol.substr(kProtocolPrefix.size()));
      if (!token) return std::string("invalid base64.bearer.authorization token encoding");
      if (!base::IsValidUTF8(*token)) return std::string("invalid base64.bearer.authorization token");
      found.token = *std::move(token);
    }
  }
  if (!found.token.empty() && !others) return std::string("missing additional subprotocol");
  return found;
}

}  // namespace keelson::auth
