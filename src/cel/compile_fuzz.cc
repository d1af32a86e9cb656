// Any text compiles or is refused with a message; a parsed tree is written, parsed again and is the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cel/compiler.h"
#include "cel/cost_estimator.h"
#include "cel/environment.h"
#include "cel/unparser.h"
#include "cel/walk.h"

using namespace keelson::cel;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const EnvironmentPtr env =
      BaseEnvironment(ExpressionMode::kStored)
          ->Extend(
              {.libraries = {Library::kBindings},
               .variables = {{"self", &kDynType}, {"s", &kStringType}, {"n", &kIntType}, {"m", &kMapStringDynType}}});
  constexpr std::size_t kBytesMax = 4096;
  const std::string_view text(reinterpret_cast<const char*>(data), size < kBytesMax ? size : kBytesMax);
  if (const auto parsed = ParseOnly(env, text); parsed.ok()) {
    const auto again = ParseOnly(env, Unparse((*parsed)->root()));
    // Parentheses may make a tree that is close to the limit too deep.
    if (again.ok()) KS_CHECK(ToDebugString((*again)->root()) == ToDebugString((*parsed)->root()));
  }
  const auto compiled = Compile(env, text);
  if (!compiled.ok()) {
    KS_CHECK(compiled.error().starts_with("ERROR: <input>:"));
    return 0;
  }
  const Estimate cost = EstimateCost(**compiled, {});
  KS_CHECK(cost.min <= cost.max);
  return 0;
}
