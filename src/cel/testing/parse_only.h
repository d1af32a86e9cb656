// An expression parsed and macro-expanded, not checked.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"
#include "cel/ast.h"
#include "cel/environment.h"

namespace keelson::cel {

Outcome<AstPtr, std::string> ParseOnly(const EnvironmentPtr& env, std::string_view expression);

}  // namespace keelson::cel
