#include "registry/cells.h"

#include <gtest/gtest.h>

#include "registry/go_json.h"

namespace keelson::registry {
namespace {

TEST(Cells, TimeNanoseconds) {
  EXPECT_EQ(TimeNanoseconds("1970-01-01T00:00:01Z"), 1'000'000'000);
  EXPECT_EQ(TimeNanoseconds("1970-01-01T01:00:00.5+01:00"), 500'000'000);
  EXPECT_EQ(TimeNanoseconds("1970-02-30T00:00:00Z"), std::nullopt);
  EXPECT_EQ(TimeNanoseconds(""), std::nullopt);
}

TEST(GoJSON, Errors) {
  struct Case {
    const char* json;
    const char* want;
  };
  constexpr Case kCases[] = {
      {R"({"a":[1,2,{"b":null}]})", ""},
      {"null", ""},
      {"", "unexpected end of JSON input"},
      {"x", "invalid character 'x' looking for beginning of value"},
      {"{x", "invalid character 'x' looking for beginning of object key string"},
      {R"({"a" 1})", "invalid character '1' after object key"},
      {R"({"a":1 2})", "invalid character '2' after object key:value pair"},
      {"[1 2]", "invalid character '2' after array element"},
      {"{} x", "invalid character 'x' after top-level value"},
      {"tru", "invalid character ' ' in literal true (expecting 'e')"},
      {"trux", "invalid character 'x' in literal true (expecting 'e')"},
      {"[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}"},
      {"\"a", "unexpected end of JSON input"},
      {"-", "invalid character ' ' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
  };
  for (const Case& c : kCases) EXPECT_EQ(GoUnmarshalMapError(c.json), c.want) << c.json;
}

}  // namespace
}  // namespace keelson::registry
