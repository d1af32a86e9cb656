#include "codec/document.h"

#include <gtest/gtest.h>

namespace keelson::codec {
namespace {

TEST(Document, Read) {
  struct Case {
    const char* name;
    const char* text;
    const char* json;
    const char* kind;
    const char* error;
  };
  constexpr Case kCases[] = {
      {"JSON stays as it is", " {\"kind\": \"A\"} ", " {\"kind\": \"A\"} ", "A", ""},
      {"YAML", "kind: A\nb: [1]\n", "{\"b\":[1],\"kind\":\"A\"}", "A", ""},
      {"empty", "", "null", "", ""},
      {"flow mapping of YAML", "{kind: A}", "", "",
       "couldn't get version/kind; json parse error: invalid character 'k' looking for beginning of object key string"},
      {"JSON with a tail", "{} {}", "", "",
       "couldn't get version/kind; json parse error: invalid character '{' after top-level value"},
      {"bad YAML", "a: b: c", "", "", "yaml: mapping values are not allowed in this context"},
      {"kind that is no text", "kind: 7", "", "",
       "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type "
       "string"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const auto document = ReadDocument(arena, c.text);
    EXPECT_EQ(document.ok() ? "" : document.error(), c.error);
    if (!document.ok()) continue;
    EXPECT_EQ(document->json, c.json);
    EXPECT_EQ(document->type_meta.kind, c.kind);
  }
}

TEST(Document, StrictErrorsOfYAMLComeFirst) {
  base::Arena arena;
  const schema::Struct* const type = schema::FindKind("", "v1", "Pod");
  ASSERT_NE(type, nullptr);
  const auto document = ReadDocument(arena, "kind: Pod\nkind: Pod\ntypo: 1\n", {.strict = true});
  ASSERT_TRUE(document.ok());
  const auto decoded = DecodeDocument(arena, *document, *type, {.strict = true});
  ASSERT_TRUE(decoded.ok());
  const std::vector<std::string> want = {"yaml: unmarshal errors:\n  line 2: key \"kind\" already set in map",
                                         "unknown field \"typo\""};
  EXPECT_EQ(decoded->strict_errors, want);
}

}  // namespace
}  // namespace keelson::codec
