// TokenReview, SelfSubjectReview and the access reviews: asked, answered, never stored.
#include <algorithm>

#include "auth/rbac/index.h"
#include "base/strings.h"
#include "controlplane/custom_routes.h"
#include "endpoints/custom.h"
#include "patch/field_manager.h"
#include "registry/strategy.h"

namespace keelson::controlplane {
namespace {

using endpoints::ExchangePtr;
using endpoints::ScopePtr;
using endpoints::Task;

Value Strings(base::Arena& arena, const std::vector<std::string>& texts) {
  Value list = Value::List(arena, texts.size());
  for (const auto& text : texts) list.Append(arena, Value::String(arena, text));
  return list;
}

Value UserValue(base::Arena& arena, const request::User& user) {
  Value value = Value::Map(arena);
  value.Set(arena, "username", Value::String(arena, user.name));
  if (!user.uid.empty()) value.Set(arena, "uid", Value::String(arena, user.uid));
  if (!user.groups.empty()) value.Set(arena, "groups", Strings(arena, user.groups));
  if (!user.extra.empty()) {
    Value extra = Value::Map(arena);
    for (const auto& [key, values] : user.extra) extra.Set(arena, arena.Copy(key), Strings(arena, values));
    value.Set(arena, "extra", extra);
  }
  return value;
}

// The kind's own rules; the Store would run them for a kind that is stored.
meta::Result<void> Check(const ScopePtr& scope, const ExchangePtr& exchange, Value object) {
  const registry::Strategy* strategy = registry::FindStrategy(scope->kind.group, scope->kind.kind);
  if (strategy == nullptr || strategy->validate == nullptr) return {};
  std::vector<std::string> warnings;
  const registry::Call call{.arena = exchange->context.arena,
                            .clock = base::Clock::Real(),
                            .random = base::Random::Real(),
                            .warnings = warnings,
                            .user_name = exchange->context.user->name,
                            .user_uid = exchange->context.user->uid,
                            .user_groups = exchange->context.user->groups,
                            .name_space = exchange->context.info.name_space,
                            .request_group = exchange->context.info.api_group,
                            .request_version = exchange->context.info.api_version,
                            .feature_enabled = nullptr};
  meta::FieldErrors errors;
  strategy->validate(call, object, Value(), errors);
  // Upstream names no kind here.
  if (!errors.empty()) return meta::NewInvalid({scope->kind.group, ""}, "", errors);
  return {};
}

// What a review asks about, for `user`.
auth::Attributes AttributesOf(const request::User& user, Value spec) {
  auth::Attributes attributes{.user = user};
  if (const Value resource = spec["resourceAttributes"]; resource.is_map()) {
    attributes.resource_request = true;
    attributes.verb = resource["verb"].as_string();
    attributes.api_group = resource["group"].as_string();
    attributes.api_version = resource["version"].as_string();
    if (attributes.api_version.empty()) attributes.api_version = "*";
    attributes.resource = resource["resource"].as_string();
    attributes.subresource = resource["subresource"].as_string();
    attributes.name_space = resource["namespace"].as_string();
    attributes.name = resource["name"].as_string();
    attributes.field_selector = resource.Get("fieldSelector", "rawSelector").as_string();
    attributes.label_selector = resource.Get("labelSelector", "rawSelector").as_string();
  } else {
    attributes.verb = spec.Get("nonResourceAttributes", "verb").as_string();
    attributes.path = spec.Get("nonResourceAttributes", "path").as_string();
  }
  return attributes;
}

// A selector that does not say what to select is left out of the question, and the answer says so.
bool IsUnreadable(const Value& label_selector) {
  return std::ranges::any_of(label_selector["requirements"].items(), [](const Value& requirement) {
    const std::string_view op = requirement["operator"].as_string();
    return op != "In" && op != "NotIn" && op != "Exists" && op != "DoesNotExist";
  });
}

Task<Value> Decide(std::shared_ptr<auth::Authorizer> authorizer, base::Arena& arena, Value object, request::User user) {
  const auth::Authorization answer = co_await authorizer->Authorize(AttributesOf(user, object["spec"]));
  Value status = Value::Map(arena);
  status.Set(arena, "allowed", answer.decision == auth::Decision::kAllow);
  if (answer.decision == auth::Decision::kDeny) status.Set(arena, "denied", true);
  if (!answer.reason.empty()) status.Set(arena, "reason", Value::String(arena, answer.reason));
  std::string error = answer.error;
  if (IsUnreadable(object["spec"].Get("resourceAttributes", "labelSelector"))) {
    error +=
        (error.empty() ? "" : ", ") + std::string("spec.resourceAttributes.labelSelector ignored due to parse error");
  }
  if (!error.empty()) status.Set(arena, "evaluationError", Value::String(arena, error));
  object.Set(arena, "status", status);
  co_return object;
}

request::User UserOfSpec(Value spec) {
  request::User user{.name = std::string(spec["user"].as_string()), .uid = std::string(spec["uid"].as_string())};
  for (const Value group : spec["groups"].items()) user.groups.emplace_back(group.as_string());
  for (const auto& member : spec["extra"].members()) {
    std::vector<std::string> values;
    for (const Value value : member.value.items()) values.emplace_back(value.as_string());
    user.extra.emplace_back(member.key, std::move(values));
  }
  return user;
}

endpoints::CreateFunc AccessReview(std::shared_ptr<auth::Authorizer> authorizer, bool self) {
  return [authorizer, self](ScopePtr scope, ExchangePtr exchange, Value object, bool) -> Task<Value> {
    KS_CO_RETURN_IF_ERROR(Check(scope, exchange, object));
    request::User user = self ? *exchange->context.user : UserOfSpec(object["spec"]);
    co_return co_await Decide(authorizer, exchange->context.arena, object, std::move(user));
  };
}

endpoints::CreateFunc TokenReview(std::shared_ptr<auth::Authenticator> authenticator,
                                  std::vector<std::string> api_audiences) {
  return [authenticator, api_audiences](ScopePtr scope, ExchangePtr exchange, Value object, bool) -> Task<Value> {
    base::Arena& arena = exchange->context.arena;
    const std::string_view token = object.Get("spec", "token").as_string();
    if (token.empty()) co_return meta::NewBadRequest("token is required for TokenReview in authentication");
    KS_CO_RETURN_IF_ERROR(Check(scope, exchange, object));
    http::Request asked;
    asked.headers.Add("Authorization", "Bearer " + std::string(token));
    std::vector<std::string> wanted;
    for (const Value audience : object.Get("spec", "audiences").items()) wanted.emplace_back(audience.as_string());
    if (wanted.empty()) wanted = api_audiences;
    auth::AuthenticationResult result = co_await authenticator->AuthenticateFor(asked, wanted);
    if (result.user && result.audiences.empty()) {  // a credential that knows no audiences is for the API's
      for (const auto& audience : api_audiences) {
        if (std::ranges::find(wanted, audience) != wanted.end()) result.audiences.push_back(audience);
      }
      if (result.audiences.empty() && !wanted.empty()) result.user.reset();
    }
    Value status = Value::Map(arena);
    status.Set(arena, "authenticated", result.user.has_value());
    if (!result.error.empty()) status.Set(arena, "error", Value::String(arena, result.error));
    if (result.user) status.Set(arena, "user", UserValue(arena, *result.user));
    if (result.user && !result.audiences.empty()) status.Set(arena, "audiences", Strings(arena, result.audiences));
    object.Set(arena, "status", status);
    co_return object;
  };
}

endpoints::CreateFunc SelfSubjectReview() {
  return [](ScopePtr, ExchangePtr exchange, Value object, bool) -> Task<Value> {
    base::Arena& arena = exchange->context.arena;
    Value status = Value::Map(arena);
    status.Set(arena, "userInfo", UserValue(arena, *exchange->context.user));
    object.Set(arena, "metadata", Value::Map(arena));
    object["metadata"].Set(arena, "creationTimestamp",
                           Value::String(arena, registry::FormatTime(base::Clock::Real().Now())));
    object.Set(arena, "status", status);
    co_return object;
  };
}

Value RuleValue(base::Arena& arena, const auth::rbac::PolicyRule& rule) {
  Value value = Value::Map(arena);
  const auto set = [&](std::string_view key, const std::vector<std::string>& texts) {
    if (!texts.empty()) value.Set(arena, key, Strings(arena, texts));
  };
  set("verbs", rule.verbs);
  set("apiGroups", rule.api_groups);
  set("resources", rule.resources);
  set("resourceNames", rule.resource_names);
  set("nonResourceURLs", rule.non_resource_urls);
  return value;
}

// What the requester may do in a namespace, as far as RBAC says it.
endpoints::CreateFunc RulesReview(std::shared_ptr<auth::rbac::RBACAuthorizer> rbac) {
  return [rbac](ScopePtr, ExchangePtr exchange, Value object, bool) -> Task<Value> {
    base::Arena& arena = exchange->context.arena;
    const std::string_view name_space = object.Get("spec", "namespace").as_string();
    if (name_space.empty()) co_return meta::NewBadRequest("no namespace on request");
    std::vector<std::string> errors;
    const auth::rbac::PolicyRules rules = rbac->index()->RulesFor(*exchange->context.user, name_space, errors);
    Value status = Value::Map(arena);
    Value resource_rules = status.EnsureList(arena, "resourceRules");
    Value path_rules = status.EnsureList(arena, "nonResourceRules");
    for (const auto& rule : rules)
      (rule.resources.empty() ? path_rules : resource_rules).Append(arena, RuleValue(arena, rule));
    status.Set(arena, "incomplete", false);
    if (!errors.empty()) status.Set(arena, "evaluationError", Value::String(arena, base::Join(errors, ", ")));
    object.Set(arena, "metadata", Value::Map(arena));
    object.Set(arena, "spec", Value::Map(arena));
    object.Set(arena, "status", status);
    co_return object;
  };
}

}  // namespace

bool InstallReview(const ChainConfig& config, const schema::Resource& resource, endpoints::APIGroupVersion& version) {
  endpoints::CreateFunc create;
  if (resource.kind == "TokenReview") create = TokenReview(config.authenticator, config.api_audiences);
  if (resource.kind == "SelfSubjectReview") create = SelfSubjectReview();
  if (resource.kind == "SubjectAccessReview" || resource.kind == "LocalSubjectAccessReview")
    create = AccessReview(config.authorizer, false);
  if (resource.kind == "SelfSubjectAccessReview") create = AccessReview(config.authorizer, true);
  if (resource.kind == "SelfSubjectRulesReview" && config.rbac) create = RulesReview(config.rbac);
  if (!create) return false;
  auto scope = NewScope(config, resource, nullptr);
  if (resource.group == "authorization.k8s.io" || resource.kind == "TokenReview") {
    patch::FieldManager::Options fields;
    fields.type = scope->type;
    fields.kind = scope->kind;
    scope->field_manager = std::make_shared<patch::FieldManager>(std::move(fields));
  }
  scope->restrictions.allow_transforms = false;  // reviews have no rows
  endpoints::Route route{.scope = std::move(scope)};
  route.collection["POST"] = endpoints::NewCreater(std::move(create));
  version.Add(resource.plural, "", std::move(route));
  return true;
}

}  // namespace keelson::controlplane
