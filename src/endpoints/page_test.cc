#include "endpoints/page.h"

#include <gtest/gtest.h>

#include "async/testing/run_now.h"

namespace keelson::endpoints {
namespace {

ExchangePtr Ask(std::string method, std::vector<std::pair<std::string, std::string>> headers = {}) {
  auto exchange = std::make_shared<Exchange>();
  exchange->http.method = std::move(method);
  for (const auto& [name, value] : headers) exchange->http.headers.Add(name, value);
  return exchange;
}

std::string Body(const http::Response& response) {
  return std::string(std::get<base::SharedBytes>(response.body).view());
}

TEST(Page, MethodAndAcceptAreChecked) {
  const Handler handler =
      ServePage([](const Exchange&) -> meta::Result<Page> { return JSONPage(base::SharedBytes("{}")); },
                {.method = "GET", .produces = {"application/json"}});
  const auto shown = async::RunNow(handler(Ask("GET", {{"Accept", "application/json"}})));
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(shown.headers.Get("Content-Type"), "application/json");
  EXPECT_EQ(Body(shown), "{}");
  EXPECT_EQ(async::RunNow(handler(Ask("POST"))).status, 405);
  EXPECT_EQ(async::RunNow(handler(Ask("GET", {{"Accept", "text/html"}}))).status, 406);
}

TEST(Page, ErrorIsAnsweredAsAStatus) {
  const Handler handler =
      ServePage([](const Exchange&) -> meta::Result<Page> { return meta::NewServiceUnavailable("not yet"); });
  const auto refused = async::RunNow(handler(Ask("GET")));
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(Body(refused).find(R"("kind":"Status")"), std::string::npos);
}

TEST(Page, KnownETagIsNotModified) {
  const auto ask = [](const char* etag) {
    Page page{.body = base::SharedBytes("text"), .etag = "\"a\""};
    page.headers.Add("Vary", "Accept");
    return PageResponse(*Ask("GET", {{"If-None-Match", etag}}), std::move(page));
  };
  const auto known = ask("\"a\"");
  EXPECT_EQ(known.status, 304);
  EXPECT_FALSE(known.headers.Has("Content-Type"));
  EXPECT_EQ(known.headers.Get("ETag"), "\"a\"");
  EXPECT_EQ(known.headers.Get("Vary"), "Accept");
  EXPECT_EQ(Body(known), "");
  const auto fresh = ask("\"b\"");
  EXPECT_EQ(fresh.status, 200);
  EXPECT_EQ(Body(fresh), "text");
}

TEST(Page, GzipAsEncodingAndAsFile) {
  struct Case {
    const char* name;
    Page::Gzip gzip;
    const char* accepts;
    bool streamed;
    const char* encoding;
  };
  constexpr Case kCases[] = {
      {"never", Page::Gzip::kNever, "gzip", false, ""},
      {"not accepted", Page::Gzip::kIfAccepted, "identity", false, ""},
      {"accepted", Page::Gzip::kIfAccepted, "gzip", true, "gzip"},
      {"a file", Page::Gzip::kFile, "identity", true, ""},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto response = PageResponse(*Ask("GET", {{"Accept-Encoding", c.accepts}}),
                                       Page{.body = base::SharedBytes("text"), .gzip = c.gzip});
    EXPECT_EQ(std::holds_alternative<std::unique_ptr<http::BodySource>>(response.body), c.streamed);
    EXPECT_EQ(response.headers.Get("Content-Encoding"), c.encoding);
  }
}

TEST(Page, ErrorsAreGosHTTPErrors) {
  const auto response = async::RunNow(NotFound(Ask("GET")));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.headers.Get("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(response.headers.Get("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(Body(response), "404 page not found\n");
}

}  // namespace
}  // namespace keelson::endpoints
