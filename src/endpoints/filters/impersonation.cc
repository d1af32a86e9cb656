// Impersonate-User, -Uid, -Group and -Extra-* headers of requests.
#include "endpoints/filters/impersonation.h"

#include "endpoints/filters/tracing.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "base/url.h"
#include "endpoints/audit_hooks.h"
#include "endpoints/call_cancellation.h"
#include "endpoints/filters/filters.h"
#include "endpoints/responses.h"
#include "telemetry/log.h"

namespace keelson::endpoints::filters {
namespace {

constexpr std::string_view kExtraPrefix = "impersonate-extra-";

// Nothing without impersonation headers.
std::optional<request::User> ReadHeaders(const http::Headers& headers) {
  request::User wanted{.name = std::string(headers.Get("Impersonate-User")),
                       .uid = std::string(headers.Get("Impersonate-Uid"))};
  std::map<std::string, std::vector<std::string>> extra;
  for (const auto& [field, value] : headers) {
    if (field.size() < kExtraPrefix.size()) {
      if (base::EqualsIgnoreCase(field, "impersonate-group")) wanted.groups.emplace_back(value);
      continue;
    }
    const std::string name = base::ToLower(field);
    if (!name.starts_with(kExtraPrefix)) continue;
    const std::string raw = name.substr(kExtraPrefix.size());
    extra[base::PathUnescape(raw).value_or(raw)].emplace_back(value);
  }
  wanted.extra.assign(std::make_move_iterator(extra.begin()), std::make_move_iterator(extra.end()));
  if (wanted.name.empty() && wanted.uid.empty() && wanted.groups.empty() && wanted.extra.empty()) return std::nullopt;
  return wanted;
}

void RemoveHeaders(http::Headers& headers) {
  headers.RemoveIf([](std::string_view field) {
    const std::string name = base::ToLower(field);
    return name == "impersonate-user" || name == "impersonate-uid" || name == "impersonate-group" ||
           name.starts_with(kExtraPrefix);
  });
}

// Go's %#v of an impersonated user without a name.
std::string GoUser(const request::User& wanted) {
  const auto strings = [](const std::vector<std::string>& texts) {
    std::string out = "{";
    for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + base::GoQuote(text);
    return out + "}";
  };
  std::string extra = "map[string][]string(nil)";
  if (!wanted.extra.empty()) {
    extra = "map[string][]string{";
    for (std::size_t i = 0; i < wanted.extra.size(); ++i) {
      extra +=
          (i > 0 ? ", " : "") + base::GoQuote(wanted.extra[i].first) + ":[]string" + strings(wanted.extra[i].second);
    }
    extra += "}";
  }
  return "&user.DefaultInfo{Name:\"\", UID:" + base::GoQuote(wanted.uid) + ", Groups:[]string" +
         (wanted.groups.empty() ? std::string("(nil)") : strings(wanted.groups)) + ", Extra:" + extra + "}";
}

// Go's %v of the object references of the legacy mode.
std::string GoReferences(const request::User& wanted) {
  const std::string version = "authentication.k8s.io/v1";
  std::vector<std::string> references;
  for (const std::string& group : wanted.groups) references.push_back("{Group  " + group + "    }");
  for (const auto& [key, values] : wanted.extra) {
    for (const std::string& value : values)
      references.push_back("{UserExtra  " + value + "  " + version + "  " + key + "}");
  }
  if (!wanted.uid.empty()) references.push_back("{UID  " + wanted.uid + "  " + version + "  }");
  return "[" + base::Join(references, " ") + "]";
}

http::Response Refused(const Exchange& exchange, const meta::Status& status) {
  http::Response response = StatusResponse(exchange, status);
  response.headers.Set("X-Content-Type-Options", "nosniff");
  return response;
}

}  // namespace

namespace {

// `next` and `impersonator` belong to the handler chain, which outlives every request.
Awaitable<http::Response> ServeAs(request::User wanted, const Handler& next, Impersonator& impersonator,
                                  ExchangePtr exchange, telemetry::Span started) {
  const auto begun = base::Clock::Real().Monotonic();
  const telemetry::ScopedSpan span = started;
  if (wanted.name.empty()) {
    const std::string message = impersonator.constrained()
                                    ? "requested " + GoUser(wanted) + " without impersonating a user name"
                                    : "requested " + GoReferences(wanted) + " without impersonating a user";
    co_return Refused(*exchange, meta::NewBadRequest(message));
  }
  auth::Attributes attributes = auth::AttributesOf(exchange->context.user, exchange->context.info);
  attributes.cancellation = CancellationOf(*exchange);
  auto result = co_await impersonator.Impersonate(std::move(wanted), std::move(attributes));
  if (!result.ok()) {
    log::V(4).Info("Impersonation is forbidden", "URI", exchange->http.target, "err", result.error().message());
    co_return Refused(*exchange, result.error());
  }
  exchange->context.impersonator = std::move(exchange->context.user);
  exchange->context.user = std::move(result->user);
  exchange->context.impersonation_constraint = std::move(result->constraint);
  RemoveHeaders(exchange->http.headers);
  AuditImpersonation(*exchange, *exchange->context.user, exchange->context.impersonation_constraint);
  span->End();
  exchange->context.latencies.Add(telemetry::LatencyTrackers::kImpersonation, base::Clock::Real().Monotonic() - begun);
  co_return co_await next(exchange);
}

}  // namespace

Handler WithImpersonation(Handler next, std::shared_ptr<Impersonator> impersonator) {
  return [next = std::move(next), impersonator](ExchangePtr exchange) {
    const telemetry::Span span =
        StartFilterSpan(*exchange, impersonator->constrained() ? "constrainedimpersonation" : "impersonation");
    std::optional<request::User> wanted = ReadHeaders(exchange->http.headers);
    if (!wanted) {
      span.End();
      return next(std::move(exchange));
    }
    return ServeAs(*std::move(wanted), next, *impersonator, std::move(exchange), span);
  };
}

}  // namespace keelson::endpoints::filters
