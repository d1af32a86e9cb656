// Evaluation of a policy's expressions against one request. Internal to admission.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "admission/api_reader.h"
#include "admission/policy/expressions.h"
#include "admission/webhook/metrics.h"
#include "cel/program.h"
#include "request/context.h"

namespace keelson::admission {

inline constexpr std::int64_t kRuntimeCostBudget = 10'000'000;
inline constexpr std::int64_t kMatchConditionsCostBudget = 2'500'000;

// Answers authorizer checks of expressions. Sees each question at most once; unknown answers are fetched between
// evaluations, so that an authorizer may be a webhook.
class CachingAuthorizer final : public cel::AuthorizerFunctions {
 public:
  CachingAuthorizer(APIReader& api, const request::Context& context) : api_(api), context_(context) {}
  std::optional<Decision> Authorize(const Attributes& attributes) override;
  // Fetches what the last evaluation asked for. False: nothing was asked.
  Awaitable<bool> Fetch();

 private:
  APIReader& api_;
  const request::Context& context_;
  std::map<std::string, Decision> known_;
  std::vector<std::pair<std::string, AccessReview>> asked_;
};

// The variables of one request in one version.
struct PolicyInputs {
  Value object, old_object;  // documents; null where there is none
  Value request;
  Value namespace_object;  // null for cluster-scoped requests
  Value params;            // null without
  bool with_params = false;
  bool with_namespace = true;               // false: namespaceObject is null (match conditions)
  CachingAuthorizer* authorizer = nullptr;  // null: not bound
  const Attributes* attributes = nullptr;
};

// `request` of expressions, in the matched version.
Value RequestValue(base::Arena& arena, const request::Context& context, const Attributes& attributes,
                   const ObjectInterfaces::Resource& matched);
// The parts of a namespace that expressions see.
Value NamespaceValue(base::Arena& arena, Value name_space);

struct Evaluated {
  bool present = false;
  cel::Val value;
  std::string error;  // as upstream words it; "" without
  std::chrono::nanoseconds took{0};
};

struct EvaluatedAll {
  std::vector<Evaluated> results;  // one per expression
  std::int64_t remaining_budget = 0;
  std::string error;     // nothing could be evaluated, or the budget is used up; "" otherwise
  bool pending = false;  // the authorizer has to fetch answers first
};

EvaluatedAll EvaluateExpressions(base::Arena& arena, const PolicyCompiler::Variables& variables,
                                 std::span<const Expression> expressions, const PolicyInputs& inputs,
                                 std::int64_t budget);

// Match conditions: any false does not match; errors count only where none is false.
struct ConditionsResult {
  bool matches = true;
  std::string error;
};
// Where match conditions are counted: by the name of their webhook or policy.
struct ConditionsObserver {
  WebhookMetrics* metrics = nullptr;  // null: nowhere
  std::string_view name;
  std::string_view kind;  // webhook or policy
  std::string_view type;  // admit, validating or validate
};
// Answers of the authorizer are fetched as they are asked for.
Awaitable<ConditionsResult> EvaluateConditions(base::Arena& arena, const PolicyCompiler::Variables& variables,
                                               std::span<const Expression> conditions, const PolicyInputs& inputs,
                                               ConditionsObserver observer);

}  // namespace keelson::admission
