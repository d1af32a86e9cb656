// Expressions and URLs of users: no input may crash the checks, and what is told of an expression is a position inside
// it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "registry/rules/cel_syntax.h"
#include "registry/rules/webhook.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto problem = registry::rules::CELSyntaxProblem(text);
  if (problem.has_value()) KS_CHECK(problem->starts_with("compilation failed: ERROR: <input>:"));
  if (!registry::rules::CELLiteralType(text).empty()) KS_CHECK(!problem.has_value());
  validation::FieldErrors errors;
  registry::rules::ValidateWebhookURL(text, FieldPath("url"), errors);
  return 0;
}
