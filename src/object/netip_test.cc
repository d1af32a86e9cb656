#include "object/netip.h"

#include <gtest/gtest.h>

namespace keelson::object {
namespace {

TEST(NetIP, ParseAddrAnswersAsGo) {
  struct Case {
    const char* text;
    const char* want;  // canonical form, or the error
    bool ok;
  };
  constexpr Case kCases[] = {
      {"10.0.0.1", "10.0.0.1", true},
      {"2001:db8:0:0:0:0:0:1", "2001:db8::1", true},
      {"::", "::", true},
      {"1:0:0:2:0:0:0:3", "1:0:0:2::3", true},
      {"::ffff:1.2.3.4", "::ffff:1.2.3.4", true},
      {"", "ParseAddr(\"\"): unable to parse IP", false},
      {"1.2.3", "ParseAddr(\"1.2.3\"): IPv4 address too short", false},
      {"01.2.3.4", "ParseAddr(\"01.2.3.4\"): IPv4 field has octet with leading zero", false},
      {"1.2.3.4/8", "ParseAddr(\"1.2.3.4/8\"): unexpected character (at \"/8\")", false},
      {"1::2::3", "ParseAddr(\"1::2::3\"): multiple :: in address (at \":3\")", false},
      {"fe80::%", "ParseAddr(\"fe80::%\"): zone must be a non-empty string", false},
      {"12345::", "ParseAddr(\"12345::\"): each group must have 4 or less digits (at \"12345::\")", false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto addr = ParseAddr(c.text);
    ASSERT_EQ(addr.ok(), c.ok);
    EXPECT_EQ(addr.ok() ? addr->ToString() : addr.error(), c.want);
  }
}

TEST(NetIP, PrefixesContainAndOverlap) {
  const Prefix net = *ParsePrefix("10.1.2.3/8");
  EXPECT_EQ(net.ToString(), "10.1.2.3/8");
  EXPECT_EQ(net.Masked().ToString(), "10.0.0.0/8");
  EXPECT_TRUE(net.Contains(*ParseAddr("10.200.0.1")));
  EXPECT_FALSE(net.Contains(*ParseAddr("11.0.0.1")));
  EXPECT_FALSE(net.Contains(*ParseAddr("::ffff:10.0.0.1")));
  EXPECT_TRUE(net.Overlaps(*ParsePrefix("10.1.0.0/16")));
  EXPECT_EQ(ParsePrefix("10.0.0.0").error(), "netip.ParsePrefix(\"10.0.0.0\"): no '/'");
  EXPECT_EQ(ParsePrefix("10.0.0.0/33").error(), "netip.ParsePrefix(\"10.0.0.0/33\"): prefix length out of range");
  EXPECT_EQ(ParsePrefix("10.0.0.0/08").error(), "netip.ParsePrefix(\"10.0.0.0/08\"): bad bits after slash: \"08\"");
}

}  // namespace
}  // namespace keelson::object
