#include "kv/migrate/migrate.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <map>
#include <random>
#include <thread>

#include "async/io_pool.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/test_server.h"
#include "kv/memory/memory.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "kv/rocks/tools.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::kv::migrate {
namespace {

const std::string kAll(1, '\0');

class Migrate : public ::testing::Test {
 protected:
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.executor(0), std::move(task), asio::use_future).get();
  }
  Revision Put(Store& store, const std::string& key, const std::string& value, LeaseID lease = 0) {
    TxnRequest request{.success = {Op::Put({.key = key, .value = SharedBytes(value), .lease = lease})}};
    auto answer = Await(store.Txn(std::move(request)));
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? answer->revision : 0;
  }
  void Delete(Store& store, const std::string& key, const std::string& end = "") {
    TxnRequest request{.success = {Op::DeleteRange({.key = key, .range_end = end})}};
    EXPECT_TRUE(Await(store.Txn(std::move(request))).ok());
  }
  std::map<std::string, KeyValue> All(Store& store) {
    RangeRequest request{.key = kAll, .range_end = kAll};
    auto answer = Await(store.Range(std::move(request)));
    EXPECT_TRUE(answer.ok());
    std::map<std::string, KeyValue> all;
    if (answer.ok()) {
      for (KeyValue& kv : answer->kvs) all[kv.key] = std::move(kv);
    }
    return all;
  }
  // Values, leases and, where they are kept, revisions.
  void ExpectSame(Store& from, Store& to, bool same_revisions) {
    const auto a = All(from);
    const auto b = All(to);
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [key, kv] : a) {
      ASSERT_TRUE(b.contains(key)) << key;
      EXPECT_EQ(kv.value.view(), b.at(key).value.view()) << key;
      EXPECT_EQ(kv.lease, b.at(key).lease) << key;
      if (same_revisions) EXPECT_EQ(kv.mod_revision, b.at(key).mod_revision) << key;
    }
  }
  static Awaitable<Result<Report>> Once(Store& from, Store& to, Options options) {
    Migration migration(from, to, std::move(options));
    KS_CO_RETURN_IF_ERROR(co_await migration.Start());
    co_return co_await migration.Finish();
  }
  static Awaitable<Result<Report>> Following(Store& from, Store& to, std::promise<Migration*>& started) {
    Migration migration(from, to, {});
    auto begun = co_await migration.Start();
    started.set_value(&migration);
    if (!begun.ok()) co_return std::move(begun).error();
    KS_CO_RETURN_IF_ERROR(co_await migration.Follow());
    co_return co_await migration.Finish();
  }
  // A store with overwritten, deleted and leased keys and several keys of one transaction; ends as `last` says.
  void Fill(Store& store, int keys, bool last_is_deletion) {
    auto lease = Await(store.LeaseGrant(3600, 77));
    ASSERT_TRUE(lease.ok());
    for (int i = 0; i < keys; ++i) {
      Put(store, "/k" + std::to_string(i), std::string(100, 'a'));
      if (i % 3 == 0) Put(store, "/k" + std::to_string(i), std::to_string(i), i % 2 == 0 ? 77 : 0);
      if (i % 7 == 0) Delete(store, "/k" + std::to_string(i / 2));
    }
    TxnRequest many;
    for (int i = 0; i < 100; ++i) many.success.push_back(Op::Put({.key = "/many" + std::to_string(i)}));
    ASSERT_TRUE(Await(store.Txn(std::move(many))).ok());
    Put(store, "/gone", "1");
    if (last_is_deletion) Delete(store, "/gone");
  }

  async::IOPool io_{1};
};

TEST_F(Migrate, KeysKeepTheirRevisions) {
  for (const bool deletion : {false, true}) {
    SCOPED_TRACE(deletion);
    auto from = memory::Open();
    Fill(*from, 60, deletion);
    auto to = memory::Open();
    auto report = Await(Once(*from, *to, {}));
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->same_revisions);
    EXPECT_EQ(report->leases, 1);
    EXPECT_EQ(*Await(to->CurrentRevision()), *Await(from->CurrentRevision()));
    ExpectSame(*from, *to, true);
    // Watches from before are too old; watches from now on continue.
    auto old = to->Watch({.key = "/", .range_end = "0", .start_revision = report->from_revision - 1});
    EXPECT_EQ(Await(old->Next()).error().code, ErrorCode::kCompacted);
    EXPECT_EQ(Put(*to, "/next", "1"), report->from_revision + 1);
  }
}

TEST_F(Migrate, EmptyStoreIsCopied) {
  auto from = memory::Open();
  auto to = memory::Open();
  ASSERT_TRUE(Await(Once(*from, *to, {})).ok());
  Put(*from, "/a", "1");
  Delete(*from, "/a");
  auto report = Await(Once(*from, *to, {}));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->to_revision, 3);
  EXPECT_TRUE(All(*to).empty());
}

TEST_F(Migrate, TargetAheadGetsNewRevisionsBeyondTheSource) {
  auto from = memory::Open();
  Fill(*from, 60, false);
  auto to = memory::Open();
  for (int i = 0; i < 5; ++i) Put(*to, "/used", "before");
  Delete(*to, "/used");
  auto report = Await(Once(*from, *to, {}));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->same_revisions);
  ExpectSame(*from, *to, false);
  for (const auto& [key, kv] : All(*to)) EXPECT_GT(kv.mod_revision, report->from_revision) << key;
}

