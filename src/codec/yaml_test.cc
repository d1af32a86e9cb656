#include "codec/yaml.h"

#include <gtest/gtest.h>

#include "codec/fixtures_test.h"
#include "codec/json.h"

namespace keelson::codec {
namespace {

using base::Arena;

std::string ToJSON(std::string_view text) {
  Arena arena;
  std::string out;
  const auto result = YAMLToJSON(arena, text, {}, out);
  return result.ok() ? out : "error: " + result.error().message;
}

TEST(YAML, ReadsAsGoDoes) {
  struct Case {
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"a: 1\nb: x", R"({"a":1,"b":"x"})"},
      {"a: yes\nb: off\nc: 'yes'\nd: y", R"({"a":true,"b":false,"c":"yes","d":true})"},
      {"a: ~\nb: null\nc:", R"({"a":null,"b":null,"c":null})"},
      {"a: 0x1f\nb: 0o17\nc: 017\nd: 0b101\ne: 1_000\nf: +5\ng: -7",
       R"({"a":31,"b":15,"c":15,"d":5,"e":1000,"f":5,"g":-7})"},
      {"a: 1.5\nb: 1e3\nc: .5\nd: 08", R"({"a":1.5,"b":1000,"c":0.5,"d":8})"},
      {"a: 18446744073709551615", R"({"a":18446744073709551615})"},
      {"a: 2024-01-01\nb: 2024-01-01T00:00:00Z", R"({"a":"2024-01-01","b":"2024-01-01T00:00:00Z"})"},
      {"a: 1.2.3\nb: 12:30", R"({"a":"1.2.3","b":"12:30"})"},
      {"1: a\ntrue: b\n1.5: c", R"({"1":"a","1.5":"c","true":"b"})"},
      {"a: !!str 5\nb: !!float 5\nc: !!binary aGk=\nd: !custom 7", R"({"a":"5","b":5,"c":"hi","d":"7"})"},
      {"a: |\n  x\n  y\nb: >\n  x\n  y\n", R"({"a":"x\ny\n","b":"x y\n"})"},
      {"x: &a {k: 1}\nz: *a", R"({"x":{"k":1},"z":{"k":1}})"},
      {"x: &a {k: 1, l: 2}\nz:\n  <<: *a\n  l: 3", R"({"x":{"k":1,"l":2},"z":{"k":1,"l":3}})"},
      {"z:\n  <<: [{k: 1}, {k: 2, m: 3}]", R"({"z":{"k":1,"m":3}})"},
      {R"({"a": [1, "b"]})", R"({"a":[1,"b"]})"},
      {"", "null"},
      {"a: [", "error: yaml: line 1: did not find expected node content"},
      {"a: b: c", "error: yaml: mapping values are not allowed in this context"},
      {"a: *x", "error: yaml: unknown anchor 'x' referenced"},
      {"a: &x [*x]", "error: yaml: anchor 'x' value contains itself"},
      {"a: 1\n---\nb: 2", R"({"a":1})"},
      {"---\n---\nb: 2", "null"},
      {"a: 1\n...\n%%%bad", R"({"a":1})"},
      {"<<: 5", "error: yaml: map merge requires map or sequence of maps as the value"},
      {"a: !!int x", "error: yaml: cannot decode !!str `x` as a !!int"},
      {"a: .nan", "error: json: unsupported value: NaN"},
      {"a: 1\na: 2", R"({"a":2})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(ToJSON(c.text), c.want);
  }
  EXPECT_EQ(ToJSON(std::string_view()), "null");  // no bytes at all, not even an address
}

TEST(YAML, DuplicatesAreStrictErrors) {
  Arena arena;
  const auto decoded = DecodeYAML(arena, "apiVersion: v1\nkind: ConfigMap\ndata: {}\ndata:\n  k: v\nfoo: 1\n",
                                  *schema::FindKind("", "v1", "ConfigMap"), {.strict = true});
  ASSERT_TRUE(decoded.ok());
  const std::vector<std::string> want = {"yaml: unmarshal errors:\n  line 5: key \"data\" already set in map",
                                         "unknown field \"foo\""};
  EXPECT_EQ(decoded->strict_errors, want);
  EXPECT_EQ(decoded->value["data"]["k"].as_string(), "v");
}

TEST(YAML, WritesAsGoDoes) {
  struct Case {
    const char* json;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"b":[1,{"c":"x"},[]],"a":{}})", "a: {}\nb:\n- 1\n- c: x\n- []\n"},
      {R"({"a":"yes","b":"1","c":"","d":"null","e":"2024-01-01","f":"x: y","g":"- x","h":"12:30:45"})",
       "a: \"yes\"\nb: \"1\"\nc: \"\"\nd: \"null\"\ne: \"2024-01-01\"\nf: 'x: y'\ng: '- x'\nh: \"12:30:45\"\n"},
      {R"({"a":"x\ny\n","b":null,"c":true,"d":1.5})", "a: |\n  x\n  y\nb: null\nc: true\nd: 1.5\n"},
      {R"({"a10":1,"a9":2,"a-b":3,"aB":4})", "a-b: 3\na9: 2\na10: 1\naB: 4\n"},
      {R"({"a":"word word word word word word word word word word word word word word word word word word"})",
       "a: word word word word word word word word word word word word word word word word\n  word word\n"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.json);
    Arena arena;
    std::string out;
    ASSERT_TRUE(JSONToYAML(arena, c.json, out).ok());
    EXPECT_EQ(out, c.want);
  }
}

