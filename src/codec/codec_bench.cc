// Speed of the codecs on a real-looking pod and on Kubernetes' fixtures of all kinds. Run from the source root;
// interop/codecbench runs this beside Kubernetes' own Go codecs and prints the ratios.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "codec/fixtures_test.h"
#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/transcode.h"

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

void Report(benchmark::State& state, const std::vector<Sample>& samples) {
  std::size_t bytes = 0;
  for (const Sample& sample : samples) bytes += sample.json.size();
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  if (samples.empty()) state.SkipWithError("no samples");
}

void BM_JSONDecode(benchmark::State& state) {
  const auto& samples = Samples(state);
  for (auto _ : state) {
    for (const Sample& sample : samples) {
      Arena arena;
      benchmark::DoNotOptimize(FindTypeMeta(arena, sample.json));
      benchmark::DoNotOptimize(DecodeJSON(arena, sample.json, *sample.type));
    }
  }
  Report(state, samples);
}

void BM_JSONEncode(benchmark::State& state) {
  const auto& samples = Samples(state);
  Arena arena;
  std::vector<Value> values;
  for (const Sample& sample : samples) values.push_back(DecodeJSON(arena, sample.json, *sample.type)->value);
  for (auto _ : state) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::string out;
      EncodeJSON(values[i], *samples[i].type, out);
      benchmark::DoNotOptimize(out.data());
    }
  }
  Report(state, samples);
}

void BM_ProtoDecode(benchmark::State& state) {
  const auto& samples = Samples(state);
  for (auto _ : state) {
    for (const Sample& sample : samples) {
      Arena arena;
      benchmark::DoNotOptimize(DecodeProto(arena, sample.proto, *sample.type));
    }
  }
  Report(state, samples);
}

void BM_ProtoEncode(benchmark::State& state) {
  const auto& samples = Samples(state);
  Arena arena;
  std::vector<Value> values;
  for (const Sample& sample : samples) values.push_back(DecodeJSON(arena, sample.json, *sample.type)->value);
  for (auto _ : state) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::string out;
      EncodeProto(values[i], *samples[i].type, out);
      benchmark::DoNotOptimize(out.data());
    }
  }
  Report(state, samples);
}

void BM_ProtoToJSON(benchmark::State& state) {
  const auto& samples = Samples(state);
  for (auto _ : state) {
    for (const Sample& sample : samples) {
      std::string out;
      benchmark::DoNotOptimize(TranscodeProto(sample.proto, *sample.type, out));
      benchmark::DoNotOptimize(out.data());
    }
  }
  Report(state, samples);
}

BENCHMARK(BM_JSONDecode)->Arg(0)->Arg(1);
BENCHMARK(BM_JSONEncode)->Arg(0)->Arg(1);
BENCHMARK(BM_ProtoDecode)->Arg(0)->Arg(1);
BENCHMARK(BM_ProtoEncode)->Arg(0)->Arg(1);
BENCHMARK(BM_ProtoToJSON)->Arg(0)->Arg(1);

}  // namespace
}  // namespace keelson::codec
