// Expression text to checked tree: parse, check, validate literals.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"
#include "cel/ast.h"
#include "cel/environment.h"

namespace keelson::cel {

// The checked tree, or cel-go's Issues.String(): every error with position, source line and caret. Kubernetes puts
// "compilation failed: " before it.
Outcome<AstPtr, std::string> Compile(const EnvironmentPtr& env, std::string_view expression);
}  // namespace keelson::cel
