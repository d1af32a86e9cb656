#include "apidocs/openapi_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace keelson::apidocs {
namespace {

constexpr OpenAPIService::Time kNow{std::chrono::seconds(1794791831)};  // 2026-11-16 01:17:11 UTC

class OpenAPIServiceTest : public testing::Test {
 protected:
  static bool Enabled(const schema::Package& package) { return package.version == "v1" || package.version == "v2"; }

  OpenAPIService::Response Get(std::string_view path, OpenAPIService::Request more = {}) {
    more.path = path;
    more.now = kNow;
    return service_.Serve(more);
  }
  static std::string Header(const OpenAPIService::Response& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return {};
  }

  OpenAPIService service_{DiscoveryGroups(Enabled), {}};
};

TEST_F(OpenAPIServiceTest, Dates) {
  EXPECT_EQ(HTTPDate(kNow), "Mon, 16 Nov 2026 01:17:11 GMT");
  EXPECT_EQ(HTTPDate(OpenAPIService::Time{}), "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST_F(OpenAPIServiceTest, Root) {
  const auto root = Get("/openapi/v3");
  EXPECT_EQ(root.status, 200);
  EXPECT_EQ(Header(root, "Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(Header(root, "Etag"), "");
  const std::string etag = Header(Get("/openapi/v3/apis/apps/v1"), "Etag");
  ASSERT_EQ(etag.size(), 130U);
  const std::string link =
      "\"apis/apps/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/apps/v1?hash=" + etag.substr(1, 128) + "\"}";
  EXPECT_NE(std::string(root.body.view()).find(link), std::string::npos);
}

TEST_F(OpenAPIServiceTest, Hashes) {
  const auto plain = Get("/openapi/v3/api/v1");
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(Header(plain, "Vary"), "Accept");
  EXPECT_EQ(Header(plain, "Cache-Control"), "");
  const std::string hash = Header(plain, "Etag").substr(1, 128);
  const auto current = Get("/openapi/v3/api/v1", {.hash = hash});
  EXPECT_EQ(current.status, 200);
  EXPECT_EQ(Header(current, "Cache-Control"), "public, immutable");
  EXPECT_EQ(Header(current, "Expires"), "Tue, 16 Nov 2027 01:17:11 UTC");
  const auto stale = Get("/openapi/v3/api/v1", {.hash = "OLD"});
  EXPECT_EQ(stale.status, 301);
  EXPECT_EQ(Header(stale, "Location"), "/openapi/v3/api/v1?hash=" + hash);
  EXPECT_TRUE(stale.body.empty());
}

TEST_F(OpenAPIServiceTest, Refusals) {
  EXPECT_EQ(Get("/openapi/v3/apis/nope/v1").status, 404);
  EXPECT_EQ(Get("/openapi").status, 404);
  EXPECT_EQ(Get("/openapi/v2", {.accept = "text/html"}).status, 406);
  EXPECT_EQ(Get("/openapi/v3/version", {.accept = "text/html"}).status, 406);
  EXPECT_EQ(Get("/openapi/v3/version", {.accept = "text/html, */*;q=0.1"}).status, 200);
}

TEST_F(OpenAPIServiceTest, ConditionsAndRanges) {
  const auto whole = Get("/openapi/v2");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(Header(whole, "Accept-Ranges"), "bytes");
  EXPECT_EQ(std::ranges::count(whole.headers, "Vary", [](const auto& header) { return header.first; }), 2);
  const std::string etag = Header(whole, "Etag");
  EXPECT_EQ(Get("/openapi/v2", {.if_none_match = etag}).status, 304);
  EXPECT_EQ(Get("/openapi/v2", {.if_none_match = "\"x\", W/" + etag}).status, 304);
  EXPECT_EQ(Get("/openapi/v2", {.if_none_match = "\"x\""}).status, 200);
  EXPECT_EQ(Get("/openapi/v2", {.if_modified_since = Header(whole, "Last-Modified")}).status, 304);
  const auto part = Get("/openapi/v2", {.range = "bytes=0-9"});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body.view(), whole.body.view().substr(0, 10));
  EXPECT_EQ(Header(part, "Content-Range"), "bytes 0-9/" + std::to_string(whole.body.size()));
  EXPECT_EQ(Get("/openapi/v2", {.range = "bytes=-5"}).body.view(), whole.body.view().substr(whole.body.size() - 5));
  EXPECT_EQ(Get("/openapi/v2", {.range = "bytes=99999999-"}).status, 416);
  EXPECT_EQ(Get("/openapi/v2", {.range = "bytes=0-1,3-4"}).status, 200);
}

TEST_F(OpenAPIServiceTest, ProtobufOfV2) {
  const auto json = Get("/openapi/v2");
  for (const char* type : {"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
                           "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}) {
    const auto protobuf = Get("/openapi/v2", {.accept = type});
    EXPECT_EQ(protobuf.status, 200);
    EXPECT_EQ(Header(protobuf, "Content-Type"), "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    EXPECT_EQ(Header(protobuf, "Etag"), Header(json, "Etag"));
    // Document.swagger, then Document.info{title, version}.
    EXPECT_TRUE(
        protobuf.body.view().starts_with(std::string_view("\x0a\x03"
                                                          "2.0"
                                                          "\x12\x12\x0a\x0a"
                                                          "Kubernetes"
                                                          "\x12\x04"
                                                          "1.36")));
  }
  EXPECT_EQ(Get("/openapi/v3/version", {.accept = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"}).status,
            406);
}

TEST_F(OpenAPIServiceTest, ProtobufOfV3) {
  const auto json = Get("/openapi/v3/apis/apps/v1");
  for (const char* type : {"application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
                           "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}) {
    const auto protobuf = Get("/openapi/v3/apis/apps/v1", {.accept = type});
    EXPECT_EQ(protobuf.status, 200);
    EXPECT_EQ(Header(protobuf, "Content-Type"), "application/com.github.proto-openapi.spec.v3.v1.0+protobuf");
    EXPECT_EQ(Header(protobuf, "Etag"), Header(json, "Etag"));
    EXPECT_TRUE(
        protobuf.body.view().starts_with("\x0a\x05"
                                         "3.0.0"));
  }
  EXPECT_EQ(Get("/openapi/v2", {.accept = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}).status, 406);
}

// Documents of one size, and how often they were made.
class CountingSource final : public DiscoverySource {
 public:
  explicit CountingSource(std::size_t bytes) : bytes_(bytes) {
    auto fragment = std::make_shared<DiscoveryFragment>();
    fragment->group = "example.com";
    for (const char* const version : {"v1", "v2", "v3"})
      fragment->versions.push_back({version, std::string("\"") + version + "\""});
    fragments_->groups.push_back(std::move(fragment));
  }
  std::shared_ptr<const DiscoveryFragments> Discovery() const override { return fragments_; }
  std::string OpenAPIv3(std::string, std::string) const override {
    ++made;
    return "\"" + std::string(bytes_, 'x') + "\"";
  }
  void AppendOpenAPIv2(std::string&, std::string&) const override {}

  mutable int made = 0;

 private:
  const std::size_t bytes_;
  const std::shared_ptr<DiscoveryFragments> fragments_ = std::make_shared<DiscoveryFragments>();
};

TEST_F(OpenAPIServiceTest, DocumentsOfASourceAreKeptUpToABound) {
  struct Case {
    const char* name;
    std::size_t bytes;
    int made;
  };
  constexpr Case kCases[] = {
      {"all fit: each is made once", 1000, 3},
      {"two fit", OpenAPIService::kSourceDocumentBytesMax / 2 - 1000, 6},
      {"none fits", OpenAPIService::kSourceDocumentBytesMax, 6},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto source = std::make_shared<CountingSource>(c.bytes);
    const OpenAPIService service(DiscoveryGroups(Enabled), {}, source);
    for (int round = 0; round < 2; ++round) {
      for (const char* const version : {"v1", "v2", "v3"}) {
        const std::string path = std::string("/openapi/v3/apis/example.com/") + version;
        EXPECT_EQ(service.Serve({.path = path, .now = kNow}).status, 200);
      }
    }
    EXPECT_EQ(source->made, c.made);
  }
}

TEST_F(OpenAPIServiceTest, ConcurrentRequestsShareOneDocument) {
  std::vector<std::string> etags(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& etag : etags) {
      threads.emplace_back([this, &etag] { etag = Header(Get("/openapi/v3/api/v1"), "Etag"); });
    }
  }
  for (const std::string& etag : etags) EXPECT_EQ(etag, etags[0]);
}

}  // namespace
}  // namespace keelson::apidocs
