// The expressions and the object of both benchmarks, shared with cel-go's (interop/celbench). For benchmarks only.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "base/arena.h"
#include "base/check.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::cel {

inline constexpr int kBenchExpressions = 10;

// {expressions, object}. Read relative to the source tree, where `make bench` and `make beside` run.
inline const object::Value& BenchCases() {
  static base::Arena arena;
  static const object::Value cases = [] {
    std::ifstream in("interop/celbench/testdata/expressions.json");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto parsed = object::ParseJSON(arena, text);
    KS_CHECK(parsed.has_value() && (*parsed)["expressions"].size() == kBenchExpressions);
    return parsed->Clone(arena);
  }();
  return cases;
}

inline std::string_view BenchExpression(std::int64_t index) {
  return BenchCases()["expressions"][static_cast<std::size_t>(index)].as_string();
}

}  // namespace keelson::cel
