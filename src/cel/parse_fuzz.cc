// Any text parses or is refused with positions; a parsed tree is written, parsed again and is the same, and the text of
// the second tree is the text of the first.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cel/compiler.h"
#include "cel/fuzz_inputs_test.h"
#include "cel/testing/debug_string.h"
#include "cel/testing/parse_only.h"
#include "cel/testing/unparser.h"
#include "cel/walk.h"

using namespace keelson::cel;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const EnvironmentPtr env = FuzzEnvironment();
  constexpr std::size_t kBytesMax = 4096;
  const std::string_view text(reinterpret_cast<const char*>(data), size < kBytesMax ? size : kBytesMax);
  const auto parsed = ParseOnly(env, text);
  if (!parsed.ok()) {
    KS_CHECK(parsed.error().starts_with("ERROR: <input>:"));
    return 0;
  }
  const std::string written = Unparse((*parsed)->root());
  const auto again = ParseOnly(env, written);
  if (!again.ok()) {
    // Parentheses may make a tree that is close to a limit too deep, escapes a text too long; nothing else may.
    KS_CHECK(again.error().find("recursion") != std::string::npos || again.error().find("limit") != std::string::npos);
    return 0;
  }
  KS_CHECK(ToDebugString((*again)->root()) == ToDebugString((*parsed)->root()));
  KS_CHECK(Unparse((*again)->root()) == written);
  return 0;
}
