// Checks of literals after type checking: durations, timestamps, regular expressions, format strings, and one element
// type in list and map literals. An error is reported even where the literal could never be evaluated.
#pragma once

#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/issues.h"

namespace keelson::cel {

void ValidateLiterals(const Environment& env, const Ast& ast, Issues& issues);

}  // namespace keelson::cel
