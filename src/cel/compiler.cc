#include "cel/compiler.h"

#include <memory>

#include "cel/checker.h"
#include "cel/issues.h"
#include "cel/parser.h"
#include "cel/validators.h"

namespace keelson::cel {

Outcome<AstPtr, std::string> Compile(const EnvironmentPtr& env, std::string_view expression) {
  auto ast = std::make_shared<Ast>(expression);
  ast->set_environment(env);
  Issues issues;
  Parse(*env, *ast, issues);
  if (issues.empty()) Check(*env, *ast, issues);
  if (issues.empty() && env->literal_validators()) ValidateLiterals(*env, *ast, issues);
  if (!issues.empty()) return issues.ToDisplayString(ast->source());
  return AstPtr(std::move(ast));
}

}  // namespace keelson::cel