TEST(YAML, ControlCharactersAreRefused) {
  EXPECT_FALSE(HasYAMLControlCharacters("{\"a\":\"\\u0001 \xC3\xA9 \xC2\x85 \xF0\x9F\x98\x80\"}\n"));
  EXPECT_TRUE(HasYAMLControlCharacters("\x7F"));
  EXPECT_TRUE(HasYAMLControlCharacters("\xC2\x80"));
  EXPECT_TRUE(HasYAMLControlCharacters("\xEF\xBF\xBF"));
  EXPECT_TRUE(HasYAMLControlCharacters("\x01"));
}

TEST(YAML, KeysThatJSONCannotHave) {
  const std::string null = "unsupported map key of type: %!s(<nil>), key: <nil>, value: ";
  const std::pair<const char*, std::string> cases[] = {
      {"{~: z}", null + "\"z\""},
      {"{null: 1.5}", null + "1.5"},
      {"{~: ~}", null + "<nil>"},
      {"{~: [1, ~, {a: true}]}",
       null + "[]interface {}{1, interface {}(nil), map[interface {}]interface {}{\"a\":true}}"},
      {"{? [1] : z}", "yaml: invalid map key: []interface {}{1}"},
      {"{? {a: b} : z}", "yaml: invalid map key: map[interface {}]interface {}{\"a\":\"b\"}"},
  };
  for (const auto& [text, error] : cases) {
    Arena arena;
    std::string json;
    const auto converted = YAMLToJSON(arena, text, {}, json);
    EXPECT_EQ(converted.ok() ? json : converted.error().message, error) << text;
  }
}

// A text without bytes may be a view of nothing, which libyaml does not take.
TEST(YAML, WritesEmptyTexts) {
  Arena arena;
  Value map = Value::Map(arena);
  map.Set(arena, "a", Value(std::string_view()));
  map.Set(arena, std::string_view(), Value(1));
  std::string out;
  EncodeYAML(map, out);
  EXPECT_EQ(out, "\"\": 1\na: \"\"\n");
}

TEST(YAML, RoundtripFixtures) {
  const auto fixtures = Fixtures();
  if (fixtures.empty()) GTEST_SKIP() << "no roundtrip fixtures at " << Suite("roundtrip");
  for (const Fixture& fixture : fixtures) {
    SCOPED_TRACE(fixture.name);
    Arena arena;
    const auto from_yaml = DecodeYAML(arena, fixture.yaml, *fixture.type, {.strict = true});
    ASSERT_TRUE(from_yaml.ok()) << from_yaml.error().message;
    EXPECT_TRUE(from_yaml->strict_errors.empty());
    const auto from_json = DecodeJSON(arena, fixture.json, *fixture.type);
    ASSERT_TRUE(from_json.ok());
    std::string yaml_json, json, yaml;
    EncodeJSON(from_yaml->value, *fixture.type, yaml_json);
    EncodeJSON(from_json->value, *fixture.type, json);
    EXPECT_EQ(yaml_json, json);
    ASSERT_TRUE(JSONToYAML(arena, json, yaml).ok());
    EXPECT_EQ(yaml, fixture.yaml);
  }
}

TEST(YAML, ListItemsEncodeSeparately) {
  const std::string long_words = [] {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "word" + std::to_string(i) + " ";
    return text;
  }();
  const std::vector<std::string> items = {R"({"a":1,"b":{"c":["x",{"d":null}],"e":[],"f":{}}})",
                                          "{}",
                                          R"("text")",
                                          "[1,[2]]",
                                          R"({"text":"two\nlines\n","quoted":": \"","folded":")" + long_words + R"("})",
                                          R"({"deep":{"deeper":{"folded":")" + long_words + R"("}}})"};
  std::string json = R"({"items":[)", by_item = "items:\n", whole;
  Arena arena;
  for (const std::string& item : items) {
    json += (&item == &items.front() ? "" : ",") + item;
    ASSERT_TRUE(JSONToYAMLItem(arena, item, by_item).ok());
  }
  ASSERT_TRUE(JSONToYAML(arena, json + "]}", whole).ok());
  EXPECT_EQ(by_item, whole);
}

TEST(YAML, Bombs) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'k'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) bomb += std::string(i > 0 ? "," : "") + "*" + static_cast<char>(c - 1);
    bomb += "]\n";
  }
  EXPECT_EQ(ToJSON(bomb), "error: yaml: document contains excessive aliasing");
  EXPECT_EQ(ToJSON(std::string(3 << 20, '[')), "error: yaml: exceeded max depth of 1000");
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(ToJSON(deep).substr(0, 12), "error: yaml:");
}

}  // namespace
}  // namespace keelson::codec
