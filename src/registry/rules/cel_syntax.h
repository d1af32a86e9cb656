// What can be said about a CEL expression without a compiler: brackets that do not match, texts that do not end,
// characters that begin no token, operators without operands. An expression that passes may still not compile.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "object/field_path.h"
#include "validation/errors.h"

namespace keelson::registry::rules {

using validation::FieldErrors;

// The message as the compiler words it ("compilation failed: ERROR: <input>:1:8: Syntax error: ..."), or nothing.
std::optional<std::string> CELSyntaxProblem(std::string_view expression);
// The type of an expression that is one literal ("int", "uint", "double", "string", "bytes", "bool", "null_type"); ""
// for anything else.
std::string_view CELLiteralType(std::string_view expression);
// Invalid when the syntax is wrong, or when the expression is a literal of another type than the ones wanted. `wanted`
// is how the message words it: "bool", "one of [string null_type]".
void ValidateCELExpression(std::string_view expression, std::initializer_list<std::string_view> types,
                           std::string_view wanted, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::rules
