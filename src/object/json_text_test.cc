#include "object/json_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "object/json_scan.h"

namespace keelson::object {
namespace {

TEST(JSONText, Doubles) {
  struct Case {
    double value;
    const char* json;
    const char* printed;
  };
  constexpr Case kCases[] = {
      {0, "0", "0"},
      {1.5, "1.5", "1.5"},
      {-2, "-2", "-2"},
      {100, "100", "100"},
      {0.001, "0.001", "0.001"},
      {0.00001, "0.00001", "1e-05"},
      {1e-7, "1e-7", "1e-07"},
      {1.25e-9, "1.25e-9", "1.25e-09"},
      {1e20, "100000000000000000000", "1e+20"},
      {1e21, "1e+21", "1e+21"},
      {123456789.125, "123456789.125", "1.23456789125e+08"},
      {1.7976931348623157e308, "1.7976931348623157e+308", "1.7976931348623157e+308"},
  };
  for (const Case& c : kCases) {
    std::string json;
    AppendJSONDouble(json, c.value);
    EXPECT_EQ(json, c.json);
    EXPECT_EQ(GoDouble(c.value), c.printed);
  }
}

TEST(JSONText, Strings) {
  const auto text = [](std::string_view value) {
    std::string out;
    AppendJSONString(out, value);
    return out;
  };
  EXPECT_EQ(text("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(text("<&>"), R"("\u003c\u0026\u003e")");
  EXPECT_EQ(text("\n\t\x01"), R"("\n\t\u0001")");
  EXPECT_EQ(text("h\xc3\xa9 \xe2\x80\xa8"), "\"h\xc3\xa9 \\u2028\"");
  EXPECT_EQ(text("\xff"), R"("\ufffd")");
}

TEST(JSONText, Trees) {
  Arena arena;
  Value map = Value::Map(arena);
  map.Set(arena, "b", 1);
  map.Set(arena, "a", Value());
  Value list = Value::List(arena);
  list.Append(arena, true);
  list.Append(arena, Value::Raw("{\"x\": 1}"));
  map.Set(arena, "l", list);
  EXPECT_EQ(ToJSON(map), R"({"b":1,"a":null,"l":[true,{"x":1}]})");
}

TEST(JSONText, Parses) {
  Arena arena;
  for (const char* text : {"null", "true", "[1,-2,1.5,1e+30,\"a\\\"b\\\\\"]", "{\"a\":{\"b\":[]},\"c\":\"h\xc3\xa9\"}",
                           "9223372036854775807"}) {
    const auto value = ParseJSON(arena, text);
    ASSERT_TRUE(value.has_value()) << text;
    EXPECT_EQ(ToJSON(*value), text);
  }
  EXPECT_EQ(ToJSON(*ParseJSON(arena, " { \"a\" : [ 1 , 2 ] , \"a\" : \"\\u00e9\\ud83d\\ude00\\ud800x\" } ")),
            "{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbdx\"}");
  for (const char* text :
       {"", "{", "[1,]", "{\"a\"}", "01", "1.", "-", "\"\\x\"", "\"a\nb\"", "1 2", "nul", "{\"a\":1,}", "'a'"}) {
    EXPECT_FALSE(ParseJSON(arena, text).has_value()) << text;
  }
  EXPECT_FALSE(ParseJSON(arena, std::string(5000, '[')).has_value());
}

TEST(JSONScan, FindsTheFirstSpecialByteAtEveryPlace) {
  for (const char special :
       {'"', '\\', '\n', '\0', '\x1f', ' ', '!', '#', '[', ']', '\x7f', '\x80', '\xa2', '\xdc', '\xff'}) {
    const bool ends = special == '"' || special == '\\';
    const bool control = static_cast<unsigned char>(special) < 0x20;
    for (std::size_t place = 0; place < 20; ++place) {
      for (std::size_t size = place + 1; size < 26; ++size) {
        std::string text(size, 'x');
        text[place] = special;
        if (place + 1 < size) text[place + 1] = '"';  // Found where `special` is nothing to stop at.
        const std::size_t next = std::min(place + 1, size);
        for (std::size_t from = 0; from <= place; ++from) {
          EXPECT_EQ(FindStringEnd(text, from), ends ? place : next)
              << int{special} << " at " << place << " of " << size;
          EXPECT_EQ(FindStringSpecial(text, from), ends || control ? place : next)
              << int{special} << " at " << place << " of " << size;
        }
      }
    }
  }
  EXPECT_EQ(FindStringEnd("abc", 3), 3U);
  EXPECT_GE(FindStringEnd("abc", 4), 3U);
}

// Byte by byte, as FindContainerEnd() says.
std::size_t SlowContainerEnd(std::string_view text, int depth_max) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (c == '{' || c == '[') {
      if (++depth > depth_max) return std::string_view::npos;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return i + 1;
    }
  }
  return std::string_view::npos;
}

TEST(JSONScan, FindsTheEndOfContainers) {
  // Pieces make up strings with escapes and brackets at all places of a block of 64 bytes.
  constexpr std::string_view kPieces[] = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "12",
                                          " ",
                                          "\"a\"",
                                          R"("\"")",
                                          R"("\\")",
                                          R"("\\\"")",
                                          "\"{\"",
                                          "{}",
                                          R"("]}[{")",
                                          R"("\u007b")",
                                          "\"\xc3\xa9\"",
                                          "\"01234567890123456789\""};
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    std::uint64_t state = seed * 0x9e3779b97f4a7c15;
    const auto next = [&state](std::uint64_t below) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return (state >> 33) % below;
    };
    std::string text(next(2) == 0 ? "{" : "[");
    for (std::uint64_t pieces = next(60); pieces > 0; --pieces) text += kPieces[next(std::size(kPieces))];
    if (next(2) == 0) text += "]]]]]]]]]]]]]]]]]]]]]]";
    const int depth_max = next(4) == 0 ? 6 : 1000;
    ASSERT_EQ(FindContainerEnd(text, 0, depth_max), SlowContainerEnd(text, depth_max)) << seed << ": " << text;
  }
}

}  // namespace
}  // namespace keelson::object
