#include "storage/continue_token.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace keelson::storage {
namespace {

TEST(ContinueToken, EncodesAsUpstream) {
  const std::string token = EncodeContinue(std::string("/pods/default/p1\0", 17), "/pods/default/", 12);
  EXPECT_EQ(*base::Base64URLDecode(token), R"({"v":"meta.k8s.io/v1","rv":12,"start":"p1\u0000"})");
  EXPECT_EQ(token.find('='), std::string::npos);
}

TEST(ContinueToken, Decodes) {
  struct Case {
    const char* name;
    const char* json;
    const char* want;  // the start key, or the error
    std::int64_t revision;
  };
  constexpr Case kCases[] = {
      {"store's", R"({"v":"meta.k8s.io/v1","rv":12,"start":"default/p1"})", "/pods/default/p1", 12},
      {"cache's", R"({"v":"meta.k8s.io/v1","rv":12,"start":"/default/p1"})", "/pods/default/p1", 12},
      {"latest", R"({"v":"meta.k8s.io/v1","rv":-1,"start":"a"})", "/pods/a", -1},
      {"escapes", R"({ "rv" : 3, "start" : "a\u0041\n\/b", "v":"meta.k8s.io/v1"})", "/pods/aA\n/b", 3},
      {"version", R"({"v":"v2","rv":12,"start":"a"})",
       "continue key is not valid: server does not recognize this encoded version v2", 0},
      {"revision", R"({"v":"meta.k8s.io/v1","rv":0,"start":"a"})",
       "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)", 0},
      {"start", R"({"v":"meta.k8s.io/v1","rv":1,"start":""})",
       "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)", 0},
      {"parent", R"({"v":"meta.k8s.io/v1","rv":1,"start":"../secrets"})", "continue key is not valid: ../secrets", 0},
      {"twice a slash", R"({"v":"meta.k8s.io/v1","rv":1,"start":"a//b"})", "continue key is not valid: a//b", 0},
      {"cut off", R"({"v":"meta.k8s.io/v1")", "continue key is not valid: unexpected end of JSON input", 0},
      {"no object", "[]",
       "continue key is not valid: json: cannot unmarshal array into Go value of type storage.continueToken", 0},
      {"no number", R"({"v":"meta.k8s.io/v1","rv":"1","start":"a"})",
       "continue key is not valid: json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
       0},
      {"member of others", R"({"v":"meta.k8s.io/v1","rv":1,"x":[{}],"start":"a"})", "/pods/a", 1},
      {"more behind", R"({"v":"meta.k8s.io/v1","rv":1,"start":"a"}x)",
       "continue key is not valid: invalid character 'x' after top-level value", 0},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto token = DecodeContinue(base::Base64URLEncode(c.json), "/pods/");
    EXPECT_EQ(token.ok() ? token->start_key : token.error(), c.want);
    if (token.ok()) EXPECT_EQ(token->resource_version, c.revision);
  }
}

}  // namespace
}  // namespace keelson::storage
