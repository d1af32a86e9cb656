#include "cel/testing/parse_only.h"

#include <memory>
#include <utility>

#include "cel/issues.h"
#include "cel/parser.h"

namespace keelson::cel {

Outcome<AstPtr, std::string> ParseOnly(const EnvironmentPtr& env, std::string_view expression) {
  auto ast = std::make_shared<Ast>(expression);
  ast->set_environment(env);
  Issues issues;
  Parse(*env, *ast, issues);
  if (!issues.empty()) return issues.ToDisplayString(ast->source());
  return AstPtr(std::move(ast));
}

}  // namespace keelson::cel
