// A commit beside watchers that it does not concern.
#include <benchmark/benchmark.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <memory>
#include <vector>

#include "async/io_pool.h"
#include "kv/memory/memory.h"
#include "kv/mvcc/watch_hub.h"

namespace keelson::kv::mvcc {
namespace {

std::string Prefix(std::int64_t i) { return "/registry/example.com/widgets" + std::to_string(i) + "/"; }

void BM_Publish(benchmark::State& state) {
  WatchHub hub;
  std::vector<std::unique_ptr<WatchCursor>> cursors;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    auto& cursor = cursors.emplace_back(std::make_unique<WatchCursor>());
    cursor->next = 2;
    hub.Join(*cursor, Prefix(i), PrefixEnd(Prefix(i)), true);
    hub.Wait(*cursor, 1, [](Wake) {});
  }
  Entry entry{"/registry/pods/default/web", {}};
  Revision visible = 1;
  for (auto _ : state) {
    const Change change{.revision = ++visible, .entry = &entry};
    benchmark::DoNotOptimize(hub.Publish({&change, 1}, visible));
  }
  for (auto& cursor : cursors) hub.Leave(*cursor, true);
}
BENCHMARK(BM_Publish)->Arg(0)->Arg(2000)->Arg(20000);

Awaitable<void> Follow(Watcher& watch) {
  while ((co_await watch.Next()).ok()) {
  }
}

void BM_PutBesideWatchers(benchmark::State& state) {
  async::IOPool io(1);
  auto store = memory::Open({});
  std::vector<std::unique_ptr<Watcher>> watches;
  std::vector<std::future<void>> following;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    watches.push_back(store->Watch({.key = Prefix(i), .range_end = PrefixEnd(Prefix(i)), .prev_kv = true}));
    following.push_back(asio::co_spawn(io.executor(0), Follow(*watches.back()), asio::use_future));
  }
  for (auto _ : state) {
    TxnRequest request{.success = {Op::Put({.key = "/registry/pods/default/web", .value = SharedBytes("x")})}};
    benchmark::DoNotOptimize(asio::co_spawn(io.executor(0), store->Txn(std::move(request)), asio::use_future).get());
  }
  for (auto& watch : watches) watch->Cancel();
  for (auto& one : following) one.get();  // a watcher is destroyed when no Next() is pending
}
BENCHMARK(BM_PutBesideWatchers)->Arg(0)->Arg(2000)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace keelson::kv::mvcc
