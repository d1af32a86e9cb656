// TokenReview, SelfSubjectReview and the access reviews: POST only, never stored.
#include <algorithm>

#include "auth/authorizer.h"
#include "auth/rbac/index.h"
#include "auth/token_authenticator.h"
#include "base/strings.h"
#include "controlplane/custom_routes.h"
#include "endpoints/custom.h"
#include "patch/field_manager.h"
#include "registry/strategy.h"
#include "telemetry/log.h"

namespace keelson::controlplane {
namespace {

using registry::Task;

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
meta::Result<void> Check(const registry::Strategy& strategy, request::Context& context, Value object) {
  if (strategy.validate == nullptr) return {};
  std::vector<std::string> warnings;
  const registry::Call call{.arena = context.arena,
                            .clock = base::Clock::Real(),
                            .random = base::Random::Real(),
                            .warnings = warnings,
                            .user_name = context.user->name,
                            .user_uid = context.user->uid,
                            .user_groups = context.user->groups,
                            .name_space = context.info.name_space,
                            .request_group = context.info.api_group,
                            .request_version = context.info.api_version,
                            .feature_enabled = nullptr};
  meta::FieldErrors errors;
  strategy.validate(call, object, Value(), errors);
  // Upstream names no kind here.
  if (!errors.empty()) return meta::NewInvalid({std::string(strategy.group), ""}, "", errors);
  return {};
}

// Requirements that cannot be understood are left out: the check is then broader, never narrower.
void ReadFieldRequirements(Value requirements, auth::Attributes& attributes) {
  std::vector<std::string> errors;
  for (const Value requirement : requirements.items()) {
    const std::string_view op = requirement["operator"].as_string();
    const Value values = requirement["values"];
    const bool equal = op == "In";
    if (values.size() > 1) {
      errors.emplace_back("fieldSelectors do not yet support multiple values");
    } else if (!equal && op != "NotIn") {
      const bool known = op == "Exists" || op == "DoesNotExist";
      errors.push_back(known ? "fieldSelectors do not yet support " + std::string(op)
                             : base::GoQuote(op) + " is not a valid field selector operator");
    } else if (values.empty()) {
      errors.push_back(std::string("fieldSelectors ") + (equal ? "in" : "not in") + " must have one value");
    } else {
      attributes.field_requirements.push_back({.field = std::string(requirement["key"].as_string()),
                                               .equal = equal,
                                               .value = std::string(values.items().front().as_string())});
    }
  }
  if (!errors.empty()) attributes.field_selector_error = auth::AggregateErrors(errors);
}

void ReadLabelRequirements(Value requirements, auth::Attributes& attributes) {
  using Operator = meta::LabelSelector::Operator;
  std::vector<std::string> errors;
  for (const Value requirement : requirements.items()) {
    const std::string_view op = requirement["operator"].as_string();
    meta::LabelSelector::Requirement read{
        .key = std::string(requirement["key"].as_string()), .op = Operator::kIn, .values = {}};
    for (const Value value : requirement["values"].items()) read.values.emplace_back(value.as_string());
    std::ranges::sort(read.values);
    if (op == "NotIn") {
      read.op = Operator::kNotIn;
    } else if (op == "Exists") {
      read.op = Operator::kExists;
    } else if (op == "DoesNotExist") {
      read.op = Operator::kDoesNotExist;
    } else if (op != "In") {
      errors.push_back(base::GoQuote(op) + " is not a valid label selector operator");
      continue;
    }
    // The selector's own grammar decides about keys, values and their number.
    const std::string text = meta::LabelSelector::Of({read}).ToString();
    const bool takes_values = read.op == Operator::kIn || read.op == Operator::kNotIn;
    auto parsed = meta::LabelSelector::Parse(text);
    if (takes_values == read.values.empty() || !parsed.ok() || parsed->requirements().size() != 1) {
      errors.push_back(parsed.ok() ? "values" + std::string(": invalid number") : parsed.error());
      continue;
    }
    attributes.label_requirements.push_back(std::move(read));
  }
  if (!errors.empty()) attributes.label_selector_error = auth::AggregateErrors(errors);
}

// The question of a review, for `user`.
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
    auth::ParseSelectors(resource.Get("fieldSelector", "rawSelector").as_string(),
                         resource.Get("labelSelector", "rawSelector").as_string(), attributes);
    ReadFieldRequirements(resource["fieldSelector"]["requirements"], attributes);
    ReadLabelRequirements(resource["labelSelector"]["requirements"], attributes);
  } else {
    attributes.verb = spec.Get("nonResourceAttributes", "verb").as_string();
    attributes.path = spec.Get("nonResourceAttributes", "path").as_string();
  }
  return attributes;
}

std::string IgnoredText(std::string_view selector, bool partially) {
  return "spec.resourceAttributes." + std::string(selector) + (partially ? " partially" : "") +
         " ignored due to parse error";
}

