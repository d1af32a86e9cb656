#include "admission/policy/evaluation.h"

#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

// Variables by name. Those of the policy are evaluated when the first expression that reads them is.
class PolicyActivation final : public cel::Activation {
 public:
  PolicyActivation(const PolicyCompiler::Variables& variables, const PolicyInputs& inputs)
      : variables_(variables), inputs_(inputs), values_(variables.size()) {}

  // Makes the variables that `expression` reads available to it.
  void Prepare(base::Arena& arena, const Expression& expression) {
    for (const std::string& name : expression.variables) {
      for (std::size_t i = 0; i < variables_.size(); ++i) {
        if (variables_[i].first != name || values_[i]) continue;
        values_[i] = cel::Val();  // A variable sees only those before it: no cycle.
        values_[i] = Evaluate(arena, variables_[i].first, variables_[i].second);
      }
    }
  }

  bool Find(base::Arena& arena, std::string_view name, cel::Val* out) override {
    if (name == "object") return Set(out, cel::FromObject(arena, inputs_.object));
    if (name == "oldObject") return Set(out, cel::FromObject(arena, inputs_.old_object));
    if (name == "request") return Set(out, cel::FromObject(arena, inputs_.request));
    if (name == "namespaceObject")
      return Set(out, cel::FromObject(arena, inputs_.with_namespace ? inputs_.namespace_object : Value()));
    if (name == "params") return Set(out, cel::FromObject(arena, inputs_.params));
    if (name == "variables") return Set(out, Evaluated(arena));
    if (inputs_.authorizer == nullptr) return false;
    if (name == "authorizer") return Set(out, cel::NewAuthorizer(arena, inputs_.authorizer));
    if (name == "authorizer.requestResource") {
      const Attributes& of = *inputs_.attributes;
      return Set(out, cel::NewResourceAuthorizer(arena, inputs_.authorizer,
                                                 {.resource_request = true,
                                                  .group = of.resource.group,
                                                  .resource = of.resource.resource,
                                                  .subresource = of.subresource,
                                                  .namespace_name = of.name_space,
                                                  .name = of.name}));
    }
    return false;
  }

  std::int64_t TakeCost() { return std::exchange(cost_, 0); }
  bool pending() const { return pending_; }

 private:
  // The variables evaluated so far, errors among them.
  cel::Val Evaluated(base::Arena& arena) const {
    cel::Map* map = cel::NewMap(arena, static_cast<std::uint32_t>(variables_.size()));
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      if (values_[i]) map->Set(arena, cel::Val::String(variables_[i].first), *values_[i]);
    }
    return cel::Val::Of(map);
  }

  cel::Val Evaluate(base::Arena& arena, const std::string& name, const Expression& expression) {
    const std::string prefix = "composited variable " + base::GoQuote(name);
    if (!expression.error.empty()) return cel::ErrorIn(arena, prefix + " fails to compile: " + expression.error);
    Prepare(arena, expression);
    const cel::EvalResult result = expression.program->Evaluate(arena, *this);
    pending_ = pending_ || result.pending;
    cost_ += static_cast<std::int64_t>(result.cost);
    if (result.ok()) return result.value;
    return cel::ErrorIn(arena, prefix + " fails to evaluate: ", result.error());
  }

  static bool Set(cel::Val* out, const cel::Val& value) {
    *out = value;
    return true;
  }

  const PolicyCompiler::Variables& variables_;
  const PolicyInputs& inputs_;
  std::vector<std::optional<cel::Val>> values_;
  std::int64_t cost_ = 0;
  bool pending_ = false;
};

void SetText(base::Arena& arena, Value map, std::string_view key, std::string_view text) {
  map.Set(arena, key, Value::String(arena, text));
}

Value KindValue(base::Arena& arena, const meta::GroupVersionKind& kind) {
  Value value = Value::Map(arena);
  SetText(arena, value, "group", kind.group);
  SetText(arena, value, "version", kind.version);
  SetText(arena, value, "kind", kind.kind);
  return value;
}

Value ResourceValue(base::Arena& arena, const meta::GroupVersionResource& resource) {
  Value value = Value::Map(arena);
  SetText(arena, value, "group", resource.group);
  SetText(arena, value, "version", resource.version);
  SetText(arena, value, "resource", resource.resource);
  return value;
}

