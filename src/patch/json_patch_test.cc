#include "patch/json_patch.h"

#include <gtest/gtest.h>

#include <map>

#include "patch/test_json.h"

namespace keelson::patch {
namespace {

using base::Arena;
using object::ToJSON;

// The document after the patch, or "error".
std::string Apply(std::string_view document, std::string_view patch) {
  Arena arena;
  const auto checked = CheckJSONPatch(J(arena, patch), false);
  if (!checked.ok()) return "error";
  const auto result = ApplyJSONPatch(arena, J(arena, document), *checked);
  if (result.ok()) return ToJSON(*result);
  EXPECT_EQ(result.error().code(), 422);
  EXPECT_EQ(result.error().message(), "the server rejected our request due to an error in our request");
  return "error";
}

// kube-apiserver (evanphx v4) deviates from the RFC here, and so do we: document and patch -> its
// result.
const std::map<std::string_view, std::string_view> kUpstreamInstead = {
    {R"({}[{"op":"add","path":"","value":[]}])", "error"},
    {R"([][{"op":"add","path":"","value":{}}])", "error"},
    {R"({"foo":"bar"}[{"op":"add","path":"","value":{"baz":"qux"}}])", "error"},
    {R"({"bar":[1,2]}[{"op":"add","path":"/bar/-1","value":"5"}])", R"({"bar":[1,2,"5"]})"},
    {R"([1][{"op":"add","path":"/-"}])", "[1,null]"},
    {R"([1][{"op":"replace","path":"/0"}])", "[null]"},
    {R"([null][{"op":"test","path":"/0"}])", "[null]"},
    {R"({"foo":1}[{"op":"copy","from":"/bar","path":"/foo"}])", R"({"foo":null})"},
    {R"(["foo","bar"][{"op":"test","path":"/00","value":"foo"}])", R"(["foo","bar"])"},
    {R"(["foo","bar"][{"op":"test","path":"/01","value":"bar"}])", R"(["foo","bar"])"},
};

TEST(JSONPatch, PublicSuite) {
  std::size_t ran = 0;
  std::size_t instead = 0;
  for (const char* name : {"json-patch/tests.json", "json-patch/spec_tests.json"}) {
    const auto text = SuiteFile(name);
    if (!text) GTEST_SKIP() << "the suite " << name << " is not here";
    Arena arena;
    for (const Value& test : J(arena, *text).items()) {
      if (test["disabled"].as_bool() || !test.Has("patch")) continue;
      SCOPED_TRACE(ToJSON(test));
      ++ran;
      const std::string patch = ToJSON(test["patch"]);
      const std::string document = ToJSON(test["doc"]);
      const std::string got = Apply(document, patch);
      if (const auto known = kUpstreamInstead.find(document + patch); known != kUpstreamInstead.end()) {
        ++instead;
        EXPECT_EQ(got, known->second);
      } else if (test.Has("error")) {
        EXPECT_EQ(got, "error");
      } else if (test.Has("expected")) {
        ASSERT_NE(got, "error");
        EXPECT_TRUE(J(arena, got) == test["expected"]) << got;
      } else {
        EXPECT_NE(got, "error");
      }
    }
  }
  EXPECT_EQ(ran, 108U);
  EXPECT_EQ(instead, kUpstreamInstead.size());
}

TEST(JSONPatch, AsUpstream) {
  struct Case {
    const char* document;
    const char* patch;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"a":1})", R"([{"op":"replace","path":"/b","value":2}])", R"({"a":1,"b":2})"},
      {R"({"a":[1]})", R"([{"op":"replace","path":"/a/1","value":2}])", "error"},
      {R"({"a":[1,2]})", R"([{"op":"replace","path":"/a/-1","value":3}])", R"({"a":[1,3]})"},
      {R"({"a":[1,2]})", R"([{"op":"remove","path":"/a/-2"}])", R"({"a":[2]})"},
      {R"({"a":[1,2]})", R"([{"op":"add","path":"/a/-4","value":3}])", "error"},
      {R"({"a":1})", R"([{"op":"remove","path":"/b"}])", "error"},
      {R"({"a":1})", R"([{"op":"test","path":"/b","value":null}])", R"({"a":1})"},
      {R"({"a":1})", R"([{"op":"test","path":"/a","value":1.0}])", "error"},
      {R"({"a":1})", R"([{"op":"add","path":"x/b","value":2}])", R"({"a":1,"b":2})"},
      {R"({"a":1})", R"([{"op":"frob","path":"/b"}])", "error"},
      {R"({"a":1})", R"([{"path":"/b"}])", "error"},
      {R"({"a":1})", R"([{"op":"add","value":2}])", "error"},
      {R"({"a":{"b":1}})", R"([{"op":"move","from":"/a","path":"/a/c"}])", "error"},
      {R"({"a":{"c~/d":1}})", R"([{"op":"remove","path":"/a/c~0~1d"}])", R"({"a":{}})"},
      {R"({"z":1,"a":{"y":1,"b":2},"c":{"y":1,"b":2}})", R"([{"op":"add","path":"/a/x","value":{"t":1,"s":2}}])",
       R"({"a":{"b":2,"x":{"t":1,"s":2},"y":1},"c":{"y":1,"b":2},"z":1})"},
      {R"({"b":1,"a":2})", "[]", R"({"a":2,"b":1})"},
      {R"({"a":1})", "null", R"({"a":1})"},
      {R"({"a":1})", R"([{"op":"replace","path":"","value":{"x":1}}])", R"({"x":1})"},
      {R"({"a":1})", R"([{"op":"replace","path":"","value":5}])", "error"},
      {R"({"a":1})", "[null]", "error"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.patch);
    EXPECT_EQ(Apply(c.document, c.patch), c.want);
  }
}

