#include "console/yaml_page.h"

#include <gtest/gtest.h>

namespace keelson::console {
namespace {

TEST(YAMLPageTest, ReadsAsTheServerDoes) {
  const auto json = [](std::string_view text) { return *PlainJSON(text); };
  EXPECT_EQ(json("b: 1\na: [x, yes, \"1\"]\n"), R"({"a":["x",true,"1"],"b":1})");
  EXPECT_EQ(json("t: |-\n  one\n  two\n# end\n"), R"({"t":"one\ntwo"})");
  EXPECT_EQ(json("{\"a\": null}"), R"({"a":null})");
}

TEST(YAMLPageTest, SaysWhatIsWrong) {
  const auto message = [](std::string_view text) {
    const auto done = PlainJSON(text);
    return done.ok() ? *done : std::string(done.error().message());
  };
  EXPECT_EQ(message("a: b: c\n"), "yaml: mapping values are not allowed in this context");
  EXPECT_NE(message("a: 1\nb: 2\na: 3\n").find("line 3: key \"a\" already set in map"), std::string::npos);
}

}  // namespace
}  // namespace keelson::console
