// Type checking: resolves identifiers and overloads and gives each node its type, as cel-go's checker does.
#pragma once

#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/issues.h"

namespace keelson::cel {

// Checks ast.mutable_root() and rewrites qualified names in place.
void Check(const Environment& env, Ast& ast, Issues& issues);

}  // namespace keelson::cel
