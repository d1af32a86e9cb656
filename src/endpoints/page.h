// Pages: responses of non-resource paths (health, metrics, version, discovery, profiles). A page is a value; the
// handlers made here are the only ones that turn one into an HTTP response.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_bytes.h"
#include "endpoints/exchange.h"
#include "http/message.h"
#include "meta/status.h"

namespace keelson::endpoints {

struct Page {
  enum class Gzip : std::uint8_t {
    kNever,
    kIfAccepted,  // as a content encoding
    kFile,        // the page is a .gz file, whatever the client accepts
  };
  int status = 200;
  std::string media_type = "text/plain; charset=utf-8";
  base::SharedBytes body = {};
  std::unique_ptr<http::BodySource> stream = {};  // instead of `body`: made as the client takes it
  std::string etag = {};                          // "": none. A request whose If-None-Match has it is answered with 304
  http::Headers headers = {};                     // besides Content-Type and ETag
  Gzip gzip = Gzip::kNever;
};

Page TextPage(std::string_view text);
Page JSONPage(base::SharedBytes body);
// Go's http.Error: text/plain, the text and a newline, nosniff.
Page ErrorPage(int status, std::string_view text);
Page NotFoundPage();  // Go's http.NotFound

// The texts must live as long as the process.
struct PageOptions {
  std::string_view method = {};                 // "": any. 405 for others
  std::vector<std::string_view> produces = {};  // 406 for an Accept header that allows none of these; empty: any
};
// An error is sent as a Status in the negotiated representation.
using PageFunc = std::function<meta::Result<Page>(const Exchange& exchange)>;
using PageTask = std::function<Awaitable<meta::Result<Page>>(ExchangePtr exchange)>;
Handler ServePage(PageFunc page, PageOptions options = {});
Handler ServePageTask(PageTask page, PageOptions options = {});

http::Response PageResponse(const Exchange& exchange, Page page);
// The end of the server chain: no path is known there.
Awaitable<http::Response> NotFound(ExchangePtr exchange);

}  // namespace keelson::endpoints
