#include "http/message.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace keelson::http {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Fields All(const Headers& headers) {
  Fields fields;
  for (const auto& [name, value] : headers) fields.emplace_back(name, value);
  return fields;
}

TEST(Headers, KeepOrderAndCompareNamesWithoutCase) {
  Headers headers{{"Host", "x"}, {"Accept", "a"}, {"accept", "b"}};
  EXPECT_EQ(headers.Get("ACCEPT"), "a");
  EXPECT_EQ(headers.Values("Accept"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_TRUE(headers.Has("host"));
  EXPECT_FALSE(headers.Has("Hos"));
  EXPECT_EQ(headers.size(), 3u);
}

TEST(Headers, SetReplacesAllInThePlaceOfTheFirst) {
  Headers headers{{"A", "1"}, {"B", "2"}, {"a", "3"}, {"C", "4"}};
  headers.Set("a", "5");
  EXPECT_EQ(All(headers), (Fields{{"a", "5"}, {"B", "2"}, {"C", "4"}}));
  headers.Set("D", "6");
  EXPECT_EQ(All(headers).back(), (std::pair<std::string, std::string>{"D", "6"}));
}

TEST(Headers, RemoveTakesEveryFieldOfTheName) {
  Headers headers{{"A", "1"}, {"B", "2"}, {"a", "3"}};
  headers.Remove("A");
  EXPECT_EQ(All(headers), (Fields{{"B", "2"}}));
  headers.Clear();
  EXPECT_TRUE(headers.empty());
}

TEST(Headers, ArgumentsMayBeViewsOfItself) {
  Headers headers{{"A", std::string(100, 'x')}};
  for (int i = 0; i < 100; ++i) headers.Add("B", headers.Get("A"));  // the buffer grows several times
  headers.Set("A", headers.Get("B"));
  EXPECT_EQ(headers.Values("b").size(), 100u);
  for (const std::string_view value : headers.Values("B")) EXPECT_EQ(value, std::string(100, 'x'));
  EXPECT_EQ(headers.Get("A"), std::string(100, 'x'));
}

TEST(Headers, ViewsOutliveAMove) {
  Headers headers{{"A", "1"}};  // shorter than what a std::string keeps in itself
  const std::string_view value = headers.Get("A");
  const Headers moved = std::move(headers);
  EXPECT_EQ(value.data(), moved.Get("A").data());
  EXPECT_EQ(value, "1");
}

}  // namespace
}  // namespace keelson::http
