#include "meta/options.h"

#include <gtest/gtest.h>

namespace keelson::meta {
namespace {

using base::Query;

std::string List(std::string_view query) {
  auto options = ListOptions::FromQuery(Query(query));
  if (!options.ok()) return std::to_string(options.error().code()) + " " + std::string(options.error().message());
  options->SetDefaults(true);
  return AggregateMessage(options->Validate(true));
}

TEST(ListOptions, Errors) {
  struct Case {
    const char* query;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"", ""},
      {"limit=5&continue=x&resourceVersion=0", ""},
      {"limit=x", "400 strconv.ParseInt: parsing \"x\": invalid syntax"},
      {"limit=", "400 strconv.ParseInt: parsing \"\": invalid syntax"},
      {"timeoutSeconds=99999999999999999999",
       "400 strconv.ParseInt: parsing \"99999999999999999999\": value out of range"},
      {"limit=y&timeoutSeconds=x&labelSelector==", "400 strconv.ParseInt: parsing \"x\": invalid syntax"},
      {"labelSelector==a", "400 found '=', expected: !, identifier, or 'end of string'"},
      {"fieldSelector=a", "400 invalid selector: 'a'; can't understand 'a'"},
      {"resourceVersionMatch=Exact",
       "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"},
      {"resourceVersionMatch=Exact&resourceVersion=1&continue=c",
       "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"},
      {"resourceVersionMatch=Foo&resourceVersion=1",
       "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\""},
      {"resourceVersionMatch=Exact&resourceVersion=0",
       "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""},
      {"sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"},
      {"watch", ""},
      {"watch=1&sendInitialEvents=true",
       "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"},
      {"watch=1&resourceVersionMatch=NotOlderThan",
       "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
       "provided"},
      {"watch=1&resourceVersionMatch=Exact&sendInitialEvents=0",
       "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, "
       "resourceVersionMatch: "
       "Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.query);
    EXPECT_EQ(List(c.query), c.want);
  }
}

TEST(ListOptions, WatchStartsWithTheState) {
  struct Case {
    const char* query;
    bool want;
  };
  constexpr Case kCases[] = {
      {"watch=true", true},   {"watch=1&resourceVersion=0", true},    {"watch=1&resourceVersion=7", false},
      {"watch=false", false}, {"watch=1&sendInitialEvents=0", false}, {"", false}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.query);
    auto options = ListOptions::FromQuery(Query(c.query));
    options->SetDefaults(true);
    EXPECT_EQ(options->send_initial_events.value_or(false), c.want);
    EXPECT_EQ(options->resource_version_match == "NotOlderThan", c.want);
  }
}

TEST(WriteOptions, Errors) {
  const auto create = [](std::string_view query) {
    return AggregateMessage(WriteOptions::FromQuery(Query(query)).Validate());
  };
  EXPECT_EQ(create("dryRun=All&fieldManager=me&fieldValidation=Strict"), "");
  EXPECT_EQ(create("dryRun=x"), "dryRun: Unsupported value: [\"x\"]: supported values: \"All\"");
  EXPECT_EQ(create("fieldValidation=Bad"),
            "fieldValidation: Unsupported value: \"Bad\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
  EXPECT_EQ(create("fieldManager=a%07"),
            "fieldManager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)");
  EXPECT_EQ(create("fieldManager=" + std::string(129, 'a')), "fieldManager: Too long: may not be more than 128 bytes");
  const auto patch = [](std::string_view query, bool apply) {
    return AggregateMessage(WriteOptions::FromQuery(Query(query)).ValidatePatch(apply));
  };
  EXPECT_EQ(patch("", true), "fieldManager: Required value: is required for apply patch");
  EXPECT_EQ(patch("force=false", false), "force: Forbidden: may not be specified for non-apply patch");
  EXPECT_EQ(NewInvalidOptions("PatchOptions", WriteOptions{}.ValidatePatch(true)).message(),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch");
}

TEST(DeleteOptions, Errors) {
  const auto check = [](std::string_view query) {
    return AggregateMessage(DeleteOptions::FromQuery(Query(query))->Validate());
  };
  EXPECT_EQ(check("gracePeriodSeconds=5&propagationPolicy=Foreground&uid=u"), "");
  EXPECT_EQ(
      check("orphanDependents=true&propagationPolicy=Orphan"),
      "propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set");
  EXPECT_EQ(check("propagationPolicy="),
            "propagationPolicy: Unsupported value: \"\": supported values: \"Foreground\", \"Background\", \"Orphan\", "
            "\"nil\"");
  EXPECT_EQ(
      check("ignoreStoreReadErrorWithClusterBreakingPotential=true&uid=u&dryRun=All"),
      "[ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .dryRun, "
      "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with "
      ".preconditions]");
  EXPECT_EQ(DeleteOptions::FromQuery(Query("gracePeriodSeconds=x")).error().message(),
            "strconv.ParseInt: parsing \"x\": invalid syntax");
}

TEST(TableOptions, Errors) {
  EXPECT_TRUE(TableOptions::FromQuery(Query("includeObject=None")).Validate().empty());
  EXPECT_EQ(AggregateMessage(TableOptions::FromQuery(Query("includeObject=Bad")).Validate()),
            "includeObject: Invalid value: \"Bad\": must be 'Metadata', 'Object', 'None', or empty");
}

TEST(FieldManager, FromUserAgent) {
  EXPECT_EQ(ManagerOrUserAgent("me", "kubectl/v1"), "me");
  EXPECT_EQ(ManagerOrUserAgent("", "kubectl/v1 (linux)"), "kubectl");
  EXPECT_EQ(ManagerOrUserAgent("",
                               "a\x07"
                               "b/1"),
            "ab");
  EXPECT_EQ(ManagerOrUserAgent("", ""), "unknown");
  EXPECT_EQ(ManagerOrUserAgent("", std::string(127, 'a') + "\xc3\xa9"), std::string(127, 'a'));
}

}  // namespace
}  // namespace keelson::meta
