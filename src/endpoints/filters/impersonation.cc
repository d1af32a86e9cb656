// Acting as somebody else: Impersonate-User, -Uid, -Group and -Extra-* headers, allowed where the requester may
// impersonate each of them.
#include <algorithm>

#include "base/strings.h"
#include "base/url.h"
#include "endpoints/filters/filters.h"
#include "endpoints/responses.h"

namespace keelson::endpoints::filters {
namespace {

constexpr std::string_view kExtraPrefix = "impersonate-extra-";
constexpr std::string_view kNodePrefix = "system:node:";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";
constexpr std::string_view kAuthentication = "authentication.k8s.io";

// What the headers ask for.
struct Wanted {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;
  bool any = false;
  bool only_name() const { return uid.empty() && groups.empty() && extra.empty(); }
};

Wanted ReadHeaders(const http::Headers& headers) {
  Wanted wanted;
  for (const auto& [field, value] : headers.fields()) {
    const std::string name = base::ToLower(field);
    if (name == "impersonate-user") {
      if (wanted.name.empty()) wanted.name = value;
    } else if (name == "impersonate-uid") {
      if (wanted.uid.empty()) wanted.uid = value;
    } else if (name == "impersonate-group") {
      wanted.groups.push_back(value);
    } else if (name.starts_with(kExtraPrefix)) {
      const std::string raw = name.substr(kExtraPrefix.size());
      const std::string key = base::PathUnescape(raw).value_or(raw);
      auto found = std::ranges::find(wanted.extra, key, &std::pair<std::string, std::vector<std::string>>::first);
      if (found == wanted.extra.end()) found = wanted.extra.insert(wanted.extra.end(), {key, {}});
      found->second.push_back(value);
    } else {
      continue;
    }
    wanted.any = true;
  }
  return wanted;
}

std::optional<std::pair<std::string, std::string>> ServiceAccountOf(std::string_view name) {
  if (!name.starts_with(kAccountPrefix)) return std::nullopt;
  const auto parts = base::Split(name.substr(kAccountPrefix.size()), ':');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return std::nullopt;
  return std::pair(std::string(parts[0]), std::string(parts[1]));
}

// Asks whether the requester may; the answer to a refusal is kept, because the first one is what the client is told.
class Checker {
 public:
  Checker(auth::Authorizer& authorizer, const request::User& requester)
      : authorizer_(authorizer), requester_(requester) {}

  Awaitable<bool> May(auth::Attributes attributes) {
    attributes.user = requester_;
    const auth::Authorization answer = co_await authorizer_.Authorize(attributes);
    if (answer.decision == auth::Decision::kAllow) co_return true;
    if (!refusal_) {
      refusal_ = meta::NewForbidden({attributes.api_group, attributes.resource}, attributes.name,
                                    auth::ForbiddenMessage(attributes, answer.reason));
    }
    co_return false;
  }

  Awaitable<bool> MayImpersonate(std::string verb, std::string group, std::string resource, std::string subresource,
                                 std::string name_space, std::string name) {
    co_return co_await May({.verb = std::move(verb),
                            .resource_request = true,
                            .api_group = std::move(group),
                            .api_version = "v1",
                            .resource = std::move(resource),
                            .subresource = std::move(subresource),
                            .name_space = std::move(name_space),
                            .name = std::move(name)});
  }

  const std::optional<meta::Status>& refusal() const { return refusal_; }

