#include "admission/policy/expressions.h"

#include <algorithm>

#include "cel/walk.h"

namespace keelson::admission {
namespace {

// Names `x` of `variables.x`, each once.
std::vector<std::string> VariablesOf(const cel::Expr& root) {
  std::vector<std::string> names;
  auto visit = [&names](const cel::Expr& expr) {
    const bool reads = expr.kind == cel::ExprKind::kSelect && expr.operand->kind == cel::ExprKind::kIdent &&
                       expr.operand->text == "variables";
    if (reads && std::ranges::find(names, expr.text) == names.end()) names.emplace_back(expr.text);
  };
  cel::WalkPostOrder(root, visit);
  return names;
}

Expression Plan(const cel::EnvironmentPtr& environment, std::string_view text,
                Outcome<cel::AstPtr, std::string> ast) {
  Expression expression{.text = std::string(text), .present = true};
  if (!ast.ok()) {
    expression.error = ast.error();
    return expression;
  }
  expression.variables = VariablesOf((*ast)->root());
  auto program = cel::Program::New(environment, **ast);
  if (program.ok()) {
    expression.program = *std::move(program);
  } else {
    expression.error = "program instantiation failed: " + program.error();
  }
  return expression;
}

}  // namespace

void PolicyCompiler::AddVariable(std::string name, std::string_view text) {
  auto ast = compiler_.AddVariable(name, text);
  variables_->emplace_back(std::move(name), Plan(compiler_.environment(true), text, std::move(ast)));
}

Expression PolicyCompiler::Compile(std::string_view text, Use use, std::span<const cel::Type* const> allowed) {
  const cel::EnvironmentPtr environment = compiler_.environment(use.authorizer, use.patch_types);
  return Plan(environment, text, cel::CompileExpression(environment, text, allowed));
}

}  // namespace keelson::admission
