// Bearer tokens as requests carry them: in the Authorization header, and in a sub-protocol of WebSocket handshakes
// (browsers cannot set headers there).
#pragma once

#include <string>
#include <vector>

#include "base/outcome.h"
#include "http/message.h"

namespace keelson::auth {

struct BearerHeader {
  std::string token;          // "" when there is none
  bool space_before = false;  // "Bearer  x": ignored, with a warning for the client
};
BearerHeader ReadBearerHeader(const http::Headers& headers);

struct BearerProtocol {
  std::string token;   // "" when there is none
  std::string others;  // the other sub-protocols, joined by commas
};
// An error for a malformed token. Nothing for a request that is not a WebSocket handshake.
Outcome<BearerProtocol, std::string> ReadBearerProtocol(const http::Request& request);

}  // namespace keelson::auth