TEST(JSONPatch, MissingFromIsNamed) {
  Arena arena;
  for (const std::string op : {"move", "copy"}) {
    SCOPED_TRACE(op);
    const auto patched =
        TryJSONPatch(arena, J(arena, R"({"a":1})"), J(arena, R"([{"op":")" + op + R"(","path":"/b"}])"));
    ASSERT_FALSE(patched.ok());
    EXPECT_EQ(patched.error(), op + " operation failed to decode from: operation, missing from field: missing value");
  }
}

TEST(JSONPatch, ShapeErrors) {
  Arena arena;
  struct Case {
    const char* patch;
    bool checked;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"{}", true, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"},
      {"{}", false, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"},
      {"[5]", true, "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"},
      {"[5]", false, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"},
      {"[{\"op\":1}]", true,
       "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.patch);
    const auto result = CheckJSONPatch(J(arena, c.patch), c.checked);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), 400);
    EXPECT_EQ(result.error().message(), c.want);
  }
  EXPECT_EQ(JSONPatchUnknownFields(J(arena, R"([{"op":"add","x":1},{"path":"","y":2}])")),
            (std::vector<std::string>{"json patch unknown field \"[0].x\"", "json patch unknown field \"[1].y\""}));
}

TEST(JSONPatch, Limits) {
  Arena arena;
  Value many = Value::List(arena);
  for (std::size_t i = 0; i <= kJSONPatchOperationsMax; ++i) many.Append(arena, Value::Map(arena));
  const auto too_many = CheckJSONPatch(many, true);
  ASSERT_FALSE(too_many.ok());
  EXPECT_EQ(too_many.error().code(), 413);
  EXPECT_EQ(too_many.error().message(),
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001");

  // Copies double the document each time: the sum of what was copied is bounded.
  std::string patch = "[";
  for (int i = 0; i < 40; ++i) patch += std::string(i > 0 ? "," : "") + R"({"op":"copy","from":"/a","path":"/a/-"})";
  EXPECT_EQ(Apply(R"({"a":["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]})", patch + "]"), "error");

  // Each copy doubles the depth: that is bounded too, before anything recurses that deep.
  Value deep = Value::List(arena);
  Value leaf = deep;
  for (int i = 0; i < 900; ++i) {
    const Value next = Value::List(arena);
    leaf.Append(arena, next);
    leaf = next;
  }
  Value document = Value::Map(arena);
  document.Set(arena, "a", deep);
  Value operations = Value::List(arena);
  std::string path = "/a";
  for (int i = 0; i < 12; ++i) {
    for (int j = 0; j < 900; ++j) path += "/0";
    Value operation = Value::Map(arena);
    operation.Set(arena, "op", "add");
    operation.Set(arena, "path", Value::String(arena, path + "/-"));
    operation.Set(arena, "value", deep);
    operations.Append(arena, operation);
    path += "/0";
  }
  EXPECT_FALSE(ApplyJSONPatch(arena, document, operations).ok());
}

TEST(JSONPatch, LeavesTheDocument) {
  Arena arena;
  const Value document = J(arena, R"({"a":{"b":[1,2]}})");
  ASSERT_TRUE(ApplyJSONPatch(arena, document, J(arena, R"([{"op":"remove","path":"/a/b/0"}])")).ok());
  EXPECT_EQ(ToJSON(document), R"({"a":{"b":[1,2]}})");
}

}  // namespace
}  // namespace keelson::patch
