// The parser for expressions that are not well-formed: predicts, reports and recovers as the ANTLR parser of cel-go
// does, so that messages and positions are the same. Slow, and only run after the fast parser gave up.
#pragma once

#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/issues.h"

namespace keelson::cel {

// Parses ast.source(). Sets the root where the text turns out to be well-formed (deep nesting); otherwise reports
// issues.
void ParseWithRecovery(const Environment& env, Ast& ast, Issues& issues);

}  // namespace keelson::cel