Value TextList(base::Arena& arena, const std::vector<std::string>& texts) {
  Value list = Value::List(arena);
  for (const std::string& text : texts) list.Append(arena, Value::String(arena, text));
  return list;
}

Value UserValue(base::Arena& arena, const request::Context& context) {
  Value value = Value::Map(arena);
  if (!context.user) return value;
  const request::User& user = *context.user;
  if (!user.name.empty()) SetText(arena, value, "username", user.name);
  if (!user.uid.empty()) SetText(arena, value, "uid", user.uid);
  if (!user.groups.empty()) value.Set(arena, "groups", TextList(arena, user.groups));
  if (!user.extra.empty()) {
    Value extra = Value::Map(arena);
    for (const auto& [key, values] : user.extra) extra.Set(arena, arena.Copy(key), TextList(arena, values));
    value.Set(arena, "extra", extra);
  }
  return value;
}

std::string KeyOf(const cel::AuthorizerFunctions::Attributes& a) {
  std::string key = a.resource_request ? "r" : "p";
  for (const std::string_view part :
       {a.verb, a.path, a.group, a.resource, a.subresource, a.namespace_name, a.name, a.field_selector,
        a.label_selector, a.service_account_namespace, a.service_account_name}) {
    key += '\0';
    key += part;
  }
  return key;
}

}  // namespace

std::optional<cel::AuthorizerFunctions::Decision> CachingAuthorizer::Authorize(const Attributes& a) {
  std::string key = KeyOf(a);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  AccessReview review{.resource_request = a.resource_request,
                      .verb = std::string(a.verb),
                      .path = std::string(a.path),
                      .group = std::string(a.group),
                      .resource = std::string(a.resource),
                      .subresource = std::string(a.subresource),
                      .name_space = std::string(a.namespace_name),
                      .name = std::string(a.name),
                      .field_selector = std::string(a.field_selector),
                      .label_selector = std::string(a.label_selector)};
  if (!a.service_account_name.empty()) {
    review.user.emplace();
    const std::string space(a.service_account_namespace);
    review.user->name = "system:serviceaccount:" + space + ":" + std::string(a.service_account_name);
    review.user->groups = {"system:serviceaccounts", "system:serviceaccounts:" + space};
  }
  asked_.emplace_back(std::move(key), std::move(review));
  return std::nullopt;
}

Awaitable<bool> CachingAuthorizer::Fetch() {
  if (asked_.empty()) co_return false;
  static const request::User kNobody;
  auto asked = std::exchange(asked_, {});
  for (auto& [key, review] : asked) {
    if (!review.user) review.user = context_.user ? *context_.user : kNobody;
    const AccessDecision answer = co_await api_.Authorize(std::move(review));
    Decision decision;
    using Verdict = Decision::Verdict;
    decision.verdict = answer.allowed ? Verdict::kAllow : answer.denied ? Verdict::kDeny : Verdict::kNoOpinion;
    decision.reason = answer.reason;
    if (!answer.error.empty()) decision.error = answer.error;
    known_.emplace(std::move(key), std::move(decision));
  }
  co_return true;
}

Value RequestValue(base::Arena& arena, const request::Context& context, const Attributes& attributes,
                   const ObjectInterfaces::Resource& matched) {
  Value value = Value::Map(arena);
  value.Set(arena, "kind", KindValue(arena, matched.kind));
  value.Set(arena, "resource", ResourceValue(arena, matched.resource));
  if (!attributes.subresource.empty()) SetText(arena, value, "subResource", attributes.subresource);
  value.Set(arena, "requestKind", KindValue(arena, attributes.kind));
  value.Set(arena, "requestResource", ResourceValue(arena, attributes.resource));
  if (!attributes.subresource.empty()) SetText(arena, value, "requestSubResource", attributes.subresource);
  if (!attributes.name.empty()) SetText(arena, value, "name", attributes.name);
  if (!attributes.name_space.empty()) SetText(arena, value, "namespace", attributes.name_space);
  value.Set(arena, "operation", ToString(attributes.operation));
  value.Set(arena, "userInfo", UserValue(arena, context));
  value.Set(arena, "dryRun", Value(attributes.dry_run));
  value.Set(arena, "options", attributes.options);
  return value;
}

