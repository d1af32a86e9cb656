// Leases: keys that go away.
#include <algorithm>

#include "kv/contract_suite/contract.h"

namespace keelson::kv {
namespace {

#define GRANT(name, ttl)                                \
  auto name##_granted = Await(store().LeaseGrant(ttl)); \
  ASSERT_TRUE(name##_granted.ok());                     \
  [[maybe_unused]] const LeaseID name = name##_granted->id

TEST_P(Contract, LeaseGrantChoosesAnID) {
  GRANT(lease, 60);
  EXPECT_NE(lease, 0);
  EXPECT_EQ(lease_granted->granted_ttl, 60);
}

TEST_P(Contract, LeaseGrantTakesAnID) {
  const LeaseID id = static_cast<LeaseID>(std::hash<std::string>()(prefix_) >> 2);
  auto granted = Await(store().LeaseGrant(60, id));
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->id, id);
  auto again = Await(store().LeaseGrant(60, id));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kLeaseExists);
}

TEST_P(Contract, LeaseIDsDiffer) {
  GRANT(one, 60);
  GRANT(two, 60);
  EXPECT_NE(one, two);
}

TEST_P(Contract, LeaseTTLHasAMinimum) {
  GRANT(lease, 1);
  EXPECT_GE(lease_granted->granted_ttl, 1);
}

TEST_P(Contract, LeaseTTLHasAMaximum) {
  auto granted = Await(store().LeaseGrant(9'000'000'001));
  ASSERT_FALSE(granted.ok());
  EXPECT_EQ(granted.error().code, ErrorCode::kLeaseTTLTooLarge);
}

TEST_P(Contract, LeaseGrantMakesNoRevision) {
  const Revision before = Put("a", "1");
  GRANT(lease, 60);
  EXPECT_EQ(Now(), before);
}

TEST_P(Contract, PutWithUnknownLeaseIsRefused) {
  auto answer = Txn({.success = {Op::Put({.key = Key("a"), .lease = 0x123456789})}});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kLeaseNotFound);
  EXPECT_EQ(answer.error().message, "etcdserver: requested lease not found");
}

TEST_P(Contract, KeyHasItsLease) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  EXPECT_EQ(Get("a")->lease, lease);
}

TEST_P(Contract, RevokeDeletesItsKeysInOneRevision) {
  GRANT(lease, 60);
  Put("b", "1", lease);
  Put("a", "1", lease);
  const Revision before = Put("c", "1");
  auto watch = WatchAll(before + 1);
  auto revoked = Await(store().LeaseRevoke(lease));
  ASSERT_TRUE(revoked.ok());
  EXPECT_FALSE(Get("a"));
  EXPECT_FALSE(Get("b"));
  EXPECT_TRUE(Get("c"));
  const auto events = Take(*watch, 2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kv.mod_revision, before + 1);
  EXPECT_EQ(events[1].kv.mod_revision, before + 1);
  EXPECT_EQ(Describe(events[0], prefix_), "delete a");
  EXPECT_EQ(Describe(events[1], prefix_), "delete b");
}

TEST_P(Contract, RevokeWithoutKeysMakesNoRevision) {
  GRANT(lease, 60);
  const Revision before = Put("a", "1");
  ASSERT_TRUE(Await(store().LeaseRevoke(lease)).ok());
  EXPECT_EQ(Now(), before);
}

TEST_P(Contract, RevokeOfUnknownLeaseIsRefused) {
  auto revoked = Await(store().LeaseRevoke(0x123456789));
  ASSERT_FALSE(revoked.ok());
  EXPECT_EQ(revoked.error().code, ErrorCode::kLeaseNotFound);
}

TEST_P(Contract, RevokedLeaseIsGone) {
  GRANT(lease, 60);
  ASSERT_TRUE(Await(store().LeaseRevoke(lease)).ok());
  EXPECT_EQ(Txn({.success = {Op::Put({.key = Key("a"), .lease = lease})}}).error().code, ErrorCode::kLeaseNotFound);
  EXPECT_EQ(Await(store().LeaseKeepAlive(lease)).error().code, ErrorCode::kLeaseNotFound);
  EXPECT_EQ(Await(store().LeaseTimeToLive(lease, false))->remaining_ttl, -1);
}

TEST_P(Contract, PutWithoutLeaseDetaches) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  Put("a", "2");
  EXPECT_EQ(Get("a")->lease, 0);
  ASSERT_TRUE(Await(store().LeaseRevoke(lease)).ok());
  EXPECT_TRUE(Get("a"));
}

TEST_P(Contract, PutWithAnotherLeaseMoves) {
  GRANT(one, 60);
  GRANT(two, 60);
  Put("a", "1", one);
  Put("a", "2", two);
  ASSERT_TRUE(Await(store().LeaseRevoke(one)).ok());
  EXPECT_TRUE(Get("a"));
  ASSERT_TRUE(Await(store().LeaseRevoke(two)).ok());
  EXPECT_FALSE(Get("a"));
}

