// Expressions in the specs of built-in kinds: compiled as kube-apiserver does on create and update.
#pragma once

#include <initializer_list>
#include <string_view>

#include "cel/kubernetes_environments.h"
#include "object/field_path.h"
#include "validation/errors.h"

namespace keelson::registry::rules {

using validation::FieldErrors;

// The field error of a checked expression of which no program can be made (a constant that cannot be converted), or
// none.
void ValidateCELProgram(const cel::EnvironmentPtr& env, const cel::Ast& ast, const FieldPath& path,
                        FieldErrors& errors);
// Invalid with the compiler's text when the expression does not compile or has another type than `results`.
void ValidateCELExpression(const cel::EnvironmentPtr& env, std::string_view expression,
                           std::initializer_list<const cel::Type*> results, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::rules
