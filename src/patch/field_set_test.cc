#include "patch/field_set.h"

#include <gtest/gtest.h>

namespace keelson::patch {
namespace {

using base::Arena;

FieldSet Set(Arena& arena, std::string_view json) {
  const auto set = FieldSet::Parse(arena, json);
  EXPECT_TRUE(set.has_value()) << json;
  return set.value_or(FieldSet());
}

TEST(FieldSet, ReadsAndWrites) {
  Arena arena;
  for (const char* json : {
           R"({})",
           R"({"f:a":{}})",
           R"({"f:a":{".":{},"f:b":{}},"f:c":{}})",
           R"({"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}},"f:finalizers":{".":{},"v:\"a.b/c\"":{}}})",
           R"({"f:l":{"i:0":{},"i:1":{}}})",
           R"({"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}}})",
           R"({"f:<&>":{}})",
           R"({"f:a\"b\\":{}})",
       }) {
    EXPECT_EQ(Set(arena, json).ToJSON(), json);
  }
  EXPECT_EQ(Set(arena, R"( { "f:b" : {} , "f:a" : { "f:x" : {} , "." : {} } , "x:future" : {"f:y":[1,"a",null]} } )")
                .ToJSON(),
            R"({"f:a":{".":{},"f:x":{}},"f:b":{}})");
  EXPECT_EQ(Set(arena, R"({"k:{\"b\":1,\"a\":2}":{}})").ToJSON(), R"({"k:{\"a\":2,\"b\":1}":{}})");
  EXPECT_EQ(Set(arena, "null").ToJSON(), "{}");
  for (const char* json :
       {"", "[]", "{", R"({"f:a"})", R"({"fa":{}})", R"({"k:x":{}})", R"({"i:x":{}})", R"({"f:a":5})", "{} {}"}) {
    EXPECT_FALSE(FieldSet::Parse(arena, json).has_value()) << json;
  }
}

TEST(FieldSet, Algebra) {
  Arena arena;
  const FieldSet a = Set(arena, R"({"f:a":{".":{},"f:x":{}},"f:b":{},"f:c":{"f:y":{}}})");
  const FieldSet b = Set(arena, R"({"f:a":{},"f:c":{"f:y":{},"f:z":{}},"f:d":{}})");
  EXPECT_EQ(FieldSet::Union(arena, a, b).ToJSON(),
            R"({"f:a":{".":{},"f:x":{}},"f:b":{},"f:c":{"f:y":{},"f:z":{}},"f:d":{}})");
  EXPECT_EQ(FieldSet::Intersection(arena, a, b).ToJSON(), R"({"f:a":{},"f:c":{"f:y":{}}})");
  EXPECT_EQ(FieldSet::Difference(arena, a, b).ToJSON(), R"({"f:a":{"f:x":{}},"f:b":{}})");
  EXPECT_EQ(FieldSet::RecursiveDifference(arena, a, b).ToJSON(), R"({"f:b":{}})");
  EXPECT_TRUE(FieldSet::Difference(arena, a, a).empty());
  EXPECT_TRUE(FieldSet::Union(arena, a, a) == a);
}

TEST(FieldSet, PathsAsText) {
  Arena arena;
  std::vector<std::string> paths;
  Set(arena, R"({"f:a":{"k:{\"name\":\"x\",\"port\":80}":{".":{},"f:v":{}},"v:\"s\"":{},"i:3":{}},"f:b":{}})")
      .ForEach([&](const Path& path) { paths.push_back(ToString(path)); });
  EXPECT_EQ(paths, (std::vector<std::string>{".b", ".a[name=\"x\",port=80]", ".a[=\"s\"]", ".a[3]",
                                             ".a[name=\"x\",port=80].v"}));
}

}  // namespace
}  // namespace keelson::patch
