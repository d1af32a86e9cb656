#include "base/pem.h"

#include <gtest/gtest.h>

namespace keelson::base {
namespace {

std::string Types(std::string_view text) {
  std::string out;
  for (const PEMBlock& block : DecodeAllPEM(text))
    out += block.type + (block.has_headers ? "+" : "") + "=" + block.bytes + ";";
  return out;
}

// "YQ==" is "a", "Yg==" is "b".
TEST(PEM, ReadsBlocksAsGoDoes) {
  struct Case {
    const char* name;
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"one block", "-----BEGIN A-----\nYQ==\n-----END A-----\n", "A=a;"},
      {"without a newline at the end", "-----BEGIN A-----\nYQ==\n-----END A-----", "A=a;"},
      {"carriage returns", "-----BEGIN A-----\r\nYQ==\r\n-----END A-----\r\n", "A=a;"},
      {"text around", "x\n-----BEGIN A-----\nYQ==\n-----END A-----\ny\n", "A=a;"},
      {"two blocks", "-----BEGIN A-----\nYQ==\n-----END A-----\n-----BEGIN B-----\nYg==\n-----END B-----\n",
       "A=a;B=b;"},
      {"headers", "-----BEGIN A-----\nKey: value\n\nYQ==\n-----END A-----\n", "A+=a;"},
      {"spaces inside", "-----BEGIN A-----\n Y Q\t==\n-----END A-----\n", "A=a;"},
      {"a begin line that is not a line's start", "x-----BEGIN A-----\nYQ==\n-----END A-----\n", ""},
      {"other type at the end", "-----BEGIN A-----\nYQ==\n-----END B-----\n", ""},
      {"the last begin before an end counts", "-----BEGIN A-----\nYQ==\n-----BEGIN B-----\nYg==\n-----END B-----\n",
       "B=b;"},
      {"text after the end line", "-----BEGIN A-----\nYQ==\n-----END A----- x\n", ""},
      {"broken base64 is passed over",
       "-----BEGIN A-----\n!\n-----END A-----\n-----BEGIN B-----\nYg==\n-----END B-----\n", "B=b;"},
      {"empty block", "-----BEGIN A-----\n-----END A-----\n", "A=;"},
      {"no end", "-----BEGIN A-----\nYQ==\n", ""},
      {"dashes missing", "-----BEGIN A----\nYQ==\n-----END A----\n", ""},
      {"nothing", "", ""},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(Types(c.text), c.want);
  }
}

TEST(PEM, TextWithoutBlocksIsKept) {
  std::string_view text = "nothing here\n";
  EXPECT_FALSE(DecodePEM(text));
  EXPECT_EQ(text, "nothing here\n");
}

}  // namespace
}  // namespace keelson::base
