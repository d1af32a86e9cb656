#include "http/http1_parser.h"

#include <gtest/gtest.h>

#include "http/http2_guard.h"

namespace keelson::http {
namespace {

TEST(Http1Parser, FindsTheEndOfAHead) {
  std::size_t scanned = 0;
  const std::string text = "GET / HTTP/1.1\r\nHost: x\r\n\r\nrest";
  for (std::size_t i = 0; i < text.size(); ++i) {  // byte by byte
    const std::size_t end = FindHeadEnd(std::string_view(text).substr(0, i), &scanned);
    if (i < text.size() - 4) {
      EXPECT_EQ(end, std::string_view::npos) << i;
    } else {
      EXPECT_EQ(end, text.size() - 4);
    }
  }
}

TEST(Http1Parser, RequestHeads) {
  struct Case {
    const char* name;
    const char* text;
    int error;  // 0: fine
  };
  constexpr Case kCases[] = {
      {"plain", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0},
      {"bare LF", "GET / HTTP/1.1\nHost: x\n\n", 0},
      {"no version", "GET /\r\n\r\n", 400},
      {"two spaces", "GET  / HTTP/1.1\r\n\r\n", 400},
      {"space in target", "GET /a b HTTP/1.1\r\n\r\n", 400},
      {"version 2", "GET / HTTP/2.0\r\n\r\n", 505},
      {"version text", "GET / HTTP/x.1\r\n\r\n", 400},
      {"method with a colon", "GE:T / HTTP/1.1\r\n\r\n", 400},
      {"space before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"folded line", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400},
      {"no colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", 400},
      {"control character", "GET / HTTP/1.1\r\nA: \x01\r\n\r\n", 400},
      {"bare CR in a value", "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400},
      {"empty name", "GET / HTTP/1.1\r\n: b\r\n\r\n", 400},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    auto head = ParseRequestHead(c.text);
    EXPECT_EQ(head.ok() ? 0 : head.error().status, c.error);
  }
}

TEST(Http1Parser, Framing) {
  struct Case {
    const char* name;
    std::vector<std::pair<const char*, const char*>> headers;
    int minor;
    int error;
    bool chunked;
    int length;  // -1: none
  };
  const Case kCases[] = {
      {"none", {}, 1, 0, false, -1},
      {"length", {{"content-length", "5"}}, 1, 0, false, 5},
      {"same length twice", {{"Content-Length", "5"}, {"content-length", "5"}}, 1, 0, false, 5},
      {"chunked", {{"Transfer-Encoding", "Chunked"}}, 1, 0, true, -1},
      {"two lengths", {{"Content-Length", "5"}, {"Content-Length", "6"}}, 1, 400, false, 0},
      {"list of lengths", {{"Content-Length", "5, 5"}}, 1, 400, false, 0},
      {"negative", {{"Content-Length", "-1"}}, 1, 400, false, 0},
      {"plus", {{"Content-Length", "+1"}}, 1, 400, false, 0},
      {"huge", {{"Content-Length", "99999999999999999999"}}, 1, 400, false, 0},
      {"both", {{"Content-Length", "5"}, {"Transfer-Encoding", "chunked"}}, 1, 400, false, 0},
      {"gzip", {{"Transfer-Encoding", "gzip, chunked"}}, 1, 501, false, 0},
      {"chunked twice", {{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}}, 1, 400, false, 0},
      {"chunked in 1.0", {{"Transfer-Encoding", "chunked"}}, 0, 400, false, 0},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Headers headers;
    for (const auto& [name, value] : c.headers) headers.Add(name, value);
    auto framing = FramingOf(headers, c.minor);
    ASSERT_EQ(framing.ok() ? 0 : framing.error().status, c.error);
    if (!framing.ok()) continue;
    EXPECT_EQ(framing->chunked, c.chunked);
    EXPECT_EQ(framing->length ? static_cast<int>(*framing->length) : -1, c.length);
  }
}

TEST(Http1Parser, Chunks) {
  struct Case {
    const char* name;
    std::string text;
    ChunkedDecoder::State want;
    std::string data;
    std::string rest;
  };
  using State = ChunkedDecoder::State;
  const Case kCases[] = {
      {"two chunks", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nnext", State::kDone, "abcde", "next"},
      {"extension", "3;a=b\r\nabc\r\n0\r\n\r\n", State::kDone, "abc", ""},
      {"trailers", "1\r\na\r\n0\r\nX: y\r\nZ: 1\r\n\r\n", State::kDone, "a", ""},
      {"upper case size", "A\r\n0123456789\r\n0\r\n\r\n", State::kDone, "0123456789", ""},
      {"incomplete", "3\r\nab", State::kMore, "ab", ""},
      {"no size", "\r\n", State::kBad, "", ""},
      {"bad digit", "g\r\n", State::kBad, "", ""},
      {"LF only", "3\nabc", State::kBad, "", ""},
      {"missing CRLF", "3\r\nabcd", State::kBad, "", ""},
      {"size too long", "00000000000000000001\r\n", State::kBad, "", ""},
      {"sign", "+3\r\n", State::kBad, "", ""},
  };
  for (const Case& c : kCases) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{1000}}) {
      SCOPED_TRACE(c.name);
      ChunkedDecoder decoder;
      std::string data;
      State state = State::kMore;
      std::string_view all = c.text;
      std::string_view rest;
      while (!all.empty() && state == State::kMore) {
        std::string_view piece = all.substr(0, step);
        const std::size_t size = piece.size();
        state = decoder.Feed(piece, [&](std::string_view bytes) { data += bytes; });
        all.remove_prefix(size - piece.size());
        rest = all;
      }
      EXPECT_EQ(state, c.want);
      if (c.want == State::kBad) continue;
      EXPECT_EQ(data, c.data);
      EXPECT_EQ(rest, c.rest);
    }
  }
}

TEST(Http1Parser, EndlessExtensionsAreRefused) {
  ChunkedDecoder decoder;
  std::string text = "1;" + std::string(100'000, 'x');
  std::string_view in = text;
  EXPECT_EQ(decoder.Feed(in, [](std::string_view) {}), ChunkedDecoder::State::kBad);
}

TEST(Message, CanonicalHeaderKey) {
  EXPECT_EQ(CanonicalHeaderKey("audit-id"), "Audit-Id");
  EXPECT_EQ(CanonicalHeaderKey("X-KUBERNETES-PF-FLOWSCHEMA-UID"), "X-Kubernetes-Pf-Flowschema-Uid");
  EXPECT_EQ(CanonicalHeaderKey("a b"), "a b");
}

TEST(Message, ParseTarget) {
  struct Case {
    const char* target;
    bool ok;
    const char* path;
    const char* query;
  };
  constexpr Case kCases[] = {{"/", true, "/", ""},
                             {"/a%2Fb?x=%20", true, "/a/b", "x=%20"},
                             {"/a?", true, "/a", ""},
                             {"*", true, "*", ""},
                             {"a", false, "", ""},
                             {"/%zz", false, "", ""},
                             {"/%2", false, "", ""},
                             {"/a\x7f", false, "", ""},
                             {"", false, "", ""},
                             {"/a?b?c", true, "/a", "b?c"},
                             {"/%E2%82%AC", true, "/\u20ac", ""}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.target);
    std::string path;
    std::string query;
    ASSERT_EQ(ParseTarget(c.target, &path, &query), c.ok);
    if (!c.ok) continue;
    EXPECT_EQ(path, c.path);
    EXPECT_EQ(query, c.query);
  }
}

TEST(Message, HeadersCompareWithoutCase) {
  Headers headers;
  headers.Add("Accept", "a");
  headers.Add("ACCEPT", "b");
  headers.Set("accept", "c");
  EXPECT_EQ(headers.Values("Accept").size(), 1U);
  EXPECT_EQ(headers.Get("aCCept"), "c");
  headers.Remove("ACCEPT");
  EXPECT_FALSE(headers.Has("Accept"));
  EXPECT_TRUE(HasToken("keep-alive, Upgrade", "upgrade"));
  EXPECT_FALSE(HasToken("upgraded", "upgrade"));
}

}  // namespace
}  // namespace keelson::http
