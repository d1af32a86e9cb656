// Evaluates whatever compiles on an object made of the same bytes: costs stay within the limit's reach, values can be
// printed, and a second evaluation answers the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cel/environment.h"
#include "cel/program_cache.h"
#include "object/json_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;
  constexpr std::uint64_t kLimit = 20'000;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find('\0');
  const std::string_view expression = text.substr(0, cut);
  const std::string_view json = cut == std::string_view::npos ? "{}" : text.substr(cut + 1);
  static const cel::EnvironmentPtr kEnv =
      cel::BaseEnvironment(cel::ExpressionMode::kStored)->Extend({.variables = {{"self", &cel::kDynType}}});
  const cel::CompilationPtr compiled = cel::CompileProgram(kEnv, expression);
  if (compiled->program == nullptr) return 0;
  base::Arena arena;
  const auto object = object::ParseJSON(arena, json);
  cel::ValueActivation activation;
  activation.Set("self", object ? cel::FromObject(arena, *object) : cel::Val());
  const auto first = compiled->program->Evaluate(arena, activation, {.cost_limit = kLimit});
  const auto second = compiled->program->Evaluate(arena, activation, {.cost_limit = kLimit});
  KS_CHECK(first.cost == second.cost && first.ok() == second.ok() && first.cost_exceeded == second.cost_exceeded);
  KS_CHECK(first.cost <= kLimit || first.cost_exceeded);
  if (first.ok()) (void)cel::GoText(arena, first.value).size();
  return 0;
}
