// The embedded store and a new etcd get the same random requests; every answer, revisions included, must be the same.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <string>

#include "async/io_pool.h"
#include "base/testing/seeded_random.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/test_server.h"
#include "kv/memory/memory.h"

namespace keelson::kv::etcd {
namespace {

std::string Show(const KeyValue& kv) {
  return kv.key + "=" + std::string(kv.value.view()) + "@" + std::to_string(kv.create_revision) + "," +
         std::to_string(kv.mod_revision) + "," + std::to_string(kv.version) + "," + std::to_string(kv.lease) + " ";
}

std::string Show(const RangeResponse& response) {
  std::string text = "range rev=" + std::to_string(response.revision) + " count=" + std::to_string(response.count) +
                     (response.more ? " more " : " ");
  for (const KeyValue& kv : response.kvs) text += Show(kv);
  return text;
}

// etcd returns no revision for a nested transaction.
std::string Show(const TxnResponse& response, bool nested = false) {
  std::string text =
      "txn rev=" + (nested ? "-" : std::to_string(response.revision)) + (response.succeeded ? " yes [" : " no [");
  for (const OpResponse& one : response.responses) {
    switch (one.kind) {
      case Op::Kind::kRange:
        text += Show(one.range);
        break;
      case Op::Kind::kPut:
        text += "put " + (one.put_prev ? Show(*one.put_prev) : "");
        break;
      case Op::Kind::kDeleteRange:
        text += "deleted " + std::to_string(one.deleted) + " ";
        for (const KeyValue& kv : one.delete_prev) text += Show(kv);
        break;
      case Op::Kind::kTxn:
        text += Show(*one.txn, true);
        break;
    }
    text += "; ";
  }
  return text + "]";
}

template <class T>
std::string Show(const Result<T>& result) {
  return result.ok() ? Show(*result) : "error: " + result.error().message;
}

class Requests {
 public:
  explicit Requests(std::uint64_t seed) : random_(base::Seeded(seed)) {}
  bool Chance(std::uint64_t of) { return random_->Below(of) == 0; }
  std::string Key() { return "/k" + std::to_string(random_->Below(6)); }
  std::string End(const std::string& key) {
    switch (random_->Below(5)) {
      case 0:
        return PrefixEnd("/k");
      case 1:
        return Key();
      case 2:
        return std::string(1, '\0');
      default:
        return random_->Below(2) == 0 ? "" : key + "x";
    }
  }
  RangeRequest Range(Revision now) {
    RangeRequest request{.key = Key()};
    request.range_end = End(request.key);
    if (Chance(3)) request.limit = static_cast<std::int64_t>(random_->Below(4));
    if (Chance(3)) request.revision = now - 8 + static_cast<Revision>(random_->Below(10));
    request.keys_only = Chance(6);
    request.count_only = Chance(6);
    if (Chance(4)) {
      request.sort_order = static_cast<SortOrder>(random_->Below(3));
      request.sort_target = static_cast<SortTarget>(request.sort_order == SortOrder::kNone ? 0 : random_->Below(4));
    }
    if (Chance(8)) request.min_mod_revision = now - 5;
    if (Chance(8)) request.max_create_revision = now - 3;
    return request;
  }
  Compare Condition(Revision now) {
    Compare compare{.key = Key(),
                    .target = static_cast<Compare::Target>(random_->Below(5)),
                    .op = static_cast<Compare::Operator>(random_->Below(4))};
    compare.number = compare.target == Compare::Target::kVersion ? static_cast<std::int64_t>(random_->Below(3))
                                                                 : now - static_cast<Revision>(random_->Below(6));
    if (Chance(3)) compare.number = 0;
    compare.value = SharedBytes(std::to_string(random_->Below(4)));
    if (Chance(4)) compare.range_end = End(compare.key);
    return compare;
  }
  Op Operation(Revision now, int depth) {
    switch (random_->Below(depth > 0 ? 8 : 7)) {
      case 0:
      case 1:
        return Op::Range(Range(now));
      case 2: {
        DeleteRangeRequest remove{.key = Key(), .prev_kv = Chance(2)};
        if (Chance(3)) remove.range_end = End(remove.key);
        // etcd does not take a deletion "from here on" for one of keys that the transaction puts, too, and may end
        // then.
        if (remove.range_end == std::string(1, '\0')) remove.range_end = PrefixEnd("/k");
        return Op::DeleteRange(std::move(remove));
      }
      case 7:
        return Op::Txn(Txn(now, depth - 1));
      default: {
        PutRequest put{.key = Key(), .value = SharedBytes(std::to_string(random_->Below(4))), .prev_kv = Chance(2)};
        put.ignore_value = Chance(8);
        if (put.ignore_value && !Chance(4)) put.value = SharedBytes();
        put.ignore_lease = Chance(8);
        if (Chance(12)) put.lease = 4711;  // no such lease
        return Op::Put(std::move(put));
      }
    }
  }
  TxnRequest Txn(Revision now, int depth) {
    TxnRequest request;
    for (std::uint64_t i = random_->Below(3); i > 0; --i) request.compare.push_back(Condition(now));
    for (std::uint64_t i = random_->Below(4); i > 0; --i) request.success.push_back(Operation(now, depth));
    for (std::uint64_t i = random_->Below(3); i > 0; --i) request.failure.push_back(Operation(now, depth));
    return request;
  }