TEST_P(Contract, DeletedKeyIsNoLongerAttached) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  Delete("a");
  Put("a", "2");
  ASSERT_TRUE(Await(store().LeaseRevoke(lease)).ok());
  EXPECT_TRUE(Get("a"));
}

TEST_P(Contract, IgnoreLeaseKeepsIt) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  ASSERT_TRUE(Txn({.success = {Op::Put({.key = Key("a"), .value = SharedBytes("2"), .ignore_lease = true})}}).ok());
  EXPECT_EQ(Get("a")->lease, lease);
  EXPECT_EQ(Get("a")->value.view(), "2");
}

TEST_P(Contract, IgnoreLeaseWithALeaseIsRefused) {
  GRANT(lease, 60);
  Put("a", "1");
  auto answer = Txn({.success = {Op::Put({.key = Key("a"), .lease = lease, .ignore_lease = true})}});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, "etcdserver: lease is provided");
}

TEST_P(Contract, TimeToLiveReturnsKeys) {
  GRANT(lease, 60);
  Put("b", "1", lease);
  Put("a", "1", lease);
  auto info = Await(store().LeaseTimeToLive(lease, true));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->granted_ttl, 60);
  EXPECT_GT(info->remaining_ttl, 30);
  EXPECT_LE(info->remaining_ttl, 60);
  std::ranges::sort(info->keys);
  EXPECT_EQ(info->keys, (std::vector<std::string>{Key("a"), Key("b")}));
}

TEST_P(Contract, TimeToLiveWithoutKeysHasNone) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  EXPECT_TRUE(Await(store().LeaseTimeToLive(lease, false))->keys.empty());
}

TEST_P(Contract, TimeToLiveOfUnknownLease) {
  auto info = Await(store().LeaseTimeToLive(0x123456789, true));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->remaining_ttl, -1);
}

TEST_P(Contract, LeasesAreListed) {
  GRANT(one, 60);
  GRANT(two, 120);
  Settle();
  auto ids = Await(store().Leases());
  ASSERT_TRUE(ids.ok());
  EXPECT_NE(std::ranges::find(*ids, one), ids->end());
  EXPECT_NE(std::ranges::find(*ids, two), ids->end());
}

TEST_P(Contract, LeaseCompare) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  auto answer = Txn({.compare = {{.key = Key("a"), .target = kv::Compare::Target::kLease, .number = lease}}});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->succeeded);
}

TEST_P(Contract, LeaseExpiresAndDeletesItsKeys) {
  // In real time a lease of two seconds may expire before it is used.
  LeaseID lease = 0;
  Revision put = 0;
  for (int tries = 0; put == 0 && tries < 20; ++tries) {
    auto granted = Await(store().LeaseGrant(2));
    ASSERT_TRUE(granted.ok());
    lease = granted->id;
    auto answer = Txn({.success = {Op::Put({.key = Key("a"), .value = SharedBytes("1"), .lease = lease})}});
    if (answer.ok()) put = answer->revision;
  }
  ASSERT_NE(put, 0);
  auto watch = WatchKey("a", put + 1, true);
  harness_->Advance(3);
  const auto events = Take(*watch, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, Event::Type::kDelete);
  ASSERT_TRUE(events[0].prev_kv);
  EXPECT_EQ(events[0].prev_kv->value.view(), "1");
  EXPECT_FALSE(Get("a"));
  EXPECT_EQ(Await(store().LeaseTimeToLive(lease, false))->remaining_ttl, -1);
}

TEST_P(Contract, KeepAliveRenews) {
  GRANT(lease, 9);
  Put("a", "1", lease);
  for (int i = 0; i < 3; ++i) {
    harness_->Advance(4);
    auto renewed = Await(store().LeaseKeepAlive(lease));
    ASSERT_TRUE(renewed.ok());
    EXPECT_EQ(renewed->remaining_ttl, 9);
  }
  EXPECT_TRUE(Get("a"));
}

TEST_P(Contract, KeepAliveOfUnknownLeaseIsRefused) {
  EXPECT_EQ(Await(store().LeaseKeepAlive(0x123456789)).error().code, ErrorCode::kLeaseNotFound);
}

TEST_P(Contract, LeaseSurvivesReopening) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  if (!harness_->Reopen()) GTEST_SKIP() << "cannot be reopened";
  auto info = Await(store().LeaseTimeToLive(lease, true));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->granted_ttl, 60);
  EXPECT_EQ(info->keys, (std::vector<std::string>{Key("a")}));
  ASSERT_TRUE(Await(store().LeaseRevoke(lease)).ok());
  EXPECT_FALSE(Get("a"));
}

TEST_P(Contract, RevokedLeaseStaysGoneAfterReopening) {
  GRANT(lease, 60);
  Put("a", "1", lease);
  ASSERT_TRUE(Await(store().LeaseRevoke(lease)).ok());
  if (!harness_->Reopen()) GTEST_SKIP() << "cannot be reopened";
  EXPECT_EQ(Await(store().LeaseTimeToLive(lease, true))->remaining_ttl, -1);
  EXPECT_FALSE(Get("a"));
}

}  // namespace
}  // namespace keelson::kv
