#include "base/escape.h"

#include <gtest/gtest.h>

namespace keelson::base {
namespace {

TEST(Escape, JSON) {
  std::string out = "x";
  AppendJSONEscaped(out, std::string_view("a\"\\\n\r\t\b\0<é\xff", 12));
  EXPECT_EQ(out, "xa\\\"\\\\\\n\\r\\t\\u0008\\u0000<é\xff");
}

TEST(Escape, HTML) {
  EXPECT_EQ(EscapeHTML(""), "");
  EXPECT_EQ(EscapeHTML("a<b>&amp;\"'"), "a&lt;b&gt;&amp;amp;\"'");
}

}  // namespace
}  // namespace keelson::base
