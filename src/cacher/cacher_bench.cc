// Cost of the watch cache with 10,000 pods of about 5.7 kB (protobuf): lists, gets, changes beside watchers that
// they do not concern.
#include <benchmark/benchmark.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <fstream>
#include <string>

#include "async/io_pool.h"
#include "base/check.h"
#include "cacher/cacher.h"
#include "kv/memory/memory.h"
#include "storage/schema_codec.h"
#include "storage/store.h"

namespace keelson::cacher {
namespace {

std::size_t ResidentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  }
  return 0;
}

Value Pod(base::Arena& arena, int number, int version) {
  Value pod = Value::Map(arena);
  Value metadata = pod.EnsureMap(arena, "metadata");
  metadata.Set(arena, "name", Value::String(arena, "pod-" + std::to_string(number)));
  metadata.Set(arena, "namespace", Value::String(arena, "ns-" + std::to_string(number % 20)));
  metadata.Set(arena, "uid", "6b1c2f6e-58a5-4c5f-8f0f-0d7d3a3d1c55");
  Value labels = metadata.EnsureMap(arena, "labels");
  labels.Set(arena, "app", Value::String(arena, "app-" + std::to_string(number % 50)));
  labels.Set(arena, "tier", "backend");
  labels.Set(arena, "pod-template-hash", "5d4f8c7b9");
  metadata.EnsureMap(arena, "annotations")
      .Set(arena, "padding", Value::String(arena, std::string(5200, static_cast<char>('a' + version % 26))));
  Value spec = pod.EnsureMap(arena, "spec");
  spec.Set(arena, "nodeName", Value::String(arena, "node-" + std::to_string(number % 500)));
  Value containers = spec.EnsureList(arena, "containers");
  for (int i = 0; i < 2; ++i) {
    Value container = Value::Map(arena);
    container.Set(arena, "name", "main");
    container.Set(arena, "image", "registry.example.com/team/application:v1.2.3");
    containers.Append(arena, container);
  }
  pod.EnsureMap(arena, "status").Set(arena, "phase", "Running");
  return pod;
}

Awaitable<meta::Result<storage::Updated>> Replace(Value object) { co_return storage::Updated{.object = object}; }

struct World {
  static World& Get(int pods) {
    static World world(pods);
    return world;
  }

  explicit World(int pods) {
    before_kb = ResidentKilobytes();
    cacher.Start();
    while (!cacher.Ready()) std::this_thread::yield();
    for (int i = 0; i < pods; ++i) {
      base::Arena arena;
      KS_CHECK(Await(cacher.Create(Key(i), Pod(arena, i, 0), 0)).ok());
    }
    KS_CHECK(Await(cacher.GetList("/pods", {})).ok());
    after_kb = ResidentKilobytes();
  }
  ~World() { cacher.Stop(); }

  static std::string Key(int i) { return "/pods/ns-" + std::to_string(i % 20) + "/pod-" + std::to_string(i); }
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io.executor(1), std::move(task), asio::use_future).get();
  }

  std::size_t before_kb = 0;
  std::size_t after_kb = 0;
  async::IOPool io{2};
  std::unique_ptr<storage::ResourceCodec> codec =
      storage::NewSchemaCodec({.resource = {"", "pods"},
                               .storage = {"", "v1", "Pod"},
                               .type = schema::FindKind("", "v1", "Pod"),
                               .fields = {{"spec.nodeName", "spec.nodeName", {}},
                                          {"status.phase", "status.phase", {}},
                                          {"spec.hostNetwork", "spec.hostNetwork", {}}}});
  std::unique_ptr<kv::Store> kv = kv::memory::Open();
  storage::LeaseManager leases{*kv, base::Clock::Real()};
  storage::Store store{{.kv = *kv, .codec = *codec, .leases = leases}, {.resource_prefix = "/pods"}};
  HistoryBudget budget{16 << 20};
  Cacher cacher{store, io.executor(0), base::Clock::Real(), budget, {.trigger_field = "spec.nodeName"}};
};

constexpr int kPods = 10000;

storage::SelectionPredicate Select(std::string_view labels, std::string_view fields) {
  storage::SelectionPredicate predicate;
  if (!labels.empty())
    predicate.label = std::make_shared<const meta::LabelSelector>(*meta::LabelSelector::Parse(labels));
  if (!fields.empty())
    predicate.field = std::make_shared<const meta::FieldSelector>(*meta::FieldSelector::Parse(fields));
  return predicate;
}