 private:
  const std::unique_ptr<base::Random> random_;
};

TEST(Differential, EmbeddedAnswersAsEtcd) {
  const auto server = TestServer::Start(1);
  if (!server) GTEST_SKIP() << "no etcd binary: set KEELSON_ETCD, or put one into PATH or the cache folder";
  auto opened = Open({.endpoints = server->endpoints()});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Store& real = **opened;
  const auto memory = memory::Open();
  async::IOPool io(1);
  const auto await = [&](auto task) { return asio::co_spawn(io.executor(0), std::move(task), asio::use_future).get(); };
  const char* seed_text = std::getenv("KEELSON_SEED");
  const std::uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : base::Random::Real().Next();
  SCOPED_TRACE("KEELSON_SEED=" + std::to_string(seed));
  const char* count_text = std::getenv("KEELSON_DIFFERENTIAL");
  const int count = count_text != nullptr ? std::atoi(count_text) : 1500;
  Requests requests(seed);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    const Revision now = *await(memory->CurrentRevision());
    // First with compactions, then with nested transactions. Not both: etcd accepts some that change a key twice in one
    // revision, and ends ("range failed to find revision pair") when such a revision has been compacted and is read.
    const bool nested = i >= count / 2;
    if (!nested && requests.Chance(40)) {
      const Revision at = now - 6;
      auto ours = await(memory->Compact(at, true));
      auto theirs = await(real.Compact(at, true));
      ASSERT_EQ(ours.ok(), theirs.ok());
      if (!ours.ok()) ASSERT_EQ(ours.error().message, theirs.error().message);
    } else if (requests.Chance(3)) {
      const RangeRequest request = requests.Range(now);
      ASSERT_EQ(Show(await(memory->Range(request))), Show(await(real.Range(request))));
    } else {
      const TxnRequest request = requests.Txn(now, nested ? 2 : 0);
      const auto ours = await(memory->Txn(request));
      ASSERT_EQ(Show(ours), Show(await(real.Txn(request))));
      if (!ours.ok()) ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  // Everything that is left of history, in order.
  const Revision from = std::max<Revision>(await(memory->Status())->compact_revision, 1);
  const Revision now = *await(memory->CurrentRevision());
  std::string histories[2];
  int which = 0;
  for (Store* store : {static_cast<Store*>(memory.get()), &real}) {
    auto watch = store->Watch({.key = "/", .range_end = "0", .start_revision = from, .prev_kv = true});
    for (Revision at = 0; at < now;) {
      auto response = await(watch->Next());
      ASSERT_TRUE(response.ok()) << response.error().message;
      for (const Event& event : response->events) {
        at = event.kv.mod_revision;
        histories[which] += (event.type == Event::Type::kPut ? "put " : "delete ") + Show(event.kv) +
                            (event.prev_kv ? "before " + Show(*event.prev_kv) : "") + "\n";
      }
    }
    ++which;
  }
  EXPECT_EQ(histories[0], histories[1]);
}

}  // namespace
}  // namespace keelson::kv::etcd
