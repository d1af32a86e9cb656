// A tree as an S-expression, to compare trees with the reference's.
#pragma once

#include <string>

#include "cel/ast.h"

namespace keelson::cel {

// (_+_ 1 (. self x)), (fold x range accu init condition step result).
std::string ToDebugString(const Expr& e);

}  // namespace keelson::cel
