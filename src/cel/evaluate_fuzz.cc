// Evaluates whatever compiles on values made of the same bytes: costs stay within the limit's reach, values can be
// printed, and a second evaluation answers the same. Input: the expression, a zero byte, the bytes of the values.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cel/fuzz_inputs_test.h"
#include "cel/program_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;
  constexpr std::uint64_t kLimit = 20'000;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find('\0');
  static const cel::EnvironmentPtr kEnv = cel::FuzzEnvironment();
  const cel::CompilationPtr compiled = cel::CompileProgram(kEnv, text.substr(0, cut));
  if (compiled->program == nullptr) return 0;
  base::Arena arena;
  cel::FuzzBytes bytes(cut == std::string_view::npos ? std::string_view() : text.substr(cut + 1));
  cel::ValueActivation activation = cel::FuzzActivation(arena, bytes);
  const auto first = compiled->program->Evaluate(arena, activation, {.cost_limit = kLimit});
  const auto second = compiled->program->Evaluate(arena, activation, {.cost_limit = kLimit});
  KS_CHECK(first.cost == second.cost && first.ok() == second.ok() && first.cost_exceeded == second.cost_exceeded);
  KS_CHECK(first.cost <= kLimit || first.cost_exceeded);
  KS_CHECK(cel::GoText(arena, first.value) == cel::GoText(arena, second.value));
  return 0;
}
