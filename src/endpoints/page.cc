#include "endpoints/page.h"

#include <memory>
#include <optional>

#include "endpoints/api_group_version.h"
#include "endpoints/negotiation.h"
#include "endpoints/responses.h"
#include "endpoints/sources.h"

namespace keelson::endpoints {
namespace {

template <class Make>
struct PageRoute {
  Make make;
  PageOptions options;
};

std::optional<http::Response> Refused(const Exchange& exchange, const PageOptions& options) {
  if (!options.method.empty() && exchange.http.method != options.method) return NoMethod(exchange);
  if (options.produces.empty()) return std::nullopt;
  return CheckAccept(exchange, options.produces);
}

http::Response Answer(const Exchange& exchange, meta::Result<Page> page) {
  return page.ok() ? PageResponse(exchange, *std::move(page)) : StatusResponse(exchange, page.error());
}

Awaitable<http::Response> Serve(std::shared_ptr<const PageRoute<PageFunc>> route, ExchangePtr exchange) {
  if (auto refused = Refused(*exchange, route->options)) co_return *std::move(refused);
  co_return Answer(*exchange, route->make(*exchange));
}

Awaitable<http::Response> ServeTask(std::shared_ptr<const PageRoute<PageTask>> route, ExchangePtr exchange) {
  if (auto refused = Refused(*exchange, route->options)) co_return *std::move(refused);
  auto page = co_await route->make(exchange);
  co_return Answer(*exchange, std::move(page));
}

}  // namespace

Page TextPage(std::string_view text) { return {.body = base::SharedBytes(text)}; }

Page JSONPage(base::SharedBytes body) { return {.media_type = "application/json", .body = std::move(body)}; }

Page ErrorPage(int status, std::string_view text) {
  Page page{.status = status, .body = base::SharedBytes(std::string(text) + "\n")};
  page.headers.Add("X-Content-Type-Options", "nosniff");
  return page;
}

Page NotFoundPage() { return ErrorPage(404, "404 page not found"); }

http::Response PageResponse(const Exchange& exchange, Page page) {
  const bool known = !page.etag.empty() && exchange.http.headers.Get("If-None-Match") == page.etag;
  http::Response response;
  response.status = known ? 304 : page.status;
  if (!known) response.headers.Add("Content-Type", page.media_type);
  if (!page.etag.empty()) response.headers.Add("ETag", page.etag);
  for (const auto& [name, value] : page.headers) response.headers.Add(name, value);
  if (known) return response;
  const bool encoded = page.gzip == Page::Gzip::kIfAccepted && AcceptsGzip(exchange.http);
  if (encoded) response.headers.Add("Content-Encoding", "gzip");
  if (encoded || page.gzip == Page::Gzip::kFile) {
    response.body = NewGzipSource(page.stream ? std::move(page.stream) : NewBytesSource(std::move(page.body)));
  } else if (page.stream) {
    response.body = std::move(page.stream);
  } else {
    response.body = std::move(page.body);
  }
  return response;
}

Handler ServePage(PageFunc page, PageOptions options) {
  using Route = PageRoute<PageFunc>;
  auto route = std::make_shared<const Route>(Route{std::move(page), std::move(options)});
  return [route](ExchangePtr exchange) { return Serve(route, std::move(exchange)); };
}

Handler ServePageTask(PageTask page, PageOptions options) {
  using Route = PageRoute<PageTask>;
  auto route = std::make_shared<const Route>(Route{std::move(page), std::move(options)});
  return [route](ExchangePtr exchange) { return ServeTask(route, std::move(exchange)); };
}

Awaitable<http::Response> NotFound(ExchangePtr exchange) { co_return PageResponse(*exchange, NotFoundPage()); }

}  // namespace keelson::endpoints
