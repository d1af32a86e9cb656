// Reading: keys, ranges, limits, counts, old revisions.
#include "kv/contract_suite/contract.h"

namespace keelson::kv {
namespace {

using Strings = std::vector<std::string>;

TEST_P(Contract, RangeOfNothingIsEmpty) {
  const auto answer = List();
  EXPECT_TRUE(answer.kvs.empty());
  EXPECT_EQ(answer.count, 0);
  EXPECT_FALSE(answer.more);
  EXPECT_GE(answer.revision, 1);
}

TEST_P(Contract, FreshStoreIsAtRevisionOne) {
  if (!harness_->fresh()) GTEST_SKIP() << "others use this store";
  EXPECT_EQ(Now(), 1);
  EXPECT_EQ(Put("a", "1"), 2);
}

TEST_P(Contract, GetReturnsWhatWasPut) {
  const Revision revision = Put("a", "one");
  const auto kv = Get("a");
  ASSERT_TRUE(kv);
  EXPECT_EQ(kv->key, Key("a"));
  EXPECT_EQ(kv->value.view(), "one");
  EXPECT_EQ(kv->create_revision, revision);
  EXPECT_EQ(kv->mod_revision, revision);
  EXPECT_EQ(kv->version, 1);
  EXPECT_EQ(kv->lease, 0);
}

TEST_P(Contract, GetOfMissingKeyIsEmptyNotAnError) {
  auto answer = TryRange({.key = Key("none")});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->kvs.empty());
  EXPECT_EQ(answer->count, 0);
}

TEST_P(Contract, GetIsExactNotAPrefix) {
  Put("ab", "1");
  EXPECT_FALSE(Get("a"));
}

TEST_P(Contract, EmptyKeyIsRefused) {
  auto answer = TryRange({.key = ""});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kEmptyKey);
  EXPECT_EQ(answer.error().message, "etcdserver: key is not provided");
}

TEST_P(Contract, ValueMayBeEmpty) {
  Put("a", "");
  const auto kv = Get("a");
  ASSERT_TRUE(kv);
  EXPECT_TRUE(kv->value.empty());
}

TEST_P(Contract, KeysAndValuesAreBytes) {
  const std::string name("\x00\xff\x80\n", 4);
  const std::string value("\xff\x00\xfe", 3);
  Put(name, value);
  const auto kv = Get(name);
  ASSERT_TRUE(kv);
  EXPECT_EQ(kv->value.view(), value);
}

TEST_P(Contract, RangeIsSortedByBytes) {
  for (const char* name : {"b", "a/b", "a", "B", "a0", "\xff", "~"}) Put(name, "1");
  EXPECT_EQ(Names(List(), prefix_), (Strings{"B", "a", "a/b", "a0", "b", "~", "\xff"}));
}

TEST_P(Contract, RangeEndIsExclusive) {
  for (const char* name : {"a", "b", "c"}) Put(name, "1");
  EXPECT_EQ(Names(List({.key = Key("a"), .range_end = Key("c")}), prefix_), (Strings{"a", "b"}));
}

TEST_P(Contract, RangeBeginIsInclusive) {
  for (const char* name : {"a", "b", "c"}) Put(name, "1");
  EXPECT_EQ(Names(List({.key = Key("b"), .range_end = PrefixEndOfAll()}), prefix_), (Strings{"b", "c"}));
}

TEST_P(Contract, RangeBeginNeedsNotExist) {
  for (const char* name : {"a", "c"}) Put(name, "1");
  EXPECT_EQ(Names(List({.key = Key("b"), .range_end = PrefixEndOfAll()}), prefix_), (Strings{"c"}));
}

TEST_P(Contract, RangeWithEndBeforeBeginIsEmpty) {
  for (const char* name : {"a", "b"}) Put(name, "1");
  const auto answer = List({.key = Key("b"), .range_end = Key("a")});
  EXPECT_TRUE(answer.kvs.empty());
  EXPECT_EQ(answer.count, 0);
}

TEST_P(Contract, RangeWithEndEqualToBeginIsEmpty) {
  Put("a", "1");
  EXPECT_TRUE(List({.key = Key("a"), .range_end = Key("a")}).kvs.empty());
}

TEST_P(Contract, RangeFromKeyOnReachesTheEnd) {
  for (const char* name : {"a", "b", "c"}) Put(name, "1");
  const auto answer = List({.key = Key("b"), .range_end = std::string(1, '\0'), .limit = 2});
  EXPECT_EQ(Names(answer, prefix_), (Strings{"b", "c"}));
}

