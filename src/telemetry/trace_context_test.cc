#include "telemetry/trace_context.h"

#include <gtest/gtest.h>

namespace keelson::telemetry {
namespace {

constexpr std::string_view kTrace = "0af7651916cd43dd8448eb211c80319c";

TEST(TraceContext, ParseTraceparent) {
  struct Case {
    const char* name;
    const char* header;
    bool valid;
    bool sampled;
  };
  constexpr Case kCases[] = {
      {"sampled", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true, true},
      {"not sampled", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true, false},
      {"flag 2 is no sampling", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02", true, false},
      {"flags above 2 in version 0", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", false, false},
      {"more fields in version 0", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", false, false},
      {"more fields in a later version", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-extra", true, true},
      {"version ff", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false},
      {"upper case", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false, false},
      {"no hex", "00-zz-yy-01", false, false},
      {"zero trace", "00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false},
      {"zero span", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, false},
      {"short", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false, false},
      {"empty", "", false, false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto context = ParseTraceparent(c.header, "");
    ASSERT_EQ(context.has_value(), c.valid);
    if (context) EXPECT_EQ(context->sampled, c.sampled);
  }
}

TEST(TraceContext, FormatsWhatItParsed) {
  const std::string text = "00-" + std::string(kTrace) + "-b7ad6b7169203331-01";
  EXPECT_EQ(FormatTraceparent(*ParseTraceparent(text, "")), text);
}

TEST(TraceContext, ParseTraceState) {
  EXPECT_EQ(ParseTraceState("vendor=abc,o=1"), "vendor=abc,o=1");
  EXPECT_EQ(ParseTraceState(" a=1 , ,b=2"), "a=1,b=2");
  EXPECT_EQ(ParseTraceState("t1@sys=x"), "t1@sys=x");
  EXPECT_EQ(ParseTraceState("a=1,a=2"), "") << "a key twice";
  EXPECT_EQ(ParseTraceState("A=1"), "");
  EXPECT_EQ(ParseTraceState("a"), "");
  EXPECT_EQ(ParseTraceState("a="), "");
  std::string many;
  for (int i = 0; i < 33; ++i) many += "k" + std::to_string(i) + "=1,";
  EXPECT_EQ(ParseTraceState(many), "") << "more than 32 members";
}

TEST(TraceContext, BaggageIsBounded) {
  EXPECT_EQ(ParseContext("", "", "k=v").baggage, "k=v");
  EXPECT_EQ(ParseContext("", "", "nothing").baggage, "");
  EXPECT_EQ(ParseContext("", "", "k=" + std::string(kBaggageBytesMax, 'v')).baggage, "");
}

}  // namespace
}  // namespace keelson::telemetry
