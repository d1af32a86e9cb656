// Speed of the codecs on a real-looking pod and on Kubernetes' fixtures of all kinds. Run from the source root;
// interop/codecbench runs this beside Kubernetes' own Go codecs and prints the ratios.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "codec/fixtures_test.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode_test.h"

namespace {
std::size_t allocations = 0;
}

// The executable's malloc comes before the library's, for operator new too; it does the library's work.
extern "C" void* __libc_malloc(std::size_t bytes);  // NOLINT: the library's name
extern "C" void* malloc(std::size_t bytes) {        // NOLINT
  ++allocations;
  return __libc_malloc(bytes);
}

namespace keelson::codec {
namespace {

using base::Arena;

struct Sample {
  const schema::Struct* type;
  std::string json, proto;
};

std::vector<Sample> Load(bool pod) {
  std::vector<Sample> samples;
  const auto add = [&](const schema::Struct& type, std::string_view text) {
    Arena arena;
    const auto decoded = DecodeJSON(arena, text, type);
    if (!decoded.ok()) std::abort();
    Sample sample{&type, {}, {}};
    EncodeJSON(decoded->value, type, sample.json);
    EncodeProto(decoded->value, type, sample.proto);
    samples.push_back(std::move(sample));
  };
  if (pod) {
    add(*schema::FindKind("", "v1", "Pod"), ReadFile("interop/codecbench/testdata/pod.json"));
  } else {
    for (const Fixture& fixture : Fixtures()) {
      if (!fixture.name.ends_with(".WatchEvent")) add(*fixture.type, fixture.json);  // Go's serializer does not take it
    }
  }
  return samples;
}

const std::vector<Sample>& Samples(const benchmark::State& state) {
  static const std::vector<Sample> kPod = Load(true), kAll = Load(false);
  return state.range(0) == 0 ? kPod : kAll;
}

// Times `one` over all samples, and counts what a pass allocates.
template <class F>
void Passes(benchmark::State& state, const std::vector<Sample>& samples, F one) {
  if (samples.empty()) return state.SkipWithError("no samples");
  const auto pass = [&] {
    for (std::size_t i = 0; i < samples.size(); ++i) one(samples[i], i);
  };
  const std::size_t before = allocations;
  pass();
  state.counters["allocations"] = static_cast<double>(allocations - before);
  for (auto _ : state) pass();
  std::size_t bytes = 0;
  for (const Sample& sample : samples) bytes += sample.json.size();
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void BM_JSONDecode(benchmark::State& state) {
  Passes(state, Samples(state), [](const Sample& sample, std::size_t) {
    Arena arena;
    benchmark::DoNotOptimize(FindTypeMeta(arena, sample.json));
    benchmark::DoNotOptimize(DecodeJSON(arena, sample.json, *sample.type));
  });
}

std::vector<Value> Decoded(Arena& arena, const std::vector<Sample>& samples) {
  std::vector<Value> values;
  for (const Sample& sample : samples) values.push_back(DecodeJSON(arena, sample.json, *sample.type)->value);
  return values;
}

void BM_JSONEncode(benchmark::State& state) {
  Arena arena;
  const std::vector<Value> values = Decoded(arena, Samples(state));
  Passes(state, Samples(state), [&](const Sample& sample, std::size_t i) {
    std::string out;
    EncodeJSON(values[i], *sample.type, out);
    benchmark::DoNotOptimize(out.data());
  });
}

void BM_ProtoDecode(benchmark::State& state) {
  Passes(state, Samples(state), [](const Sample& sample, std::size_t) {
    Arena arena;
    benchmark::DoNotOptimize(DecodeProto(arena, sample.proto, *sample.type));
  });
}

void BM_ProtoEncode(benchmark::State& state) {
  Arena arena;
  const std::vector<Value> values = Decoded(arena, Samples(state));
  Passes(state, Samples(state), [&](const Sample& sample, std::size_t i) {
    std::string out;
    EncodeProto(values[i], *sample.type, out);
    benchmark::DoNotOptimize(out.data());
  });
}

void BM_ProtoToJSON(benchmark::State& state) {
  Passes(state, Samples(state), [](const Sample& sample, std::size_t) {
    std::string out;
    benchmark::DoNotOptimize(TranscodeProto(sample.proto, *sample.type, out));
    benchmark::DoNotOptimize(out.data());
  });
}

BENCHMARK(BM_JSONDecode)->Arg(0)->Arg(1);
BENCHMARK(BM_JSONEncode)->Arg(0)->Arg(1);
BENCHMARK(BM_ProtoDecode)->Arg(0)->Arg(1);
BENCHMARK(BM_ProtoEncode)->Arg(0)->Arg(1);
BENCHMARK(BM_ProtoToJSON)->Arg(0)->Arg(1);

}  // namespace
}  // namespace keelson::codec
