#include <algorithm>

#include "auth/token_authenticator.h"
#include "base/strings.h"
#include "endpoints/call_cancellation.h"
#include "endpoints/filters/audit.h"
#include "endpoints/filters/filters.h"
#include "endpoints/filters/tracing.h"
#include "endpoints/responses.h"
#include "telemetry/log.h"
#include "telemetry/trace.h"

namespace keelson::endpoints::filters {
namespace {

using Clock = base::Clock;

// Removes credentials from the request: no inner handler needs them.
class HeaderStripper {
 public:
  HeaderStripper(std::vector<std::string> names, std::vector<std::string> prefixes)
      : names_(std::move(names)), prefixes_(std::move(prefixes)) {
    for (const std::string_view name : {"authorization", "x-remote-user", "x-remote-uid", "x-remote-group"})
      names_.emplace_back(name);
    prefixes_.emplace_back("x-remote-extra-");
  }
  void Strip(http::Headers& headers) const {
    headers.RemoveIf([this](std::string_view field) {
      return std::ranges::any_of(names_, [&](const auto& name) { return base::EqualsIgnoreCase(field, name); }) ||
             std::ranges::any_of(prefixes_, [&](const auto& prefix) {
               return base::EqualsIgnoreCase(field.substr(0, prefix.size()), prefix);
             });
    });
  }

 private:
  std::vector<std::string> names_, prefixes_;
};

http::Response Unauthorized(Exchange& exchange) {
  http::Response response = FailedRequest(exchange, meta::NewUnauthorized("Unauthorized"));
  // An unauthenticated client may not keep an HTTP/2 connection (gate UnauthenticatedHTTP2DOSMitigation).
  if (exchange.http.http_major == 2) response.headers.Set("Connection", "close");
  return response;
}

class AuthenticationFilter {
 public:
  AuthenticationFilter(Handler next, AuthenticationOptions options, RequestMetrics& metrics)
      : next_(std::move(next)),
        authenticator_(std::move(options.authenticator)),
        api_audiences_(std::move(options.api_audiences)),
        stripper_(std::move(options.header_names), std::move(options.header_prefixes)),
        metrics_(metrics) {}

  Awaitable<http::Response> Serve(ExchangePtr exchange) const {
    const auto started = Clock::Real().Monotonic();
    request::Context& context = exchange->context;
    if (context.trace) context.span = context.trace->StartRoot(telemetry::Instrumentation::kFilter, "authentication");
    auto known = authenticator_->TryAuthenticate(exchange->http, api_audiences_);
    if (!known) return Ask(std::move(exchange), started);
    return Proceed(std::move(exchange), *std::move(known), started);
  }

 private:
  // The asynchronous path: the authenticator makes a remote call.
  Awaitable<http::Response> Ask(ExchangePtr exchange, Clock::SteadyTime started) const {
    const telemetry::ScopedSpan span = exchange->context.span;
    auto result = co_await authenticator_->Authenticate(exchange->http, api_audiences_, CancellationOf(*exchange));
    co_return co_await Proceed(exchange, std::move(result), started);
  }

  Awaitable<http::Response> Proceed(ExchangePtr exchange, auth::AuthenticationResult result,
                                    Clock::SteadyTime started) const {
    request::Context& context = exchange->context;
    using enum RequestMetrics::Authentication;
    const auto spent = Clock::Real().Monotonic() - started;
    context.span.End();
    context.latencies.Add(telemetry::LatencyTrackers::kAuthentication, spent);
    const std::chrono::duration<double> took = spent;
    const std::string error = result.Error();
    metrics_.Authenticated(result.user     ? kSuccess
                           : error.empty() ? kFailure
                                           : kError,
                           result.user ? result.user->name : "", took.count());
    for (const std::string& warning : result.warnings) exchange->context.warnings.Add(warning);
    for (const auto& [key, value] : result.annotations) exchange->context.audit_annotations.Add(key, value);
    if (!result.user) {
      if (!error.empty()) log::Error("Unable to authenticate the request", "err", error);
      return Immediately(Unauthorized(*exchange));
    }
    if (!api_audiences_.empty() && !result.audiences.empty() &&
        auth::IntersectAudiences(api_audiences_, result.audiences).empty()) {
      log::Error("Unable to match the audience", "audiences", base::Join(result.audiences, " "), "accepted",
                 base::Join(api_audiences_, " "));
      return Immediately(Unauthorized(*exchange));
    }
    stripper_.Strip(exchange->http.headers);
    const bool unauthenticated =
        result.user->name == request::kAnonymous || result.user->InGroup(request::kUnauthenticated);
    exchange->context.user = std::move(result.user);
    if (exchange->http.http_major == 2 && unauthenticated) return ServeNobody(std::move(exchange));
    return next_(std::move(exchange));
  }

  // An anonymous client may not keep an HTTP/2 connection; public pages decide for themselves.
  Awaitable<http::Response> ServeNobody(ExchangePtr exchange) const {
    http::Response response = co_await next_(std::move(exchange));
    if (!response.headers.Has("Connection")) response.headers.Set("Connection", "close");
    co_return response;
  }

  const Handler next_;
  const decltype(AuthenticationOptions::authenticator) authenticator_;
  const decltype(AuthenticationOptions::api_audiences) api_audiences_;
  const HeaderStripper stripper_;
  RequestMetrics& metrics_;
};

}  // namespace

Handler WithAuthentication(Handler next, AuthenticationOptions options, RequestMetrics& metrics) {
  auto filter = std::make_shared<const AuthenticationFilter>(std::move(next), std::move(options), metrics);
  return [filter](ExchangePtr exchange) { return filter->Serve(std::move(exchange)); };
}

}  // namespace keelson::endpoints::filters
