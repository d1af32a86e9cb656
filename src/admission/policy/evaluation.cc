#include "admission/policy/evaluation.h"

namespace keelson::admission {
namespace {

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
    const std::string space(a.service_account_namespace);
    review.user = request::User{.name = "system:serviceaccount:" + space + ":" + std::string(a.service_account_name),
                                .groups = {"system:serviceaccounts", "system:serviceaccounts:" + space}};
  }
  asked_.emplace_back(std::move(key), std::move(review));
  return std::nullopt;
}

Awaitable<bool> CachingAuthorizer::Fetch() {
  if (asked_.empty()) co_return false;
  auto asked = std::exchange(asked_, {});
  for (auto& [key, review] : asked) {
    if (!review.user) review.user = context_.user;
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

cel::AuthorizerFunctions::Attributes RequestResource(const Attributes& attributes) {
  return {.resource_request = true,
          .group = attributes.resource.group,
          .resource = attributes.resource.resource,
          .subresource = attributes.subresource,
          .namespace_name = attributes.name_space,
          .name = attributes.name};
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

std::chrono::nanoseconds SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch(); }

Awaitable<cel::MatchResult> EvaluateConditions(std::function<cel::MatchResult()> evaluate,
                                               CachingAuthorizer& authorizer, Operation operation,
                                               ConditionsObserver observer) {
  const auto began = SteadyNow();
  cel::MatchResult result = evaluate();
  while (result.pending && co_await authorizer.Fetch()) result = evaluate();
  if (WebhookMetrics* metrics = observer.metrics; metrics != nullptr) {
    metrics->ConditionsEvaluated(observer.name, observer.kind, observer.type, operation, SteadyNow() - began);
    for (std::size_t i = 0; i < result.failures; ++i)
      metrics->ConditionError(observer.name, observer.kind, observer.type, operation);
  }
  co_return result;
}

}  // namespace keelson::admission