Value NamespaceValue(base::Arena& arena, Value name_space) {
  if (!name_space.is_map()) return Value();
  Value value = Value::Map(arena);
  Value metadata = Value::Map(arena);
  for (const std::string_view key :
       {"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"}) {
    if (const Value part = name_space["metadata"][key]; !part.is_null()) metadata.Set(arena, key, part);
  }
  value.Set(arena, "metadata", metadata);
  for (const std::string_view key : {"spec", "status"}) {
    const Value part = name_space[key];
    value.Set(arena, key, part.is_map() ? part : Value::Map(arena));
  }
  return value;
}

EvaluatedAll EvaluateExpressions(base::Arena& arena, const PolicyCompiler::Variables& variables,
                                 std::span<const Expression> expressions, const PolicyInputs& inputs,
                                 std::int64_t budget) {
  EvaluatedAll all{.remaining_budget = budget};
  PolicyActivation activation(variables, inputs);
  for (const Expression& expression : expressions) {
    Evaluated& evaluated = all.results.emplace_back();
    if (!expression.present) continue;
    evaluated.present = true;
    if (!expression.error.empty()) {
      evaluated.error = "compilation error: " + expression.error;
      continue;
    }
    activation.Prepare(arena, expression);
    const auto began = std::chrono::steady_clock::now();
    const cel::EvalResult result = expression.program->Evaluate(arena, activation);
    evaluated.took = std::chrono::steady_clock::now() - began;
    if (result.pending || activation.pending()) {
      all.pending = true;
      return all;
    }
    for (const std::int64_t cost : {activation.TakeCost(), static_cast<std::int64_t>(result.cost)}) {
      if (cost > all.remaining_budget) {
        all.error = kOutOfBudget;
        return all;
      }
      all.remaining_budget -= cost;
    }
    if (result.ok()) {
      evaluated.value = result.value;
    } else {
      evaluated.error = "expression '" + expression.text + "' resulted in error: " + std::string(result.error());
    }
  }
  return all;
}

namespace {

// `errors` counts the conditions that could not be evaluated before one was false.
ConditionsResult ConditionsOf(const EvaluatedAll& all, std::size_t& errors) {
  if (!all.error.empty()) return {.matches = false, .error = all.error};
  std::vector<std::string> texts;
  for (const Evaluated& evaluated : all.results) {
    if (!evaluated.error.empty()) {
      texts.push_back(evaluated.error);
      ++errors;
    } else if (evaluated.value.is_false()) {
      return {.matches = false};
    }
  }
  if (texts.empty()) return {};
  return {.matches = false, .error = texts.size() == 1 ? texts.front() : "[" + base::Join(texts, ", ") + "]"};
}

}  // namespace

Awaitable<ConditionsResult> EvaluateConditions(base::Arena& arena, const PolicyCompiler::Variables& variables,
                                               std::span<const Expression> conditions, const PolicyInputs& inputs,
                                               ConditionsObserver observer) {
  const auto began = std::chrono::steady_clock::now();
  PolicyInputs seen = inputs;
  seen.with_namespace = false;
  EvaluatedAll all = EvaluateExpressions(arena, variables, conditions, seen, kMatchConditionsCostBudget);
  while (all.pending && co_await inputs.authorizer->Fetch())
    all = EvaluateExpressions(arena, variables, conditions, seen, kMatchConditionsCostBudget);
  std::size_t errors = 0;
  ConditionsResult result = ConditionsOf(all, errors);
  if (WebhookMetrics* metrics = observer.metrics; metrics != nullptr) {
    const Operation operation = inputs.attributes->operation;
    metrics->ConditionsEvaluated(observer.name, observer.kind, observer.type, operation,
                                 std::chrono::steady_clock::now() - began);
    for (std::size_t i = 0; i < errors; ++i)
      metrics->ConditionError(observer.name, observer.kind, observer.type, operation);
  }
  co_return result;
}

}  // namespace keelson::admission
