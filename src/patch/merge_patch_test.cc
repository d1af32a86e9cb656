#include "patch/merge_patch.h"

#include <gtest/gtest.h>

#include "patch/test_json.h"

namespace keelson::patch {
namespace {

TEST(MergePatch, Cases) {
  struct Case {
    const char* document;
    const char* patch;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
      {R"({"a":null})", R"({"a":{"x":null,"y":1}})", R"({"a":{"y":1}})"},
      // Nulls inside lists of new values go as well: upstream, not the RFC.
      {R"({})", R"({"a":[{"b":null,"c":1},null]})", R"({"a":[{"c":1},null]})"},
      {R"({"a":{"x":1}})", R"({"a":[{"b":null}]})", R"({"a":[{"b":null}]})"},
      {R"({"z":1,"m":{"y":1,"b":1}})", R"({"a":1})", R"({"a":1,"m":{"y":1,"b":1},"z":1})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.patch);
    base::Arena arena;
    const Value document = J(arena, c.document);
    const auto result = ApplyMergePatch(arena, document, J(arena, c.patch), true);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(object::ToJSON(*result), c.want);
    EXPECT_EQ(object::ToJSON(document), c.document);
  }
}

TEST(MergePatch, Errors) {
  base::Arena arena;
  const Value document = J(arena, "{}");
  const auto message = [&](const char* patch, bool checked) {
    const auto result = ApplyMergePatch(arena, document, J(arena, patch), checked);
    return result.ok() ? object::ToJSON(*result) : std::string(result.error().message());
  };
  EXPECT_EQ(message("[]", true),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}");
  EXPECT_EQ(message("\"x\"", true),
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}");
  EXPECT_EQ(message("[1]", false), "[1]");
  EXPECT_EQ(message("5", false), "Invalid JSON Patch");
  EXPECT_EQ(message("null", true), "Invalid JSON Patch");
}

}  // namespace
}  // namespace keelson::patch
