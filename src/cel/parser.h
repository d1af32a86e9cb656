// Source text to tree. Well-formed expressions take one pass of recursive descent; anything else is parsed again by
// SyntaxParser, which recovers and words its errors as cel-go's generated parser does.
#pragma once

#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/issues.h"

namespace keelson::cel {

inline constexpr std::int32_t kExpressionCodePointsMax = 100'000;
inline constexpr int kRecursionMax = 250;  // nested rules, and chained operators and selections

// Parses ast.source() and sets the root; without a root there are issues.
void Parse(const Environment& env, Ast& ast, Issues& issues);

}  // namespace keelson::cel
