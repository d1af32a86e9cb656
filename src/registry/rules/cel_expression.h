// Expressions in the specs of built-in kinds: compiled as kube-apiserver does on create and update.
#pragma once

#include <initializer_list>
#include <string_view>

#include "cel/kubernetes_environments.h"
#include "object/field_path.h"
#include "validation/errors.h"

namespace keelson::registry::rules {

using validation::FieldErrors;

// The field error of a compilation: Invalid where the expression does not compile, InternalError where it compiles but
// no program can be made of it (a constant that cannot be converted); or none.
void ValidateCELProgram(const Outcome<cel::CompilationPtr, std::string>& compiled, std::string_view expression,
                        const FieldPath& path, FieldErrors& errors);
// The same of an expression whose result has one of the types `results`.
void ValidateCELExpression(const cel::EnvironmentPtr& env, std::string_view expression,
                           std::initializer_list<const cel::Type*> results, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::rules
