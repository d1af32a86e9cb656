// The contract of GetList.
#include "storage/continue_token.h"
#include "storage/contract_suite/contract.h"

namespace keelson::storage {
namespace {

TEST_P(Contract, ListIsInKeyOrderAndOfOneNamespace) {
  MustCreate({.name = "b"});
  MustCreate({.name = "a", .name_space = "other"});
  MustCreate({.name = "a"});
  MustCreate({.name = "ab", .name_space = "default-2"});
  EXPECT_EQ(Names(MustList("/pods", {})), "ab a b a");  // default-2/ sorts before default/
  EXPECT_EQ(Names(MustList("/pods/default", {})), "a b");
  EXPECT_EQ(Names(MustList("/pods/default/", {})), "a b");
  EXPECT_EQ(Names(MustList("/pods/none", {})), "");
  EXPECT_EQ(Names(MustList("/pods/default/a", {.recursive = false})), "a");
  EXPECT_EQ(Names(MustList("/pods/default/x", {.recursive = false})), "");
}

TEST_P(Contract, ListSelects) {
  MustCreate({.name = "a", .app = "web", .node = "n1"});
  MustCreate({.name = "b", .app = "db", .node = "n1"});
  MustCreate({.name = "c", .app = "web", .node = "n2"});
  MustCreate({.name = "d", .name_space = "other", .app = "web", .node = "n1"});
  EXPECT_EQ(Names(MustList("/pods", {.predicate = Select("app=web", "")})), "a c d");
  EXPECT_EQ(Names(MustList("/pods", {.predicate = Select("", "spec.nodeName=n1")})), "a b d");
  EXPECT_EQ(Names(MustList("/pods/default", {.predicate = Select("app=web", "spec.nodeName=n1")})), "a");
  EXPECT_EQ(Names(MustList("/pods", {.predicate = Select("app=web", "spec.nodeName!=n1")})), "c");
}

TEST_P(Contract, PagesShowOneState) {
  for (char c = 'a'; c <= 'g'; ++c) MustCreate({.name = std::string(1, c)});
  ListOptions options{.predicate = {.limit = 3}};
  ObjectList page = MustList("/pods", options);
  EXPECT_EQ(Names(page), "a b c");
  EXPECT_EQ(page.remaining_item_count, 4);
  const std::uint64_t revision = page.resource_version;
  // Changes between the pages are not seen.
  MustCreate({.name = "cc"});
  MustDelete({.name = "e"});
  options.predicate.continue_token = page.continue_token;
  page = MustList("/pods", options);
  EXPECT_EQ(Names(page), "d e f");
  EXPECT_EQ(page.resource_version, revision);
  EXPECT_EQ(page.remaining_item_count, 1);
  options.predicate.continue_token = page.continue_token;
  page = MustList("/pods", options);
  EXPECT_EQ(Names(page), "g");
  EXPECT_EQ(page.continue_token, "");
  EXPECT_FALSE(page.remaining_item_count.has_value());
}

TEST_P(Contract, PagesWithSelector) {
  for (char c = 'a'; c <= 'z'; ++c) MustCreate({.name = std::string(1, c), .app = c % 5 == 0 ? "web" : "db"});
  ListOptions options{.predicate = Select("app=web", "")};
  options.predicate.limit = 2;
  std::string names;
  for (int pages = 0; pages < 20; ++pages) {
    const ObjectList page = MustList("/pods", options);
    EXPECT_LE(page.items.size(), 2u);
    EXPECT_FALSE(page.remaining_item_count.has_value());
    names += Names(page) + ";";
    if (page.continue_token.empty()) break;
    options.predicate.continue_token = page.continue_token;
  }
  EXPECT_TRUE(names == "d i;n s;x;" || names == "d i;n s;x;;") << names;
}

TEST_P(Contract, BothFormsOfTokensAreAccepted) {
  for (char c = 'a'; c <= 'c'; ++c) MustCreate({.name = std::string(1, c)});
  const ObjectList all = MustList("/pods/default", {});
  const auto revision = static_cast<std::int64_t>(all.resource_version);
  for (const std::string& base : {std::string("/pods/default/"), std::string("/pods/default")}) {
    const std::string token = EncodeContinue(std::string("/pods/default/a\0", 16), base, revision);
    EXPECT_EQ(Names(MustList("/pods/default", {.predicate = {.limit = 5, .continue_token = token}})), "b c");
  }
  const std::string inconsistent = EncodeContinue(std::string("/pods/default/a\0", 16), "/pods/default/", -1);
  MustCreate({.name = "bb"});
  EXPECT_EQ(Names(MustList("/pods/default", {.predicate = {.limit = 5, .continue_token = inconsistent}})), "b bb c");
}

TEST_P(Contract, InvalidTokens) {
  struct Case {
    const char* name;
    std::string token;
    const char* message;
  };
  const std::string outside = EncodeContinue("/pods/../secrets/a", "/pods/", 5);
  const Case cases[] = {
      {"no base64", "a!", "invalid continue token: continue key is not valid: illegal base64 data at input byte 1"},
      {"no JSON", "eHg",
       "invalid continue token: continue key is not valid: invalid character 'x' looking for beginning of value"},
      {"path", outside, "invalid continue token: continue key is not valid: ../secrets/a"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    auto list = Await(storage().GetList("/pods", {.predicate = {.limit = 1, .continue_token = c.token}}));
    ASSERT_FALSE(list.ok());
    EXPECT_EQ(list.error().status->code(), 400);
    EXPECT_EQ(list.error().ToString(), c.message);
  }
  const std::string good = EncodeContinue("/pods/a", "/pods/", 1);
  auto list =
      Await(storage().GetList("/pods", {.resource_version = "5", .predicate = {.limit = 1, .continue_token = good}}));
  EXPECT_EQ(list.error().ToString(), "specifying resource version is not allowed when using continue");
}

TEST_P(Contract, ExactRevision) {
  const ObjectPtr a = MustCreate({.name = "a", .data = "1"});
  const ObjectPtr b = MustCreate({.name = "b"});
  const ObjectPtr changed = MustUpdate({.name = "a", .data = "2"});
  MustDelete({.name = "b"});
  const auto at = [&](const ObjectPtr& object) {
    return MustList(
        "/pods", {.resource_version = std::to_string(object->resource_version()), .resource_version_match = "Exact"});
  };
  EXPECT_EQ(Names(at(a)), "a");
  EXPECT_EQ(Names(at(b)), "a b");
  EXPECT_EQ(at(b).resource_version, b->resource_version());
  EXPECT_EQ(at(b).items[0]->resource_version(), a->resource_version());
  EXPECT_EQ(at(changed).items[0]->resource_version(), changed->resource_version());
  EXPECT_EQ(Names(MustList("/pods", {})), "a");
  // The legacy rule: a revision with a limit means exactly.
  EXPECT_EQ(
      Names(MustList("/pods", {.resource_version = std::to_string(b->resource_version()), .predicate = {.limit = 10}})),
      "a b");
}

TEST_P(Contract, CompactedRevisionIsExpired) {
  MustCreate({.name = "a"});
  MustCreate({.name = "b"});
  const ObjectPtr c = MustCreate({.name = "c"});
  ListOptions options{.predicate = {.limit = 1}};
  const ObjectList page = MustList("/pods", options);
  for (int i = 0; i < 200; ++i) MustUpdate({.name = "a", .data = std::to_string(i)});
  const auto now = *Await(storage().GetCurrentResourceVersion());
  ASSERT_TRUE(Await(kv().Compact(static_cast<kv::Revision>(now), true)).ok());
  if (cached()) return;  // may still have the history; its own test drops it
  auto exact = Await(storage().GetList(
      "/pods", {.resource_version = std::to_string(c->resource_version()), .resource_version_match = "Exact"}));
  ASSERT_FALSE(exact.ok());
  EXPECT_EQ(exact.error().status->code(), 410);
  EXPECT_EQ(exact.error().ToString(), "The resourceVersion for the provided list is too old.");
  options.predicate.continue_token = page.continue_token;
  auto next = Await(storage().GetList("/pods", options));
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.error().status->code(), 410);
  options.predicate.continue_token = next.error().status->fields().continue_token;
  options.predicate.limit = 0;
  EXPECT_EQ(Names(MustList("/pods", options)), "b c");
}

TEST_P(Contract, FutureRevisionIsTooLarge) {
  MustCreate({.name = "a"});
  if (cached()) return;  // waits for it; its own test lets the time pass
  for (const char* match : {"Exact", "NotOlderThan", ""}) {
    SCOPED_TRACE(match);
    auto list = Await(storage().GetList("/pods", {.resource_version = "1000000", .resource_version_match = match}));
    ASSERT_FALSE(list.ok());
    EXPECT_EQ(list.error().status->code(), 504);
  }
}

}  // namespace
}  // namespace keelson::storage