// The authorizer's error and the parts of the question that were left out.
std::string EvaluationError(const auth::Authorization& answer, const auth::Attributes& attributes) {
  std::vector<std::string> errors;
  if (!answer.error.empty()) errors.push_back(answer.error);
  if (!attributes.field_selector_error.empty())
    errors.push_back(IgnoredText("fieldSelector", !attributes.field_requirements.empty()));
  if (!attributes.label_selector_error.empty())
    errors.push_back(IgnoredText("labelSelector", !attributes.label_requirements.empty()));
  return base::Join(errors, "; ");
}

Task<Value> Decide(std::shared_ptr<auth::Authorizer> authorizer, base::Arena& arena, Value object, request::User user) {
  const auth::Attributes attributes = AttributesOf(user, object["spec"]);
  const auth::Authorization answer = co_await authorizer->Authorize(attributes);
  Value status = Value::Map(arena);
  status.Set(arena, "allowed", answer.decision == auth::Decision::kAllow);
  if (answer.decision == auth::Decision::kDeny) status.Set(arena, "denied", true);
  if (!answer.reason.empty()) status.Set(arena, "reason", Value::String(arena, answer.reason));
  const std::string error = EvaluationError(answer, attributes);
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

class AccessReviewREST final : public registry::Reviewer {
 public:
  enum class About : std::uint8_t { kUserOfSpec, kRequester };
  AccessReviewREST(std::shared_ptr<auth::Authorizer> authorizer, const registry::Strategy& strategy, About about)
      : authorizer_(std::move(authorizer)), strategy_(strategy), about_(about) {}

  Task<Value> Create(request::Context& context, Value object, Options options) const override {
    KS_CO_RETURN_IF_ERROR(Check(strategy_, context, object));
    KS_CO_RETURN_IF_ERROR(co_await options.Validate(object));
    request::User user = about_ == About::kRequester ? *context.user : UserOfSpec(object["spec"]);
    co_return co_await Decide(authorizer_, context.arena, object, std::move(user));
  }

 private:
  const std::shared_ptr<auth::Authorizer> authorizer_;
  const registry::Strategy& strategy_;
  const About about_;
};

class TokenReviewREST final : public registry::Reviewer {
 public:
  TokenReviewREST(std::shared_ptr<auth::Authenticator> authenticator, std::vector<std::string> api_audiences,
                  const registry::Strategy& strategy)
      : authenticator_(std::move(authenticator)), api_audiences_(std::move(api_audiences)), strategy_(strategy) {}

  Task<Value> Create(request::Context& context, Value object, Options options) const override {
    base::Arena& arena = context.arena;
    const std::string_view token = object.Get("spec", "token").as_string();
    if (token.empty()) co_return meta::NewBadRequest("token is required for TokenReview in authentication");
    KS_CO_RETURN_IF_ERROR(Check(strategy_, context, object));
    KS_CO_RETURN_IF_ERROR(co_await options.Validate(object));
    http::Request asked;
    asked.headers.Add("Authorization", "Bearer " + std::string(token));
    std::vector<std::string> wanted;
    for (const Value audience : object.Get("spec", "audiences").items()) wanted.emplace_back(audience.as_string());
    if (wanted.empty()) wanted = api_audiences_;
    auth::AuthenticationResult result = co_await authenticator_->Authenticate(asked, wanted, context.cancellation);
    // Warnings and audit annotations are for requests that bear the token, not for reviews of it.
    if (result.user && !wanted.empty() && auth::IntersectAudiences(wanted, result.audiences).empty()) {
      log::Error("Token review has other audiences than were asked for", "asked", base::Join(wanted, " "), "audiences",
                 base::Join(result.audiences, " "));
      co_return meta::NewInternalError("error validating audiences");
    }
    // As upstream, the review that was sent is filled in: a status in it stays where it is not answered.
    Value status = object.EnsureMap(arena, "status");
    status.Set(arena, "authenticated", result.user.has_value());
    if (!result.errors.empty()) status.Set(arena, "error", Value::String(arena, result.Error()));
    if (!result.user) co_return object;
    status.Set(arena, "user", UserValue(arena, *result.user));
    status.Erase("audiences");
    if (!result.audiences.empty()) status.Set(arena, "audiences", Strings(arena, result.audiences));
    co_return object;
  }

 private:
  const std::shared_ptr<auth::Authenticator> authenticator_;
  const std::vector<std::string> api_audiences_;
  const registry::Strategy& strategy_;
};

class SelfSubjectReviewREST final : public registry::Reviewer {
 public:
  Task<Value> Create(request::Context& context, Value object, Options options) const override {
    KS_CO_RETURN_IF_ERROR(co_await options.Validate(object));
    base::Arena& arena = context.arena;
    Value status = Value::Map(arena);
    status.Set(arena, "userInfo", UserValue(arena, *context.user));
    object.Set(arena, "metadata", Value::Map(arena));
    object["metadata"].Set(arena, "creationTimestamp",
                           Value::String(arena, registry::FormatTime(base::Clock::Real().Now())));
    object.Set(arena, "status", status);
    co_return object;
  }
};

void SetStrings(base::Arena& arena, Value value, std::string_view key, const std::vector<std::string>& texts) {
  if (!texts.empty()) value.Set(arena, key, Strings(arena, texts));
}

Value RulesStatus(base::Arena& arena, const auth::ResolvedRules& rules) {
  Value status = Value::Map(arena);
  Value resource_rules = status.EnsureList(arena, "resourceRules");
  for (const auth::ResourceRule& rule : rules.resource_rules) {
    Value value = Value::Map(arena);
    SetStrings(arena, value, "verbs", rule.verbs);
    SetStrings(arena, value, "apiGroups", rule.api_groups);
    SetStrings(arena, value, "resources", rule.resources);
    SetStrings(arena, value, "resourceNames", rule.resource_names);
    resource_rules.Append(arena, value);
  }
  Value path_rules = status.EnsureList(arena, "nonResourceRules");
  for (const auth::NonResourceRule& rule : rules.non_resource_rules) {
    Value value = Value::Map(arena);
    SetStrings(arena, value, "verbs", rule.verbs);
    SetStrings(arena, value, "nonResourceURLs", rule.urls);
    path_rules.Append(arena, value);
  }
  status.Set(arena, "incomplete", rules.incomplete);
  if (!rules.errors.empty())
    status.Set(arena, "evaluationError", Value::String(arena, auth::AggregateErrors(rules.errors)));
  return status;
}

// The requester's rules in a namespace, as far as the authorizers can enumerate them.
class RulesReviewREST final : public registry::Reviewer {
 public:
  explicit RulesReviewREST(std::shared_ptr<const auth::RuleResolver> rules) : rules_(std::move(rules)) {}

  Task<Value> Create(request::Context& context, Value object, Options options) const override {
    base::Arena& arena = context.arena;
    const std::string_view name_space = object.Get("spec", "namespace").as_string();
    if (name_space.empty()) co_return meta::NewBadRequest("no namespace on request");
    KS_CO_RETURN_IF_ERROR(co_await options.Validate(object));
    const Value status = RulesStatus(arena, rules_->RulesFor(*context.user, name_space));
    object.Set(arena, "metadata", Value::Map(arena));
    object.Set(arena, "spec", Value::Map(arena));
    object.Set(arena, "status", status);
    co_return object;
  }

 private:
  const std::shared_ptr<const auth::RuleResolver> rules_;
};

std::shared_ptr<const registry::Reviewer> NewReviewer(const ChainConfig& config, const schema::Resource& resource) {
  static const registry::Strategy kNoRules;
  using About = AccessReviewREST::About;
  const auto& found = config.storage->catalog().Find(resource.group, resource.plural)->strategy;
  const registry::Strategy& strategy = found ? found->row() : kNoRules;
  if (resource.kind == "TokenReview")
    return std::make_shared<TokenReviewREST>(config.authenticator, config.api_audiences, strategy);
  if (resource.kind == "SelfSubjectReview") return std::make_shared<SelfSubjectReviewREST>();
  if (resource.kind == "SubjectAccessReview" || resource.kind == "LocalSubjectAccessReview")
    return std::make_shared<AccessReviewREST>(config.authorizer, strategy, About::kUserOfSpec);
  if (resource.kind == "SelfSubjectAccessReview")
    return std::make_shared<AccessReviewREST>(config.authorizer, strategy, About::kRequester);
  if (resource.kind == "SelfSubjectRulesReview" && config.rules) return std::make_shared<RulesReviewREST>(config.rules);
  return nullptr;
}

}  // namespace

bool InstallReview(const ChainConfig& config, const schema::Resource& resource, endpoints::APIGroupVersion& version) {
  auto reviewer = NewReviewer(config, resource);
  if (!reviewer) return false;
  auto scope = NewScope(config, resource, nullptr);
  if (resource.group == "authorization.k8s.io" || resource.kind == "TokenReview") {
    patch::FieldManager::Options fields;
    fields.type = scope->type;
    fields.kind = scope->kind;
    scope->field_manager = std::make_shared<patch::FieldManager>(std::move(fields));
  }
  scope->restrictions.allow_transforms = false;  // reviews have no rows
  endpoints::Route route{.scope = std::move(scope)};
  route.collection["POST"] = endpoints::NewCreater(std::move(reviewer));
  version.Add(resource.plural, "", std::move(route));
  return true;
}

}  // namespace keelson::controlplane
