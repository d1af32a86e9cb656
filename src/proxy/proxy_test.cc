#include <gtest/gtest.h>

#include "proxy/gzip.h"
#include "proxy/html_rewrite.h"
#include "proxy/spdy.h"
#include "proxy/transport.h"

namespace keelson::proxy {
namespace {

TEST(Location, IsWrittenAsGoDoes) {
  const Location location{.scheme = "https", .host = "::1", .port = "10250", .path = "/a b/ü?", .raw_query = "x=1"};
  EXPECT_EQ(location.Authority(), "[::1]:10250");
  EXPECT_EQ(location.Target(), "/a%20b/%C3%BC%3F?x=1");
  EXPECT_EQ(location.URL(), "https://[::1]:10250/a%20b/%C3%BC%3F?x=1");
  EXPECT_EQ((Location{.host = "h"}).Target(), "/");
}

TEST(RewriteURL, StaysWithinTheProxy) {
  const RewriteRules rules{"", "", "/api/v1/namespaces/n/services/s/proxy", "10.0.0.1:80", "server:6443"};
  struct Case {
    const char* url;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"/login", "/api/v1/namespaces/n/services/s/proxy/login"},
      {"/login/", "/api/v1/namespaces/n/services/s/proxy/login/"},
      {"/a?b=c#d", "/api/v1/namespaces/n/services/s/proxy/a?b=c#d"},
      {"relative", "relative"},
      {"http://10.0.0.1:80/x", "/api/v1/namespaces/n/services/s/proxy/x"},
      {"https://elsewhere/x", "https://elsewhere/x"},
      {"https://server:6443/x", "https://server:6443/api/v1/namespaces/n/services/s/proxy/x"},
      {"/api/v1/namespaces/n/services/s/proxy/x", "/api/v1/namespaces/n/services/s/proxy/x"},
      {"", ""},
  };
  for (const Case& c : kCases) EXPECT_EQ(RewriteURL(rules, c.url), c.want) << c.url;
}

TEST(CleanPreservingTrailingSlash, SubPathsStayBelowTheirRoot) {
  struct Case {
    const char* path;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"", ""},
      {"/", "/"},
      {"/a/b", "/a/b"},
      {"/a/b/", "/a/b/"},
      {"/a/../b", "/b"},
      {"/../../etc/passwd", "/etc/passwd"},
      {"/a/./b//c", "/a/b/c"},
      {"/..", "/"},
      {"/a/../", "/"},
      {"/a/..", "/"},
      {"/a/.../b", "/a/.../b"},
  };
  for (const Case& c : kCases) EXPECT_EQ(CleanPreservingTrailingSlash(c.path), c.want) << c.path;
}

TEST(RewriteHTML, OnlyKnownAttributes) {
  const auto mark = [](std::string_view url) {
    return url.starts_with('/') ? "/p" + std::string(url) : std::string(url);
  };
  struct Case {
    const char* page;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"<a href='/x'>/y</a>", "<a href=\"/p/x\">/y</a>"},
      {"<A HREF=/x>", "<A HREF=\"/p/x\">"},
      {"<img alt='/x' src = \"/y\" />", "<img alt='/x' src = \"/p/y\" />"},
      {"<p href='/x'>", "<p href='/x'>"},
      {"<!-- <a href='/x'> --><a href='z'>", "<!-- <a href='/x'> --><a href='z'>"},
      {"<script src='/s'>var a = \"<a href='/x'>\";</script>",
       "<script src=\"/p/s\">var a = \"<a href='/x'>\";</script>"},
      {"a < b <a href='/x&amp;y'", "a < b <a href=\"/p/x&amp;y\""},
      {"<a href", "<a href"},
      {"<", "<"},
  };
  for (const Case& c : kCases) EXPECT_EQ(RewriteHTML(c.page, mark), c.want) << c.page;
}

TEST(Gzip, RoundTripsAndIsBounded) {
  const std::string text(100'000, 'x');
  for (const Compression compression : {Compression::kGzip, Compression::kDeflate}) {
    const std::string packed = Compress(compression, text);
    EXPECT_LT(packed.size(), text.size());
    EXPECT_EQ(Decompress(compression, packed, text.size()), text);
    EXPECT_EQ(Decompress(compression, packed, text.size() - 1), std::nullopt);
    EXPECT_EQ(Decompress(compression, packed.substr(0, packed.size() / 2), text.size()), std::nullopt);
  }
}

std::string Control(std::uint16_t type, std::string_view payload) {
  std::string frame{'\x80', '\x03', static_cast<char>(type >> 8), static_cast<char>(type), 0, 0, 0};
  frame += static_cast<char>(payload.size());
  return frame += payload;
}

TEST(SPDY, StreamsDataAndEnds) {
  SPDYSession session;
  std::string out;
  EXPECT_EQ(session.OpenStream({{"streamtype", "error"}}, out), 1u);
  EXPECT_EQ(session.OpenStream({{"streamtype", "stdout"}}, out), 3u);
  EXPECT_EQ(out.substr(0, 4), std::string("\x80\x03\x00\x01", 4));
  std::string in("\x00\x00\x00\x03\x00\x00\x00\x02hi", 10);
  in += std::string("\x00\x00\x00\x03\x01\x00\x00\x00", 8);
  in += Control(3, std::string("\x00\x00\x00\x01\x00\x00\x00\x05", 8));
  out.clear();
  std::vector<SPDYSession::Event> events;
  for (const char c : in) ASSERT_TRUE(session.Feed({&c, 1}, events, out));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, SPDYSession::Event::Kind::kData);
  EXPECT_EQ(events[0].data, "hi");
  EXPECT_EQ(events[1].kind, SPDYSession::Event::Kind::kEnd);
  EXPECT_EQ(events[1].stream, 3u);
  EXPECT_EQ(events[2].kind, SPDYSession::Event::Kind::kReset);
  EXPECT_TRUE(out.empty());
}

TEST(SPDY, AnswersPingsAndRefusesLargeFrames) {
  SPDYSession session;
  std::vector<SPDYSession::Event> events;
  std::string out;
  const std::string ping = Control(6, std::string("\x00\x00\x00\x02", 4));
  ASSERT_TRUE(session.Feed(ping, events, out));
  EXPECT_EQ(out, ping);
  out.clear();
  ASSERT_TRUE(session.Feed(Control(6, std::string("\x00\x00\x00\x01", 4)), events, out));  // the answer to one of ours
  EXPECT_TRUE(out.empty());
  EXPECT_FALSE(session.Feed(std::string("\x00\x00\x00\x01\x00\xff\xff\xff", 8), events, out));
  EXPECT_FALSE(session.Feed(ping, events, out));
}

TEST(SPDY, RefusesHeadersThatDoNotInflate) {
  SPDYSession session;
  std::vector<SPDYSession::Event> events;
  std::string out;
  EXPECT_FALSE(session.Feed(Control(2, std::string("\x00\x00\x00\x01garbage", 11)), events, out));
}

}  // namespace
}  // namespace keelson::proxy
