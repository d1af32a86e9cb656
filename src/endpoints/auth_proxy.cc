#include "endpoints/auth_proxy.h"

#include <algorithm>

#include "base/strings.h"
#include "base/url.h"
#include "endpoints/responses.h"
#include "http/header_key.h"

namespace keelson::endpoints {
void SetAuthProxyHeaders(http::Headers& headers, const RemoteIdentity& identity) {
  constexpr std::string_view kExtra = "X-Remote-Extra-";
  headers.RemoveIf([&](std::string_view name) {
    return base::EqualsIgnoreCase(name, "X-Remote-User") || base::EqualsIgnoreCase(name, "X-Remote-Uid") ||
           base::EqualsIgnoreCase(name, "X-Remote-Group") ||
           (name.size() >= kExtra.size() && base::EqualsIgnoreCase(name.substr(0, kExtra.size()), kExtra));
  });
  headers.Add("X-Remote-User", identity.user);
  if (!identity.uid.empty()) headers.Add("X-Remote-Uid", identity.uid);
  for (const std::string& group : identity.groups) headers.Add("X-Remote-Group", group);
  for (const auto& [key, values] : identity.extra) {
    for (const std::string& value : values) headers.Add(std::string(kExtra) + http::EscapeHeaderKey(key), value);
  }
}

http::Response NoServer(const Exchange& exchange, std::string_view message) {
  return StatusResponse(exchange, meta::NewServiceUnavailable(message));
}

std::string EncodedQuery(std::string_view raw_query) {
  auto pairs = base::Query(raw_query).pairs();
  std::vector<std::size_t> order(pairs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return pairs[a].first != pairs[b].first ? pairs[a].first < pairs[b].first : a < b;
  });
  std::string out;
  for (const std::size_t i : order) {
    if (!out.empty()) out += '&';
    out += base::QueryEscape(pairs[i].first) + "=" + base::QueryEscape(pairs[i].second);
  }
  return out;
}

}  // namespace keelson::endpoints
