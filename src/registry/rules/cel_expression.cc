#include "registry/rules/cel_expression.h"

namespace keelson::registry::rules {

void ValidateCELProgram(const Outcome<cel::CompilationPtr, std::string>& compiled, std::string_view expression,
                        const FieldPath& path, FieldErrors& errors) {
  if (!compiled.ok()) {
    errors.push_back(validation::Invalid(path, expression, compiled.error()));
  } else if (!(*compiled)->error.empty()) {
    errors.push_back(validation::InternalError(path, (*compiled)->error));
  }
}

void ValidateCELExpression(const cel::EnvironmentPtr& env, std::string_view expression,
                           std::initializer_list<const cel::Type*> results, const FieldPath& path,
                           FieldErrors& errors) {
  ValidateCELProgram(cel::CompileExpression(env, expression, results), expression, path, errors);
}

}  // namespace keelson::registry::rules