TEST_P(Contract, NextPageStartsAfterTheLastKey) {
  for (const char* name : {"a", "a0", "b", "c"}) Put(name, "1");
  const auto first = List({.key = prefix_, .range_end = PrefixEndOfAll(), .limit = 1});
  EXPECT_EQ(Names(first, prefix_), (Strings{"a"}));
  const auto second = List({.key = first.kvs[0].key + std::string(1, '\0'), .range_end = PrefixEndOfAll(), .limit = 2});
  EXPECT_EQ(Names(second, prefix_), (Strings{"a0", "b"}));
  EXPECT_EQ(second.count, 3);
  EXPECT_TRUE(second.more);
}

TEST_P(Contract, LimitReturnsMoreAndTheTotalCount) {
  for (const char* name : {"a", "b", "c"}) Put(name, "1");
  struct Case {
    std::int64_t limit;
    std::size_t kvs;
    bool more;
  };
  for (const Case& c : {Case{0, 3, false}, Case{1, 1, true}, Case{2, 2, true}, Case{3, 3, false}, Case{4, 3, false}}) {
    SCOPED_TRACE(c.limit);
    const auto answer = List({.key = prefix_, .range_end = PrefixEndOfAll(), .limit = c.limit});
    EXPECT_EQ(answer.kvs.size(), c.kvs);
    EXPECT_EQ(answer.more, c.more);
    EXPECT_EQ(answer.count, 3);
  }
}

TEST_P(Contract, CountOnlyHasNoKeys) {
  for (const char* name : {"a", "b", "c"}) Put(name, "1");
  const auto answer = List({.key = prefix_, .range_end = PrefixEndOfAll(), .limit = 1, .count_only = true});
  EXPECT_TRUE(answer.kvs.empty());
  EXPECT_EQ(answer.count, 3);
  EXPECT_FALSE(answer.more);
}

TEST_P(Contract, CountOnlyAtAnOldRevision) {
  Put("a", "1");
  const Revision one = Put("b", "1");
  Put("c", "1");
  EXPECT_EQ(List({.key = prefix_, .range_end = PrefixEndOfAll(), .revision = one, .count_only = true}).count, 2);
}

TEST_P(Contract, KeysOnlyHasEverythingButTheValue) {
  const Revision revision = Put("a", "long value");
  const auto answer = List({.key = prefix_, .range_end = PrefixEndOfAll(), .keys_only = true});
  ASSERT_EQ(answer.kvs.size(), 1u);
  EXPECT_TRUE(answer.kvs[0].value.empty());
  EXPECT_EQ(answer.kvs[0].mod_revision, revision);
  EXPECT_EQ(answer.kvs[0].version, 1);
}

TEST_P(Contract, ReadReturnsTheStoreRevisionNotTheRequestedOne) {
  const Revision first = Put("a", "1");
  const Revision second = Put("b", "1");
  const auto answer = List({.key = Key("a"), .revision = first});
  EXPECT_GE(answer.revision, second);
}

TEST_P(Contract, OldRevisionShowsOldValue) {
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  EXPECT_EQ(Get("a", one)->value.view(), "1");
  EXPECT_EQ(Get("a", one)->version, 1);
  EXPECT_EQ(Get("a", two)->value.view(), "2");
  EXPECT_EQ(Get("a")->value.view(), "2");
}

TEST_P(Contract, OldRevisionDoesNotShowLaterKeys) {
  const Revision one = Put("a", "1");
  Put("b", "1");
  const auto answer = List({.key = prefix_, .range_end = PrefixEndOfAll(), .revision = one});
  EXPECT_EQ(Names(answer, prefix_), (Strings{"a"}));
  EXPECT_EQ(answer.count, 1);
}

TEST_P(Contract, OldRevisionShowsDeletedKeys) {
  const Revision put = Put("a", "1");
  const Revision deleted = Delete("a");
  EXPECT_TRUE(Get("a", put));
  EXPECT_FALSE(Get("a", deleted));
  EXPECT_FALSE(Get("a"));
}

TEST_P(Contract, RevisionBeforeTheKeyIsEmpty) {
  const Revision before = Put("other", "1");
  Put("a", "1");
  EXPECT_FALSE(Get("a", before));
}

TEST_P(Contract, FutureRevisionIsRefused) {
  auto answer = TryRange({.key = Key("a"), .revision = Now() + 1000});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kFutureRevision);
  EXPECT_EQ(answer.error().message, "etcdserver: mvcc: required revision is a future revision");
}

TEST_P(Contract, CurrentRevisionMayBeRequested) {
  const Revision revision = Put("a", "1");
  EXPECT_TRUE(Get("a", revision));
}

