#include "registry/cells.h"

#include <gtest/gtest.h>

#include <chrono>

#include "registry/fields.h"
#include "registry/go_json.h"

namespace keelson::registry {
namespace {

class FixedClock : public base::Clock {
 public:
  SystemTime Now() const override { return SystemTime(std::chrono::seconds(1'700'000'000)); }
  SteadyTime Monotonic() const override { return {}; }
};

TEST(Cells, Age) {
  const FixedClock clock;  // 2023-11-14T22:13:20Z
  EXPECT_EQ(Age(clock, "2023-11-14T22:12:50Z"), "30s");
  EXPECT_EQ(Age(clock, "0500-01-01T00:00:00Z"), "285y");  // As far back as is counted.
  EXPECT_EQ(Age(clock, ""), "<unknown>");
  EXPECT_EQ(Age(clock, "2023-11-14T23:12:50.5+01:00"), "29s");
  EXPECT_EQ(Age(clock, "yesterday"), "<unknown>");
}

TEST(Cells, LabelSelectorText) {
  base::Arena arena;
  Value selector = Value::Map(arena);
  EXPECT_EQ(LabelSelectorText(selector), "<none>");
  selector.EnsureMap(arena, "matchLabels").Set(arena, "z", "1");
  Value expression = Value::Map(arena);
  expression.Set(arena, "key", "a");
  expression.Set(arena, "operator", "In");
  Value values = expression.EnsureList(arena, "values");
  values.Append(arena, "y");
  values.Append(arena, "x");
  selector.EnsureList(arena, "matchExpressions").Append(arena, expression);
  EXPECT_EQ(LabelSelectorText(selector), "a in (x,y),z=1");
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
