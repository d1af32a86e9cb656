#include "auth/authorizer.h"

#include <algorithm>

#include "base/escape.h"
#include "base/hash.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

// The answers of authorizers without an opinion so far.
struct Collected {
  std::vector<std::string> reasons;
  std::vector<std::string> errors;

  void Add(Authorization& answer) {
    if (!answer.reason.empty()) reasons.push_back(std::move(answer.reason));
    if (!answer.error.empty()) errors.push_back(std::move(answer.error));
  }
  Authorization Finish() const { return {.reason = base::Join(reasons, "\n"), .error = AggregateErrors(errors)}; }
};

}  // namespace

bool Attributes::RequiresField(std::string_view field, std::string_view value) const {
  return std::ranges::any_of(field_requirements, [&](const auto& requirement) {
    return requirement.equal && requirement.field == field && requirement.value == value;
  });
}

Authorization PrivilegedGroupAuthorizer::Decide(const Attributes& attributes) const {
  if (attributes.user->InGroup(group_)) return {.decision = Decision::kAllow};
  return {};
}

Authorization AlwaysAllowAuthorizer::Decide(const Attributes&) const { return {.decision = Decision::kAllow}; }

ResolvedRules AlwaysAllowAuthorizer::RulesFor(const request::User&, std::string_view) const {
  return {.resource_rules = {{.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}}},
          .non_resource_rules = {{.verbs = {"*"}, .urls = {"*"}}}};
}

Authorization AlwaysDenyAuthorizer::Decide(const Attributes&) const { return {.reason = "Everything is forbidden."}; }

ResolvedRules AlwaysDenyAuthorizer::RulesFor(const request::User&, std::string_view) const { return {}; }

Awaitable<Authorization> UnionAuthorizer::Authorize(const Attributes& attributes) {
  Collected collected;
  for (const auto& member : members_) {
    auto answer = member->TryAuthorize(attributes);
    if (!answer) answer = co_await member->Authorize(attributes);
    if (answer->decision != Decision::kNoOpinion) co_return *std::move(answer);
    collected.Add(*answer);
  }
  co_return collected.Finish();
}

std::optional<Authorization> UnionAuthorizer::TryAuthorize(const Attributes& attributes) {
  Collected collected;
  for (const auto& member : members_) {
    auto answer = member->TryAuthorize(attributes);
    if (!answer) return std::nullopt;
    if (answer->decision != Decision::kNoOpinion) return answer;
    collected.Add(*answer);
  }
  return collected.Finish();
}

ResolvedRules UnionRuleResolver::RulesFor(const request::User& user, std::string_view name_space) const {
  ResolvedRules all;
  for (const auto& member : members_) {
    ResolvedRules rules = member->RulesFor(user, name_space);
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    };
    append(all.resource_rules, rules.resource_rules);
    append(all.non_resource_rules, rules.non_resource_rules);
    append(all.errors, rules.errors);
    all.incomplete = all.incomplete || rules.incomplete;
  }
  return all;
}

void ParseSelectors(std::string_view field_selector, std::string_view label_selector, Attributes& attributes) {
  if (!field_selector.empty()) {
    auto parsed = meta::FieldSelector::Parse(field_selector);
    if (parsed.ok()) {
      attributes.field_requirements = std::move(parsed->requirements());
    } else {
      attributes.field_selector_error = parsed.error();
    }
  }
  if (!label_selector.empty()) {
    auto parsed = meta::LabelSelector::Parse(label_selector);
    if (parsed.ok()) {
      attributes.label_requirements = parsed->requirements();
    } else {
      attributes.label_selector_error = parsed.error();
    }
  }
}

Attributes AttributesOf(request::SharedUser user, const request::RequestInfo& info) {
  Attributes attributes{.user = std::move(user),
                        .verb = info.verb,
                        .resource_request = info.is_resource_request,
                        .api_group = info.api_group,
                        .api_version = info.api_version,
                        .resource = info.resource,
                        .subresource = info.subresource,
                        .name_space = info.name_space,
                        .name = info.name,
                        .path = info.path};
  ParseSelectors(info.field_selector, info.label_selector, attributes);
  return attributes;
}

std::string ForbiddenMessage(const Attributes& attributes, std::string_view reason) {
  std::string message = "User " + base::GoQuote(attributes.user->name) + " cannot " + attributes.verb;
  if (!attributes.resource_request) {
    message += " path " + base::GoQuote(attributes.path);
  } else {
    std::string resource = attributes.resource;
    if (!attributes.subresource.empty()) resource += "/" + attributes.subresource;
    message += " resource " + base::GoQuote(resource) + " in API group " + base::GoQuote(attributes.api_group);
    message += attributes.name_space.empty() ? " at the cluster scope"
                                             : " in the namespace " + base::GoQuote(attributes.name_space);
  }
  message = base::EscapeHTML(message);
  if (!reason.empty()) message += ": " + std::string(reason);
  return message;
}

std::string AggregateErrors(std::span<const std::string> errors) {
  if (errors.size() == 1) return errors.front();
  base::StringViewSet seen;
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (seen.insert(error).second) distinct.push_back(error);
  }
  if (distinct.size() <= 1) return distinct.empty() ? "" : distinct.front();
  return "[" + base::Join(distinct, ", ") + "]";
}

}  // namespace keelson::auth
