// Proxied requests to other API servers: the headers added to the client's (the user's identity in X-Remote-* headers,
// the query as Go writes it), and the response if the server is absent. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "endpoints/exchange.h"
#include "http/message.h"

namespace keelson::endpoints {

struct RemoteIdentity {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;
};
// Sets the identity headers, after removing whatever came in under their names (client-go's SetAuthProxyHeaders).
void SetAuthProxyHeaders(http::Headers& headers, const RemoteIdentity& identity);

// 503 as a Status: no server to proxy the request to.
http::Response NoServer(const Exchange& exchange, std::string_view message);

// url.Values.Encode of a raw query: sorted by key, values of a key in their order.
std::string EncodedQuery(std::string_view raw_query);

}  // namespace keelson::endpoints
