// Links of a page that came through a proxy: rooted URLs are put below the proxy's own path, so that a browser stays
// within it. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace keelson::proxy {

struct RewriteRules {
  std::string scheme;        // of the proxy, as the browser sees it; may be ""
  std::string host;          // likewise
  std::string path_prepend;  // the proxy's path in front of the backend's
  std::string source_host;   // of the backend, host[:port]
  std::string request_host;  // the Host header of the request
};

// The URL for the browser, below the proxy's path; URLs of other hosts and relative ones stay as they are. Empty: not a
// URL.
std::string RewriteURL(const RewriteRules& rules, std::string_view url);

// Go's path.Join of two parts: cleaned, without a trailing slash.
std::string JoinPath(std::string_view a, std::string_view b);
// Upstream's JoinPreservingTrailingSlash of one path: without "." and "..", which never lead above its root; "" stays.
std::string CleanPreservingTrailingSlash(std::string_view path);

// The page with the URLs of its known attributes (href, src, action, ...) rewritten; everything else byte for byte.
std::string RewriteHTML(std::string_view page, const std::function<std::string(std::string_view url)>& rewrite);

}  // namespace keelson::proxy
