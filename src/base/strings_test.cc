#include "base/strings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "base/go_int.h"
#include "base/split_view.h"

namespace keelson::base {
namespace {

TEST(Strings, GoQuote) {
  EXPECT_EQ(GoQuote("plain"), "\"plain\"");
  EXPECT_EQ(GoQuote("a\"b\\c\n\x01\xff"), "\"a\\\"b\\\\c\\n\\x01\\xff\"");
  EXPECT_EQ(GoQuote("héllo\u200b"), "\"héllo\\u200b\"");
}

TEST(Strings, Base64RoundTrip) {
  for (const std::string_view text : {"", "a", "ab", "abc", "abcd", "\xff\xfe\x00x"}) {
    EXPECT_EQ(Base64Decode(Base64Encode(text)), text);
    EXPECT_EQ(Base64URLDecode(Base64URLEncode(text)), text);
  }
  EXPECT_FALSE(Base64Decode("a").has_value());
  EXPECT_FALSE(Base64Decode("ab=").has_value());
  EXPECT_FALSE(Base64Decode("ab==c").has_value());
  EXPECT_FALSE(Base64Decode("a$bc").has_value());
}

TEST(Strings, Numbers) {
  EXPECT_EQ(ParseInt64("-12"), -12);
  EXPECT_EQ(ParseInt64("+5"), 5);
  for (const auto* bad : {"", "+", "-", " 1", "1 ", "0x1", "9223372036854775808", "1.0"})
    EXPECT_FALSE(ParseInt64(bad)) << bad;
  EXPECT_EQ(ParseUint64("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(ParseUint64("-1"));
}

TEST(Strings, UTF8) {
  EXPECT_TRUE(IsValidUTF8("héé€𝄞"));
  for (const auto* bad : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82"})
    EXPECT_FALSE(IsValidUTF8(bad));
  EXPECT_EQ(ToValidUTF8("a\xffz"), "a\xef\xbf\xbdz");
}

TEST(Strings, SplitViewHasThePartsOfSplit) {
  for (const std::string_view text : {"", ",", "a", "a,", ",a", "a,,b", "alpha,beta,gamma"}) {
    SCOPED_TRACE(text);
    std::vector<std::string_view> parts;
    for (const std::string_view part : SplitView(text, ',')) parts.push_back(part);
    EXPECT_EQ(parts, Split(text, ','));
  }
}

TEST(Strings, SplitAndTrim) {
  EXPECT_EQ(Split("", ',').size(), 1u);
  EXPECT_EQ(Split("a,,b", ',').size(), 3u);
  EXPECT_EQ(Trim(" \t x \n"), "x");
  EXPECT_TRUE(EqualsIgnoreCase("Content-TYPE", "content-type"));
  EXPECT_EQ(ReplaceAll("a/b/c", "/", "~1"), "a~1b~1c");
}

TEST(GoInt64, OutOfRangeIsTheSmallestNumber) {
  EXPECT_EQ(GoInt64(-2.9), -2);
  EXPECT_EQ(GoInt64(-0x1p63), INT64_MIN);
  for (const double value : {0x1p63, 1e300, -1e300, std::nan("")}) EXPECT_EQ(GoInt64(value), INT64_MIN);
}

}  // namespace
}  // namespace keelson::base
