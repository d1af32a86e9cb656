#include "app/suggestion.h"

#include <gtest/gtest.h>

#include <string>

namespace keelson::app {
namespace {

TEST(Suggestion, NearestKnownWord) {
  constexpr std::string_view kKnown[] = {"etcd", "migrate", "store", "secure-port", "etcd-servers", "data-dir"};
  struct Case {
    const char* word;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"storre", "store"},
      {"etcd-server", "etcd-servers"},
      {"secure-prot", "secure-port"},
      {"datadir", "data-dir"},
      {"migrat", "migrate"},
      {"something-else", ""},
      {"", ""},
      {"x", ""},
  };
  for (const Case& c : kCases) EXPECT_EQ(Suggestion(c.word, kKnown), c.want) << c.word;
  EXPECT_EQ(Suggestion(std::string(1000, 'x'), kKnown), "");
}

}  // namespace
}  // namespace keelson::app
