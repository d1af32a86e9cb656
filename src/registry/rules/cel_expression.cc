#include "registry/rules/cel_expression.h"

#include "cel/program.h"

namespace keelson::registry::rules {

void ValidateCELProgram(const cel::EnvironmentPtr& env, const cel::Ast& ast, const FieldPath& path,
                        FieldErrors& errors) {
  if (const auto program = cel::Program::New(env, ast); !program.ok())
    errors.push_back(validation::InternalError(path, "program instantiation failed: " + program.error()));
}

void ValidateCELExpression(const cel::EnvironmentPtr& env, std::string_view expression,
                           std::initializer_list<const cel::Type*> results, const FieldPath& path,
                           FieldErrors& errors) {
  if (const auto compiled = cel::CompileExpression(env, expression, results); compiled.ok()) {
    ValidateCELProgram(env, **compiled, path, errors);
  } else {
    errors.push_back(validation::Invalid(path, expression, compiled.error()));
  }
}

}  // namespace keelson::registry::rules
