#include "base/go_url.h"

#include <gtest/gtest.h>

namespace keelson::base {
namespace {

TEST(GoURL, Parses) {
  struct Case {
    const char* text;
    const char* host;
    const char* port;
    const char* path;
    const char* query;
  };
  constexpr Case kCases[] = {
      {"https://example.com/a%20b?x=1", "example.com", "", "/a b", "x=1"},
      {"https://[::1]:8443", "::1", "8443", "", ""},
      {"http://10.0.0.1:80/", "10.0.0.1", "80", "/", ""},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    auto url = ParseURL(c.text);
    ASSERT_TRUE(url.ok());
    EXPECT_EQ(url->Hostname(), c.host);
    EXPECT_EQ(url->Port(), c.port);
    EXPECT_EQ(url->path, c.path);
    EXPECT_EQ(url->raw_query, c.query);
    EXPECT_EQ(url->ToString(), c.text);
  }
}

TEST(GoURL, ErrorsEqualGo) {
  struct Case {
    const char* text;
    const char* error;
  };
  constexpr Case kCases[] = {
      {":x", "parse \":x\": missing protocol scheme"},
      {"127.0.0.1:80", "parse \"127.0.0.1:80\": first path segment in URL cannot contain colon"},
      {"https://a:b/", "parse \"https://a:b/\": invalid port \":b\" after host"},
      {"https://[::1/", "parse \"https://[::1/\": missing ']' in host"},
      {"https://a b/", "parse \"https://a b/\": invalid character \" \" in host name"},
      {"https://a/%zz", "parse \"https://a/%zz\": invalid URL escape \"%zz\""},
      {"https://a/\n", "parse \"https://a/\\n\": net/url: invalid control character in URL"},
  };
  for (const Case& c : kCases) {
    auto url = ParseURL(c.text);
    ASSERT_FALSE(url.ok()) << c.text;
    EXPECT_EQ(url.error(), c.error);
  }
}

}  // namespace
}  // namespace keelson::base
