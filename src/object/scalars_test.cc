#include <gtest/gtest.h>

#include "object/duration.h"
#include "object/quantity.h"
#include "object/time.h"

namespace keelson::object {
namespace {

TEST(Quantity, ThirtyEightDigitsDoNotOverflow) {
  const std::string nines(38, '9');
  struct Case {
    std::string a, b, sum;
  };
  const Case kCases[] = {
      {nines, "0", nines},
      {nines, nines, "2" + std::string(38, '0')},  // rounded up in its last place
      {"-" + nines, "-" + nines, "-2" + std::string(38, '0')},
      {nines, "-" + nines, "0"},
      {nines + "e2", "1", "1" + std::string(40, '0')},  // one is less than the last place, and is rounded up to it
      {"0e2000000000", "1", "1"},                       // was a loop of two thousand million steps
      {"1", "0e2000000000", "1"},
      {"1Ki", "1e37", "1" + std::string(33, '0') + "1024"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.a + " + " + c.b);
    auto a = Quantity::Parse(c.a);
    const auto b = Quantity::Parse(c.b);
    ASSERT_TRUE(a.ok() && b.ok());
    a->Add(*b);
    const auto want =
        Quantity::Parse(c.sum.size() > 38 ? c.sum.substr(0, 38) + "e" + std::to_string(c.sum.size() - 38) : c.sum);
    if (want.ok()) EXPECT_EQ(a->Compare(*want), 0) << a->ToString();
    EXPECT_FALSE(a->ToString().empty());
    EXPECT_EQ(a->Sign() > 0, a->Value() > 0);
  }
  for (const std::string_view suffix : {"", "k", "m", "u", "n", "E", "Ki", "Ei", "e1", "e2", "e-1", "e2147483600"}) {
    const auto parsed = Quantity::Parse(nines + std::string(suffix));
    if (!parsed.ok()) continue;
    const std::string text = parsed->ToString();
    EXPECT_LE(text.size(), Quantity::kTextMax);
    EXPECT_EQ(parsed->MilliValue(), INT64_MAX);
  }
}

TEST(Quantity, CanonicalText) {
  struct Case {
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"0", "0"},
      {"0m", "0"},
      {"1000m", "1"},
      {"1500m", "1500m"},
      {"1.5", "1500m"},
      {"0.1", "100m"},
      {"0.10", "100m"},
      {"100m", "100m"},
      {"1000", "1k"},
      {"1024Mi", "1Gi"},
      {"1030Mi", "1030Mi"},
      {"1500Mi", "1500Mi"},
      {"1Gi", "1Gi"},
      {"0.5Gi", "512Mi"},
      {"1023", "1023"},
      {"512Ki", "512Ki"},
      {"1e3", "1e3"},
      {"1E3", "1E3"},
      {"1000e0", "1e3"},
      {"-5", "-5"},
      {"+5", "+5"},
      {"1.500", "1.500"},
      {"100n", "100n"},
      {"0.0000000001", "1n"},
      {"-0.0000000001", "-1n"},
      {"12e6", "12e6"},
      {"1.2e7", "1.2e7"},
      {"1.25e7", "12500e3"},
      {"0.001Ki", "1024m"},
      {"9223372036854775807", "9223372036854775807"},
      {"99999999999999999999", "99999999999999999999"},
      {"16Ei", "9223372036854775807"},
      {"Mi", "0"},
      {".", "0"},
      {"5.", "5."},
      {"1Ki", "1Ki"},
      {"8Ki", "8Ki"},
      {"1023Ki", "1023Ki"},
      {"1P", "1P"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto parsed = Quantity::Parse(c.text);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->ToString(), c.want);
    char buffer[Quantity::kTextMax];
    EXPECT_EQ(*Quantity::Canonical(c.text, buffer), c.want);
  }
}

TEST(Quantity, Refuses) {
  constexpr const char* kWrong[] = {
      "", "1i", "abc", "1 Gi", "1Kii", "1e", "1ee3", "0x10", "1.2.3", "--1", "1e99999999999999999999"};
  for (const char* text : kWrong) EXPECT_FALSE(Quantity::Parse(text).ok()) << text;
  EXPECT_EQ(Quantity::Parse("1 Gi").error(),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  EXPECT_EQ(Quantity::Parse("1Kii").error(), "unable to parse quantity's suffix");
}

TEST(Quantity, Computes) {
  Quantity a = *Quantity::Parse("1500m");
  EXPECT_EQ(a.Value(), 2);
  EXPECT_EQ(a.MilliValue(), 1500);
  a.Add(*Quantity::Parse("500m"));
  EXPECT_EQ(a.ToString(), "2");
  EXPECT_EQ(a, Quantity(2));
  a.Sub(*Quantity::Parse("3"));
  EXPECT_EQ(a.ToString(), "-1");
  EXPECT_LT(a.Compare(Quantity()), 0);
  Quantity b = *Quantity::Parse("1Gi");
  b.Add(*Quantity::Parse("1Gi"));
  EXPECT_EQ(b.ToString(), "2Gi");
  EXPECT_EQ(b.Value(), 2147483648);
  Quantity c = *Quantity::Parse("1500u");
  c.RoundUp(-3);
  EXPECT_EQ(c.ToString(), "2m");
  EXPECT_EQ(Quantity::Parse("1e1000")->Value(), INT64_MAX);
  EXPECT_GT(Quantity::Parse("1e1000")->Compare(*Quantity::Parse("1e999")), 0);
}

TEST(Time, ReadsAndWrites) {
  struct Case {
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"2008-01-01T01:01:01Z", "2008-01-01T01:01:01Z"}, {"2024-02-29T23:59:59+02:00", "2024-02-29T21:59:59Z"},
      {"1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"}, {"2024-01-01T00:00:00.999Z", "2024-01-01T00:00:00Z"},
      {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"}, {"9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto parsed = ParseTime(c.text);
    ASSERT_TRUE(parsed.ok()) << parsed.error();
    EXPECT_EQ(FormatTime(parsed->seconds), c.want);
  }
  EXPECT_TRUE(ParseTime("0001-01-01T00:00:00Z")->IsZero());
  EXPECT_EQ(FormatMicroTime(*ParseTime("2024-01-01T00:00:00.123456Z", true)), "2024-01-01T00:00:00.123456Z");
}

TEST(Time, ErrorsEqualGo) {
  EXPECT_EQ(ParseTime("abc").error(),
            R"(parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006")");
  EXPECT_EQ(ParseTime("").error(), R"(parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006")");
  EXPECT_EQ(ParseTime("2024-13-01T00:00:00Z").error(), R"(parsing time "2024-13-01T00:00:00Z": month out of range)");
  EXPECT_EQ(ParseTime("2023-02-29T00:00:00Z").error(), R"(parsing time "2023-02-29T00:00:00Z": day out of range)");
  EXPECT_EQ(ParseTime("2024-01-01T00:00:00Zx").error(), R"(parsing time "2024-01-01T00:00:00Zx": extra text: "x")");
  EXPECT_EQ(ParseTime("2024-01-01").error(),
            R"(parsing time "2024-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T")");
}

TEST(Duration, ReadsAndWrites) {
  struct Case {
    const char* text;
    const char* want;
  };
  constexpr Case kCases[] = {{"0", "0s"},
                             {"1h", "1h0m0s"},
                             {"90s", "1m30s"},
                             {"1.5s", "1.5s"},
                             {"300ms", "300ms"},
                             {"1500us", "1.5ms"},
                             {"-2m", "-2m0s"},
                             {"1ns", "1ns"},
                             {"100\xC2\xB5s", "100\xC2\xB5s"},
                             {"2562047h47m16.854775807s", "2562047h47m16.854775807s"}};
  for (const Case& c : kCases) {
    const auto parsed = ParseDuration(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text;
    EXPECT_EQ(FormatDuration(*parsed), c.want);
  }
  EXPECT_EQ(ParseDuration("5").error(), R"(time: missing unit in duration "5")");
  EXPECT_EQ(ParseDuration("5x").error(), R"(time: unknown unit "x" in duration "5x")");
  EXPECT_EQ(ParseDuration("abc").error(), R"(time: invalid duration "abc")");
  EXPECT_FALSE(ParseDuration("9999999h").ok());
}

}  // namespace
}  // namespace keelson::object
