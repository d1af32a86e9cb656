// The request as the expressions of policies and match conditions see it (cel/policy.h evaluates them). Internal to
// admission.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "admission/api_reader.h"
#include "admission/webhook/metrics.h"
#include "cel/policy.h"
#include "request/context.h"

namespace keelson::admission {

// Answers authorizer checks of expressions. Sees each question at most once; unknown answers are fetched between
// evaluations, so that an authorizer may be a webhook.
class CachingAuthorizer final : public cel::AuthorizerFunctions {
 public:
  CachingAuthorizer(APIReader& api, const request::Context& context) : api_(api), context_(context) {}
  std::optional<Decision> Authorize(const Attributes& attributes) override;
  // Fetches the authorizer's decisions that the last evaluation needed. False: it needed none. False: nothing was
  // asked.
  Awaitable<bool> Fetch();

 private:
  APIReader& api_;
  const request::Context& context_;
  std::map<std::string, Decision> known_;
  std::vector<std::pair<std::string, AccessReview>> asked_;
};

// `request` of expressions, in the matched version.
Value RequestValue(base::Arena& arena, const request::Context& context, const Attributes& attributes,
                   const ObjectInterfaces::Resource& matched);
// `authorizer.requestResource`. Views into `attributes`.
cel::AuthorizerFunctions::Attributes RequestResource(const Attributes& attributes);
// The parts of a namespace that expressions see.
Value NamespaceValue(base::Arena& arena, Value name_space);

// A clock for cel::AdmissionInputs.
std::chrono::nanoseconds SteadyNow();

// Metrics of match conditions, with the name of their webhook or policy as a label.
struct ConditionsObserver {
  WebhookMetrics* metrics = nullptr;  // null: nowhere
  std::string_view name;
  std::string_view kind;  // webhook or policy
  std::string_view type;  // admit, validating or validate
};
// Evaluates match conditions. Decisions of the authorizer are fetched when an expression needs them. The lambda must
// outlive the call.
Awaitable<cel::MatchResult> EvaluateConditions(std::function<cel::MatchResult()> evaluate,
                                               CachingAuthorizer& authorizer, Operation operation,
                                               ConditionsObserver observer);

}  // namespace keelson::admission