void ListWith(benchmark::State& state, storage::ListOptions options) {
  World& world = World::Get(kPods);
  std::size_t items = 0;
  for (auto _ : state) {
    auto list = world.Await(world.cacher.GetList("/pods", options));
    items = list->items.size();
  }
  state.counters["items"] = static_cast<double>(items);
}

void BM_ListEverything(benchmark::State& state) { ListWith(state, {.resource_version = "0"}); }
void BM_ListConsistent(benchmark::State& state) { ListWith(state, {}); }
void BM_ListByNode(benchmark::State& state) {
  ListWith(state, {.resource_version = "0", .predicate = Select("", "spec.nodeName=node-7")});
}
void BM_ListByLabel(benchmark::State& state) {
  ListWith(state, {.resource_version = "0", .predicate = Select("app=app-7", "")});
}
BENCHMARK(BM_ListEverything)->UseRealTime();
BENCHMARK(BM_ListConsistent)->UseRealTime();
BENCHMARK(BM_ListByNode)->UseRealTime();
BENCHMARK(BM_ListByLabel)->UseRealTime();

void BM_GetLatest(benchmark::State& state) {
  World& world = World::Get(kPods);
  for (auto _ : state) KS_CHECK(world.Await(world.cacher.Get(World::Key(77), {})).ok());
  state.counters["rss_MB_of_10k_pods_with_memory_kv"] = static_cast<double>(world.after_kb - world.before_kb) / 1024;
}
BENCHMARK(BM_GetLatest)->UseRealTime();

// One change with N watchers on other nodes: must not depend on N.
void BM_UpdateBesideWatchers(benchmark::State& state) {
  World& world = World::Get(kPods);
  std::vector<std::unique_ptr<storage::WatchStream>> streams;
  const std::string now = std::to_string(*world.Await(world.cacher.GetCurrentResourceVersion()));
  for (int i = 0; i < state.range(0); ++i) {
    storage::ListOptions options{.resource_version = now,
                                 .predicate = Select("", "spec.nodeName=elsewhere-" + std::to_string(i))};
    streams.push_back(*world.Await(world.cacher.Watch("/pods", options)));
    streams.back()->Start([] {});
    storage::WatchEvent event;
    KS_CHECK(streams.back()->Next(event) == storage::WatchStream::Poll::kPending);
  }
  int version = 0;
  for (auto _ : state) {
    base::Arena arena;
    const Value pod = Pod(arena, 7, ++version);
    KS_CHECK(world
                 .Await(world.cacher.GuaranteedUpdate(World::Key(7), false, {},
                                                      [&](const storage::ObjectPtr&) { return Replace(pod); }))
                 .ok());
  }
}
BENCHMARK(BM_UpdateBesideWatchers)->Arg(0)->Arg(5000)->UseRealTime();

// N watchers of everything poll one event each.
void BM_DeliverEvent(benchmark::State& state) {
  World& world = World::Get(kPods);
  std::vector<std::unique_ptr<storage::WatchStream>> streams;
  const std::string now = std::to_string(*world.Await(world.cacher.GetCurrentResourceVersion()));
  for (int i = 0; i < state.range(0); ++i) {
    streams.push_back(*world.Await(world.cacher.Watch("/pods", {.resource_version = now})));
    streams.back()->Start([] {});
  }
  int version = 0;
  for (auto _ : state) {
    state.PauseTiming();
    base::Arena arena;
    const Value pod = Pod(arena, 8, ++version);
    auto updated = world.Await(world.cacher.GuaranteedUpdate(World::Key(8), false, {},
                                                             [&](const storage::ObjectPtr&) { return Replace(pod); }));
    while (world.cacher.resource_version() < (*updated)->resource_version()) std::this_thread::yield();
    state.ResumeTiming();
    for (auto& stream : streams) {
      storage::WatchEvent event;
      while (stream->Next(event) == storage::WatchStream::Poll::kEvent) benchmark::DoNotOptimize(event.object.get());
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_DeliverEvent)->Arg(1000);

}  // namespace
}  // namespace keelson::cacher