TEST_F(Migrate, RefusesATargetThatIsNotACopy) {
  auto from = memory::Open();
  Fill(*from, 10, false);
  auto to = memory::Open();
  Put(*to, "/other", "1");
  auto refused = Await(Once(*from, *to, {}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("differs"), std::string::npos) << refused.error().message;
  EXPECT_EQ(All(*to).size(), 1U) << "nothing was written";
  for (int i = 0; i < 100; ++i) Put(*from, "/again", std::to_string(i));
  auto far = memory::Open();
  auto too_far = Await(Once(*from, *far, {.scratch_writes_max = 50}));
  ASSERT_FALSE(too_far.ok());
  EXPECT_NE(too_far.error().message.find("bump-revision"), std::string::npos);
}

TEST_F(Migrate, GoesOnWhereItStopped) {
  auto from = memory::Open();
  auto to = memory::Open();
  Fill(*from, 30, true);
  ASSERT_TRUE(Await(Once(*from, *to, {})).ok());
  for (int i = 0; i < 20; ++i) Put(*from, "/later" + std::to_string(i % 7), std::to_string(i));
  Delete(*from, "/later3");
  auto report = Await(Once(*from, *to, {}));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->changes, 21);
  ExpectSame(*from, *to, true);
  Put(*to, "/foreign", "1");
  EXPECT_FALSE(Await(Once(*from, *to, {})).ok()) << "somebody else wrote to it";
  for (int i = 0; i < 3; ++i) Put(*from, "/later", "1");
  EXPECT_FALSE(Await(Once(*from, *to, {})).ok());
}

TEST_F(Migrate, OneDeletionOfManyKeysStaysOneRevision) {
  auto from = memory::Open();
  auto to = memory::Open();
  for (int i = 0; i < 400; ++i) Put(*from, "/p/" + std::to_string(i), "1");
  Put(*from, "/p0", "stays");
  ASSERT_TRUE(Await(Once(*from, *to, {})).ok());
  Delete(*from, "/p/", "/p0");
  auto report = Await(Once(*from, *to, {}));
  ASSERT_TRUE(report.ok()) << report.error().message;
  ExpectSame(*from, *to, true);
  EXPECT_EQ(All(*to).size(), 1U);
}

// Random writes go on while a store is copied and followed; what is there in the end is the same.
Result<Report> CopyWhileWriting(const std::function<void(int)>& write, async::IOPool& io,
                                const std::function<Awaitable<Result<Report>>(std::promise<Migration*>&)>& follow) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) write(i);
  });
  std::promise<Migration*> started;
  auto running = asio::co_spawn(io.executor(0), follow(started), asio::use_future);
  Migration* migration = started.get_future().get();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  stop = true;
  writer.join();
  migration->Stop();
  return running.get();
}

TEST_F(Migrate, FollowsALiveStoreIntoAnother) {
  auto from = memory::Open();
  auto to = memory::Open();
  Fill(*from, 50, false);
  async::IOPool other(1);
  std::mt19937 random(7);
  const Result<Report> outcome = CopyWhileWriting(
      [&](int i) {
        const std::string key = "/live" + std::to_string(random() % 50);
        TxnRequest request;
        request.success.push_back(i % 5 == 0 ? Op::DeleteRange({.key = key})
                                             : Op::Put({.key = key, .value = SharedBytes(std::to_string(i))}));
        ASSERT_TRUE(asio::co_spawn(other.executor(0), from->Txn(std::move(request)), asio::use_future).get().ok());
      },
      io_, [&](std::promise<Migration*>& started) { return Following(*from, *to, started); });
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_GT(outcome->changes, 0);
  ExpectSame(*from, *to, true);
  EXPECT_EQ(*Await(to->CurrentRevision()), *Await(from->CurrentRevision()));
}

// With a real etcd: embedded to etcd while it is written to, and back, every key at its own revision all the way.
TEST_F(Migrate, EmbeddedToEtcdAndBack) {
  auto server = etcd::TestServer::Start(1);
  if (!server) GTEST_SKIP() << "no etcd binary";
  rocks::TempDir temp;
  auto from = rocks::Open({.dir = temp.path() + "/from"});
  ASSERT_TRUE(from.ok());
  Fill(**from, 200, true);
  auto to = etcd::Open({.endpoints = server->endpoints()});
  ASSERT_TRUE(to.ok());
  async::IOPool other(1);
  const Result<Report> outcome = CopyWhileWriting(
      [&](int i) {
        TxnRequest request{.success = {Op::Put({.key = "/live" + std::to_string(i % 20),
                                                .value = SharedBytes(std::to_string(i)),
                                                .lease = i % 4 == 0 ? 77 : 0})}};
        ASSERT_TRUE(asio::co_spawn(other.executor(0), (*from)->Txn(std::move(request)), asio::use_future).get().ok());
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      },
      io_, [&](std::promise<Migration*>& started) { return Following(**from, **to, started); });
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(outcome->same_revisions);
  ExpectSame(**from, **to, true);
  EXPECT_EQ(*Await((*to)->CurrentRevision()), *Await((*from)->CurrentRevision()));

  // And back: a snapshot of the etcd makes the folder, then changes follow.
  const std::string file = temp.path() + "/snapshot";
  const std::string back = temp.path() + "/back";
  ASSERT_TRUE(Await(snapshot::WriteFile(**to, file)).ok());
  ASSERT_TRUE(rocks::Restore(file, back).ok());
  Put(**to, "/after", "1");
  Delete(**to, "/k1");
  auto returned = rocks::Open({.dir = back});
  ASSERT_TRUE(returned.ok());
  auto report = Await(Once(**to, **returned, {}));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->changes, 2);
  ExpectSame(**to, **returned, true);
  EXPECT_EQ(*Await((*returned)->CurrentRevision()), *Await((*to)->CurrentRevision()));
}

}  // namespace
}  // namespace keelson::kv::migrate
