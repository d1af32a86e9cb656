// Requests to other API servers: what they carry beside the client's own headers (the user's identity in X-Remote-*
// headers, the query as Go writes it), and the answer when there is no such server. Pure functions.
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

// 503 as a Status: there is no server to hand the request to.
http::Response NoServer(const Exchange& exchange, std::string_view message);

// url.Values.Encode of a raw query: sorted by key, values of a key in their order.
std::string EncodedQuery(std::string_view raw_query);

}  // namespace keelson::endpoints
