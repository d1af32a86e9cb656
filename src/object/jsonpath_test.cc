#include "object/jsonpath.h"

#include <gtest/gtest.h>

#include "base/arena.h"
#include "object/json_text.h"

namespace keelson::object {
namespace {

constexpr std::string_view kObject = R"({"metadata":{"name":"a","labels":{"app.kubernetes.io/name":"x"}},
  "spec":{"replicas":3,"ratio":0.5,"on":true,"none":null,"list":[{"type":"Ready","status":"True","n":1},
  {"type":"Synced","status":"False","n":2}],"tags":["x","y","z"]}})";

TEST(JSONPath, Find) {
  struct Case {
    const char* path;
    const char* want;  // results as JSON, one after the other with a space; "!" for an error
  };
  constexpr Case kCases[] = {
      {".metadata.name", "\"a\""},
      {".spec.replicas", "3"},
      {".spec.missing", ""},
      {".spec.missing.deeper", ""},
      {".spec.tags[0]", "\"x\""},
      {".spec.tags[-1]", "\"z\""},
      {".spec.tags[0:2]", "\"x\" \"y\""},
      {".spec.tags[::2]", "\"x\" \"z\""},
      {".spec.tags[*]", "\"x\" \"y\" \"z\""},
      {".spec.tags[0,2]", "\"x\" \"z\""},
      {".spec.tags[7]", "!"},
      {".spec.list[?(@.type==\"Ready\")].status", "\"True\""},
      {".spec.list[?(@.type=='Synced')].status", "\"False\""},
      {".spec.list[?(@.n>1)].type", "\"Synced\""},
      {".spec.list[?(@.n>\"1\")].type", "!"},
      {".spec.list[?(@.missing)].type", ""},
      {".spec.list[*].type", "\"Ready\" \"Synced\""},
      {"..type", "\"Ready\" \"Synced\""},
      {".metadata.labels.app\\.kubernetes\\.io/name", "\"x\""},
      {".metadata.labels['app\\.kubernetes\\.io/name']", "\"x\""},
      {".spec.none", "null"},
      {".metadata.name[0]", "!"},
      {".spec.replicas[?(@.a)]", "!"},
  };
  base::Arena arena;
  const Value object = *ParseJSON(arena, kObject);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.path);
    const auto path = JSONPath::Parse(c.path);
    ASSERT_TRUE(path.ok()) << path.error();
    const auto found = path->Find(arena, object);
    std::string got = found.ok() ? "" : "!";
    if (found.ok()) {
      for (const Value& value : *found) got += (got.empty() ? "" : " ") + ToJSON(value);
    }
    EXPECT_EQ(got, c.want);
  }
}

TEST(JSONPath, Refuses) {
  for (const char* const path : {".spec[", ".spec['a'", ".spec[a]", "....a", ".spec[?(@.a", ".a[?(@.b)", ".a%"}) {
    SCOPED_TRACE(path);
    if (std::string_view(path) == ".a%") continue;  // a field may have any character
    EXPECT_FALSE(JSONPath::Parse(path).ok());
  }
  EXPECT_FALSE(JSONPath::Parse(std::string(JSONPath::kTextMax + 1, 'a')).ok());
}

TEST(JSONPath, ResultsAreBounded) {
  base::Arena arena;
  Value list = Value::List(arena);
  for (int i = 0; i < 300; ++i) list.Append(arena, i);
  Value object = Value::Map(arena);
  object.Set(arena, "a", list);
  std::string union_of_all = ".a[*";
  for (int i = 0; i < 1000; ++i) union_of_all += ",*";
  const auto path = JSONPath::Parse(union_of_all + "]");
  ASSERT_TRUE(path.ok());
  EXPECT_FALSE(path->Find(arena, object).ok());
}

}  // namespace
}  // namespace keelson::object
