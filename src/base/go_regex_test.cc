#include "base/go_regex.h"

#include <gtest/gtest.h>

namespace keelson::base {
namespace {

TEST(GoRegex, NamedGroupsInBothOfGosSpellings) {
  for (const char* pattern : {"^(?<name>a+)$", "^(?P<name>a+)$", R"(^[(?<]+\(?<a$)"}) {
    const GoRegex regex(pattern);
    ASSERT_TRUE(regex.ok()) << regex.error();
  }
  EXPECT_TRUE(GoRegex("^(?<name>a+)$").Matches("aa"));
  EXPECT_FALSE(GoRegex("(?<=a)b").ok());
}

TEST(GoRegex, ErrorsEqualGo) {
  const struct {
    const char* pattern;
    const char* error;
  } kCases[] = {
      {"a(", "error parsing regexp: missing closing ): `a(`"},
      {"[a", "error parsing regexp: missing closing ]: `[a`"},
      {"*", "error parsing regexp: missing argument to repetition operator: `*`"},
      {"a**", "error parsing regexp: invalid nested repetition operator: `**`"},
      {"a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"},
      {"(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
  };
  for (const auto& c : kCases) EXPECT_EQ(GoRegex(c.pattern).error(), c.error);
}

}  // namespace
}  // namespace keelson::base
