// Expression text from a parsed tree. Parsing the text again gives the same tree; macros are written as macros.
#pragma once
#include <string>
#include "cel/ast.h"
namespace keelson::cel {
std::string Unparse(const Expr& e);
}  // namespace keelson::cel