TEST_P(Contract, LimitAtAnOldRevision) {
  Put("a", "1");
  Put("b", "1");
  const Revision both = Put("c", "1");
  Delete("a");
  const auto answer = List({.key = prefix_, .range_end = PrefixEndOfAll(), .limit = 2, .revision = both});
  EXPECT_EQ(Names(answer, prefix_), (Strings{"a", "b"}));
  EXPECT_EQ(answer.count, 3);
  EXPECT_TRUE(answer.more);
}

TEST_P(Contract, PagingAtOneRevisionIsConsistent) {
  for (int i = 0; i < 20; ++i) Put("k" + std::to_string(100 + i), "old");
  Strings seen;
  std::string from = prefix_;
  Revision revision = 0;
  for (;;) {
    auto page = List({.key = from, .range_end = PrefixEndOfAll(), .limit = 7, .revision = revision});
    if (revision == 0) revision = page.revision;
    for (const auto& kv : page.kvs) {
      EXPECT_EQ(kv.value.view(), "old");
      seen.push_back(kv.key);
    }
    if (!page.more) break;
    from = page.kvs.back().key + std::string(1, '\0');
    Put("k105", "new");
    Delete("k110");
    Put("k1055", "late");
  }
  EXPECT_EQ(seen.size(), 20u);
}

TEST_P(Contract, SortedByTargets) {
  Put("b", "1");
  Put("a", "3");
  Put("c", "2");
  Put("a", "3");  // version 2, modified last, created second
  struct Case {
    SortTarget target;
    SortOrder order;
    Strings want;
  };
  const Case cases[] = {
      {SortTarget::kKey, SortOrder::kAscend, {"a", "b", "c"}},
      {SortTarget::kKey, SortOrder::kDescend, {"c", "b", "a"}},
      {SortTarget::kCreateRevision, SortOrder::kAscend, {"b", "a", "c"}},
      {SortTarget::kCreateRevision, SortOrder::kDescend, {"c", "a", "b"}},
      {SortTarget::kModRevision, SortOrder::kAscend, {"b", "c", "a"}},
      {SortTarget::kModRevision, SortOrder::kDescend, {"a", "c", "b"}},
      {SortTarget::kValue, SortOrder::kAscend, {"b", "c", "a"}},
      {SortTarget::kValue, SortOrder::kDescend, {"a", "c", "b"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(c.target) << " " << static_cast<int>(c.order));
    EXPECT_EQ(
        Names(List({.key = prefix_, .range_end = PrefixEndOfAll(), .sort_order = c.order, .sort_target = c.target}),
              prefix_),
        c.want);
  }
}

TEST_P(Contract, SortAppliesBeforeTheLimit) {
  Put("b", "1");
  Put("a", "2");
  const auto answer = List({.key = prefix_,
                            .range_end = PrefixEndOfAll(),
                            .limit = 1,
                            .sort_order = SortOrder::kAscend,
                            .sort_target = SortTarget::kCreateRevision});
  EXPECT_EQ(Names(answer, prefix_), (Strings{"b"}));
  EXPECT_TRUE(answer.more);
  EXPECT_EQ(answer.count, 2);
}

TEST_P(Contract, BoundsOnRevisions) {
  const Revision one = Put("a", "1");
  const Revision two = Put("b", "1");
  const Revision three = Put("a", "2");
  const std::string end = PrefixEndOfAll();
  EXPECT_EQ(Names(List({.key = prefix_, .range_end = end, .min_mod_revision = three}), prefix_), (Strings{"a"}));
  EXPECT_EQ(Names(List({.key = prefix_, .range_end = end, .max_mod_revision = two}), prefix_), (Strings{"b"}));
  EXPECT_EQ(Names(List({.key = prefix_, .range_end = end, .min_create_revision = two}), prefix_), (Strings{"b"}));
  EXPECT_EQ(Names(List({.key = prefix_, .range_end = end, .max_create_revision = one}), prefix_), (Strings{"a"}));
  EXPECT_EQ(List({.key = prefix_, .range_end = end, .max_create_revision = one}).count, 2);
}

TEST_P(Contract, LargeRangeComesWhole) {
  constexpr int kKeys = 1000;
  constexpr int kPerTxn = 100;
  const std::string value(500, 'x');
  for (int i = 0; i < kKeys; i += kPerTxn) {
    TxnRequest request;
    for (int j = i; j < i + kPerTxn; ++j) request.success.push_back(PutOp("k" + std::to_string(10000 + j), value));
    ASSERT_TRUE(Txn(std::move(request)).ok());
  }
  const auto answer = List();
  ASSERT_EQ(answer.kvs.size(), static_cast<std::size_t>(kKeys));
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(answer.kvs[static_cast<std::size_t>(i)].key, Key("k" + std::to_string(10000 + i)));
    ASSERT_EQ(answer.kvs[static_cast<std::size_t>(i)].value.view(), value);
  }
}

}  // namespace
}  // namespace keelson::kv
