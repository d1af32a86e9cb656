// Checks the expressions of a ValidatingAdmissionPolicy against the kinds it matches (upstream's TypeChecker). Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controllers/discovery.h"
#include "meta/group_version.h"
#include "object/value.h"

namespace keelson::controllers {

struct ExpressionWarning {
  std::string field_ref, warning;
};

// Kinds that the policy's rules name without wildcards, at most ten, by group, version and kind.
std::vector<meta::GroupVersionKind> TypesToCheck(Value policy, const Discovered& discovered);
// Empty where the policy has no paramKind.
meta::GroupVersionKind ParamKindOf(Value policy);

// The schemas of one group version, as /openapi/v3 has them.
struct OpenAPISchemas {
  meta::GroupVersion group_version;
  Value schemas;  // components.schemas

  // The schema of a kind; null when there is none.
  Value Find(const meta::GroupVersionKind& kind) const;
};

// `documents` holds the group versions of `kinds` and of the param kind, as far as they are served.
std::vector<ExpressionWarning> CheckPolicyTypes(Value policy, const std::vector<meta::GroupVersionKind>& kinds,
                                                const std::vector<OpenAPISchemas>& documents);

}  // namespace keelson::controllers
