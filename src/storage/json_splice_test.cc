#include "storage/json_splice.h"

#include <gtest/gtest.h>

namespace keelson::storage {
namespace {

TEST(JSONSplice, SetsAndRemoves) {
  struct Case {
    const char* name;
    MetadataOrder order;
    const char* without;
    const char* with;
  };
  constexpr Case kCases[] = {
      {"struct order", MetadataOrder::kStruct,
       R"({"kind":"X","metadata":{"name":"a","uid":"u","generation":1},"spec":{"metadata":{}}})",
       R"({"kind":"X","metadata":{"name":"a","uid":"u","resourceVersion":"7","generation":1},"spec":{"metadata":{}}})"},
      {"last", MetadataOrder::kStruct, R"({"metadata":{"name":"a"}})",
       R"({"metadata":{"name":"a","resourceVersion":"7"}})"},
      {"first", MetadataOrder::kStruct, R"({"metadata":{"generation":1}})",
       R"({"metadata":{"resourceVersion":"7","generation":1}})"},
      {"only", MetadataOrder::kStruct, R"({"metadata":{}})", R"({"metadata":{"resourceVersion":"7"}})"},
      {"sorted", MetadataOrder::kSorted, R"({"metadata":{"labels":{"resourceVersion":"x"},"name":"a","uid":"u"}})",
       R"({"metadata":{"labels":{"resourceVersion":"x"},"name":"a","resourceVersion":"7","uid":"u"}})"},
      {"behind nested text", MetadataOrder::kSorted, R"({"a":["}\"",{"metadata":1}],"metadata":{"name":"\\\""}})",
       R"({"a":["}\"",{"metadata":1}],"metadata":{"name":"\\\"","resourceVersion":"7"}})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(SetJSONResourceVersion(c.without, "7", c.order)->view(), c.with);
    EXPECT_EQ(SetJSONResourceVersion(c.with, "", c.order)->view(), c.without);
    EXPECT_EQ(SetJSONResourceVersion(c.without, "", c.order)->view(), c.without);
    EXPECT_EQ(SetJSONResourceVersion(SetJSONResourceVersion(c.with, "12345", c.order)->view(), "7", c.order)->view(),
              c.with);
  }
  // Elsewhere than it would be put, it is changed and removed where it is.
  EXPECT_EQ(SetJSONResourceVersion(R"({"metadata":{"name":"a","labels":{},"resourceVersion":"5"}})", "",
                                   MetadataOrder::kStruct)
                ->view(),
            R"({"metadata":{"name":"a","labels":{}}})");
}

TEST(JSONSplice, RefusesBytesThatAreNotAnObject) {
  for (const char* text :
       {"", "[]", "{}", R"({"metadata":[]})", R"({"kind":"X"})", R"({"metadata":{"name")", R"({"metadata":{"a":"b)"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(SetJSONResourceVersion(text, "7", MetadataOrder::kStruct));
  }
}

}  // namespace
}  // namespace keelson::storage
