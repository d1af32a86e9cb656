#include "request/audit_annotations.h"

#include <gtest/gtest.h>

namespace keelson::request {
namespace {

TEST(AuditAnnotations, FirstValueOfAKeyWins) {
  AuditAnnotations annotations;
  EXPECT_TRUE(annotations.empty());
  EXPECT_TRUE(annotations.Add("b", "1"));
  EXPECT_TRUE(annotations.Add("a", "2"));
  EXPECT_FALSE(annotations.Add("b", "3"));
  ASSERT_EQ(annotations.entries().size(), 2u);
  EXPECT_EQ(annotations.entries()[0], (std::pair<std::string, std::string>("b", "1")));
  EXPECT_EQ(annotations.entries()[1], (std::pair<std::string, std::string>("a", "2")));
}

TEST(AuditAnnotations, NumberOfKeysIsBounded) {
  AuditAnnotations annotations;
  for (std::size_t i = 0; i < AuditAnnotations::kEntriesMax; ++i) EXPECT_TRUE(annotations.Add(std::to_string(i), ""));
  EXPECT_FALSE(annotations.Add("one more", ""));
  EXPECT_EQ(annotations.entries().size(), AuditAnnotations::kEntriesMax);
}

}  // namespace
}  // namespace keelson::request