 private:
  auth::Authorizer& authorizer_;
  const request::User& requester_;
  std::optional<meta::Status> refusal_;
};

Awaitable<bool> UserInfoMode(Checker& checker, const Wanted& wanted) {
  const std::string verb = "impersonate:user-info";
  const std::string group(kAuthentication);
  if (!co_await checker.MayImpersonate(verb, group, "users", "", "", wanted.name)) co_return false;
  if (!wanted.uid.empty() && !co_await checker.MayImpersonate(verb, group, "uids", "", "", wanted.uid)) co_return false;
  for (const auto& name : wanted.groups) {
    if (name.empty() || name == request::kSystemMasters) co_return false;
    if (!co_await checker.MayImpersonate(verb, group, "groups", "", "", name)) co_return false;
  }
  for (const auto& [key, values] : wanted.extra) {
    for (const auto& value : values) {
      if (!co_await checker.MayImpersonate(verb, group, "userextras", key, "", value)) co_return false;
    }
  }
  co_return true;
}

// The constrained modes: the request itself must be allowed to be made as somebody else, and then that somebody.
Awaitable<bool> ConstrainedModes(Checker& checker, const Wanted& wanted, const request::User& requester,
                                 const request::RequestInfo& info) {
  const auto on = [&](std::string_view mode) {
    auth::Attributes attributes = auth::AttributesOf(requester, info);
    attributes.verb = "impersonate-on:" + std::string(mode) + ":" + info.verb;
    return attributes;
  };
  const std::string group(kAuthentication);
  const bool node = wanted.name.starts_with(kNodePrefix);
  const auto account = ServiceAccountOf(wanted.name);
  if (wanted.only_name() && node) {
    const std::string name = wanted.name.substr(kNodePrefix.size());
    const auto own = std::ranges::find(requester.extra, "authentication.kubernetes.io/node-name",
                                       &std::pair<std::string, std::vector<std::string>>::first);
    if (own != requester.extra.end() && !own->second.empty() && own->second[0] == name &&
        co_await checker.May(on("associated-node")) &&
        co_await checker.MayImpersonate("impersonate:associated-node", group, "nodes", "", "", "*")) {
      co_return true;
    }
    co_return co_await checker.May(on("arbitrary-node")) &&
        co_await checker.MayImpersonate("impersonate:arbitrary-node", group, "nodes", "", "", name);
  }
  if (wanted.only_name() && account) {
    co_return co_await checker.May(on("serviceaccount")) &&
        co_await checker.MayImpersonate("impersonate:serviceaccount", group, "serviceaccounts", "", account->first,
                                        account->second);
  }
  if (node || account) co_return false;
  co_return co_await checker.May(on("user-info")) && co_await UserInfoMode(checker, wanted);
}

Awaitable<bool> LegacyMode(Checker& checker, const Wanted& wanted) {
  const std::string verb = "impersonate";
  const std::string group(kAuthentication);
  if (const auto account = ServiceAccountOf(wanted.name)) {
    if (!co_await checker.MayImpersonate(verb, "", "serviceaccounts", "", account->first, account->second))
      co_return false;
  } else if (!co_await checker.MayImpersonate(verb, "", "users", "", "", wanted.name)) {
    co_return false;
  }
  for (const auto& name : wanted.groups) {
    if (!co_await checker.MayImpersonate(verb, "", "groups", "", "", name)) co_return false;
  }
  for (const auto& [key, values] : wanted.extra) {
    for (const auto& value : values) {
      if (!co_await checker.MayImpersonate(verb, group, "userextras", key, "", value)) co_return false;
    }
  }
  if (!wanted.uid.empty() && !co_await checker.MayImpersonate(verb, group, "uids", "", "", wanted.uid)) co_return false;
  co_return true;
}

request::User Impersonated(const Wanted& wanted, bool constrained) {
  request::User user{.name = wanted.name, .uid = wanted.uid, .groups = wanted.groups, .extra = wanted.extra};
  if (const auto account = ServiceAccountOf(wanted.name); account && wanted.groups.empty()) {
    user.groups = {"system:serviceaccounts", "system:serviceaccounts:" + account->first};
  } else if (constrained && wanted.name.starts_with(kNodePrefix)) {
    user.groups = {"system:nodes"};
  }
  if (user.name == request::kAnonymous) {
    if (!user.InGroup(request::kUnauthenticated)) user.groups.emplace_back(request::kUnauthenticated);
  } else if (!user.InGroup(request::kUnauthenticated) && !user.InGroup(request::kAuthenticated)) {
    user.groups.emplace_back(request::kAuthenticated);
  }
  return user;
}

// Go's %#v of the user that was asked for without a name.
std::string GoUser(const Wanted& wanted) {
  const auto strings = [](const std::vector<std::string>& texts) {
    if (texts.empty()) return std::string("[]string(nil)");
    std::string out = "[]string{";
    for (std::size_t i = 0; i < texts.size(); ++i) out += (i > 0 ? ", " : "") + base::GoQuote(texts[i]);
    return out + "}";
  };
  std::string extra = "map[string][]string(nil)";
  if (!wanted.extra.empty()) {
    extra = "map[string][]string{";
    for (std::size_t i = 0; i < wanted.extra.size(); ++i) {
      extra += (i > 0 ? ", " : "") + base::GoQuote(wanted.extra[i].first) + ":" + strings(wanted.extra[i].second);
    }
    extra += "}";
  }
  return "&user.DefaultInfo{Name:\"\", UID:" + base::GoQuote(wanted.uid) + ", Groups:" + strings(wanted.groups) +
         ", Extra:" + extra + "}";
}

}  // namespace

Handler WithImpersonation(Handler next, std::shared_ptr<auth::Authorizer> authorizer) {
  return [next = std::move(next), authorizer](ExchangePtr exchange) -> Awaitable<http::Response> {
    const Wanted wanted = ReadHeaders(exchange->http.headers);
    if (!wanted.any) co_return co_await next(exchange);
    if (wanted.name.empty()) {
      co_return StatusResponse(
          *exchange, meta::NewBadRequest("requested " + GoUser(wanted) + " without impersonating a user name"));
    }
    const request::User requester = *exchange->context.user;
    Checker checker(*authorizer, requester);
    bool constrained = co_await ConstrainedModes(checker, wanted, requester, exchange->context.info);
    Checker legacy(*authorizer, requester);
    if (!constrained && !co_await LegacyMode(legacy, wanted)) {
      // Upstream tells the refusal of the mode that everybody knows.
      http::Response response = StatusResponse(*exchange, *legacy.refusal());
      response.headers.Set("X-Content-Type-Options", "nosniff");
      co_return response;
    }
    // A member of the privileged group passes every check: the constrained modes then add nothing.
    if (requester.InGroup(request::kSystemMasters)) constrained = false;
    exchange->context.user = Impersonated(wanted, constrained);
    std::erase_if(exchange->http.headers.fields(),
                  [](const auto& field) { return base::ToLower(field.first).starts_with("impersonate-"); });
    co_return co_await next(exchange);
  };
}

}  // namespace keelson::endpoints::filters
