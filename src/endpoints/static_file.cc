#include "endpoints/static_file.h"

#include <string>

#include "endpoints/api_group_version.h"

namespace keelson::endpoints {
namespace {

constexpr const char* kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

Awaitable<http::Response> Serve(StaticFile file, ExchangePtr exchange) {
  if (exchange->http.method != "GET") co_return NoMethod(*exchange);
  http::Response response;
  response.headers.Add("Content-Type", std::string(file.type));
  response.headers.Add("Content-Security-Policy", kContentSecurityPolicy);
  response.headers.Add("X-Content-Type-Options", "nosniff");
  response.headers.Add("X-Frame-Options", "DENY");
  response.headers.Add("Referrer-Policy", "no-referrer");
  response.headers.Add("Cache-Control", "no-cache");
  // Pages load unauthenticated, and other unauthenticated responses end their HTTP/2 connection
  // (UnauthenticatedHTTP2DOSMitigation). Browsers request the files of a page at once: those sent on the closing
  // connection would fail, and the page would stay blank.
  response.headers.Add("Connection", "keep-alive");
  response.body = base::SharedBytes::FromString(std::string(file.bytes));
  co_return response;
}

}  // namespace

Handler NewStaticFile(StaticFile file) {
  return [file](ExchangePtr exchange) { return Serve(file, std::move(exchange)); };
}

}  // namespace keelson::endpoints
