// What can be said about a CEL expression without a compiler: brackets that do not match, texts that do not end, characters that begin no
// token, operators without operands. An expression that passes may still not compile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace keelson::registry::rules {

// The message as the compiler words it ("compilation failed: ERROR: <input>:1:8: Syntax error: ..."), or nothing.
std::optional<std::string> CELSyntaxProblem(std::string_view expression);

}  // namespace keelson::registry::rules
