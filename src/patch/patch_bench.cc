// A typical pod through the work that a write means here. `KEELSON_POD` names its JSON.
// interop/applybench runs this beside Kubernetes' own Go code.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "object/json_text.h"
#include "patch/field_manager.h"
#include "patch/strategic_merge.h"

namespace keelson::patch {
namespace {

using base::Arena;

constexpr std::string_view kNow = "2026-01-01T00:00:00Z";

const std::string& PodText() {
  static const std::string text = [] {
    const char* name = std::getenv("KEELSON_POD");
    std::ifstream file(name != nullptr ? name : "interop/codecbench/testdata/pod.json", std::ios::binary);
    KS_CHECK(file.good());
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return text;
}

const schema::Struct& PodType() { return *schema::FindKind("", "v1", "Pod"); }

Value Tree(Arena& arena, std::string_view text) {
  const auto parsed = object::ParseJSON(arena, text);
  KS_CHECK(parsed.has_value());
  return *parsed;
}

// As the codec leaves it: the sets of managedFields are text.
Value Pod(Arena& arena) {
  const Value pod = Tree(arena, PodText());
  for (Value entry : pod.Get("metadata", "managedFields").items()) {
    entry.Set(arena, "fieldsV1", Value::Raw(arena.Copy(object::ToJSON(entry["fieldsV1"]))));
  }
  return pod;
}

FieldManager Manager() {
  return FieldManager({.type = &PodType(), .kind = {"", "v1", "Pod"}, .reset_fields = {"status"}});
}

// A typical applied configuration: the pod without server-set fields.
Value Config(Arena& arena) {
  Value config = Tree(arena, PodText());
  for (const char* key : {"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"})
    config["metadata"].Erase(key);
  config.Erase("status");
  config["metadata"].EnsureMap(arena, "labels").Set(arena, "applied", "yes");
  return config;
}

void BM_UpdatePod(benchmark::State& state) {
  Arena given;
  const FieldManager manager = Manager();
  const Value live = Pod(given);
  for (auto _ : state) {
    Arena arena;
    Value now = live.Clone(arena);
    now["metadata"].EnsureMap(arena, "labels").Set(arena, "changed", "yes");
    manager.Update(arena, live, now, "bench", kNow);
    benchmark::DoNotOptimize(now);
  }
}
BENCHMARK(BM_UpdatePod);

void BM_ApplyPod(benchmark::State& state) {
  Arena given;
  const FieldManager manager = Manager();
  const Value live = Pod(given);
  const Value config = Config(given);
  for (auto _ : state) {
    Arena arena;
    auto result = manager.Apply(arena, live, config, "bench", true, kNow);
    KS_CHECK(result.ok());
    benchmark::DoNotOptimize(*result);
  }
}
BENCHMARK(BM_ApplyPod);

void BM_StrategicPatchPod(benchmark::State& state) {
  Arena given;
  const Value live = Tree(given, PodText());
  const std::string name(live.Get("spec", "containers")[std::size_t{0}]["name"].as_string());
  const std::string text = R"({"metadata":{"labels":{"changed":"yes"}},"spec":{"containers":[{"name":")" + name +
                           R"(","image":"new","env":[{"name":"ADDED","value":"1"}]}]}})";
  const Value patch = Tree(given, text);
  for (auto _ : state) {
    Arena arena;
    auto result = ApplyStrategicMergePatch(arena, live, patch, PodType());
    KS_CHECK(result.ok());
    benchmark::DoNotOptimize(*result);
  }
}
BENCHMARK(BM_StrategicPatchPod);

}  // namespace
}  // namespace keelson::patch
