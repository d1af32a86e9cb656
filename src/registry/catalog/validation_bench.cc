// Validation of a typical pod, as a create and an update run it. `KEELSON_POD` names its JSON.
// interop/kubernetes/validationbench runs this beside Kubernetes' own Go code.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "codec/json.h"
#include "registry/strategy.h"
#include "validation/defaulting.h"
#include "validation/primitives.h"

namespace keelson::registry {
namespace {

using base::Arena;

bool NoFeature(std::string_view) { return false; }

Value Pod(Arena& arena) {
  const char* name = std::getenv("KEELSON_POD");
  std::ifstream file(name != nullptr ? name : "interop/codecbench/testdata/pod.json", std::ios::binary);
  KS_CHECK(file.good());
  const schema::Struct& type = *schema::FindKind("", "v1", "Pod");
  const auto decoded = codec::DecodeJSON(arena, std::string(std::istreambuf_iterator<char>(file), {}), type);
  KS_CHECK(decoded.ok());
  Value pod = decoded->value;
  validation::ApplyTableDefaults(arena, type, pod);
  FindStrategy("", "Pod")->defaults(arena, pod);
  return pod;
}

struct Setting {
  std::vector<std::string> warnings;
  Call CallIn(Arena& arena) {
    return {.arena = arena,
            .clock = base::Clock::Real(),
            .random = base::Random::Real(),
            .warnings = warnings,
            .user_name = "admin",
            .name_space = "default",
            .request_version = "v1",
            .feature_enabled = NoFeature,
            .allow_privileged = true};
  }
};

void BM_ValidatePod(benchmark::State& state) {
  Arena given;
  const Value pod = Pod(given);
  const Strategy& strategy = *FindStrategy("", "Pod");
  const FieldPath path("metadata");
  Setting setting;
  for (auto _ : state) {
    Arena arena;
    FieldErrors errors;
    validation::ValidateObjectMeta(pod["metadata"], true, strategy.name_rule, path, errors, strategy.core_finalizers);
    strategy.validate(setting.CallIn(arena), pod, Value(), errors);
    KS_CHECK(errors.empty());
  }
}
BENCHMARK(BM_ValidatePod);

void BM_ValidatePodUpdate(benchmark::State& state) {
  Arena given;
  const Value old = Pod(given);
  const Value pod = Pod(given);
  pod["metadata"].EnsureMap(given, "labels").Set(given, "changed", "yes");
  const Strategy& strategy = *FindStrategy("", "Pod");
  Setting setting;
  for (auto _ : state) {
    Arena arena;
    FieldErrors errors;
    strategy.update.validate_update(setting.CallIn(arena), pod, old, errors);
    KS_CHECK(errors.empty());
  }
}
BENCHMARK(BM_ValidatePodUpdate);

}  // namespace
}  // namespace keelson::registry
