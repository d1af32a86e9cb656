#include "auth/authorizer.h"

#include "base/escape.h"
#include "base/strings.h"

namespace keelson::auth {

Awaitable<Authorization> PrivilegedGroupAuthorizer::Authorize(Attributes attributes) {
  if (attributes.user.InGroup(group_)) co_return Authorization{.decision = Decision::kAllow};
  co_return Authorization{};
}

Awaitable<Authorization> AlwaysAllowAuthorizer::Authorize(Attributes) {
  co_return Authorization{.decision = Decision::kAllow};
}

Awaitable<Authorization> AlwaysDenyAuthorizer::Authorize(Attributes) {
  co_return Authorization{.reason = "Everything is forbidden."};
}

Awaitable<Authorization> UnionAuthorizer::Authorize(Attributes attributes) {
  Authorization collected;
  for (const auto& member : members_) {
    Authorization answer = co_await member->Authorize(attributes);
    if (answer.decision != Decision::kNoOpinion) co_return answer;
    if (!answer.reason.empty()) collected.reason += (collected.reason.empty() ? "" : "\n") + answer.reason;
    if (!answer.error.empty()) collected.error += (collected.error.empty() ? "" : ", ") + answer.error;
  }
  co_return collected;
}

Attributes AttributesOf(const request::User& user, const request::RequestInfo& info) {
  return {.user = user,
          .verb = info.verb,
          .resource_request = info.is_resource_request,
          .api_group = info.api_group,
          .api_version = info.api_version,
          .resource = info.resource,
          .subresource = info.subresource,
          .name_space = info.name_space,
          .name = info.name,
          .path = info.path,
          .field_selector = info.field_selector,
          .label_selector = info.label_selector};
}

std::string ForbiddenMessage(const Attributes& attributes, std::string_view reason) {
  std::string message = "User " + base::GoQuote(attributes.user.name) + " cannot " + attributes.verb;
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

}  // namespace keelson::auth
