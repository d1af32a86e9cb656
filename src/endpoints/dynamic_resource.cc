#include "endpoints/dynamic_resource.h"

#include <array>
#include <string>
#include <vector>

#include "endpoints/handlers.h"
#include "endpoints/responses.h"

namespace keelson::endpoints {
namespace {

http::Response NotSupported(const Exchange& exchange) {
  const request::RequestInfo& info = exchange.context.info;
  return StatusResponse(exchange, meta::NewMethodNotSupported({info.api_group, info.resource}, info.verb));
}

http::Response NameRequired(const Exchange& exchange) {
  return StatusResponse(exchange, meta::NewBadRequest("name must be provided"));
}

// Strategic merge patches need a struct's tags, which custom resources do not have.
std::optional<http::Response> CheckPatchType(const Exchange& exchange, bool cbor) {
  static constexpr std::array<std::string_view, 4> kTypes = {
      "application/json-patch+json", "application/merge-patch+json", kApplyPatch, kApplyCBORPatch};
  const std::string type = BareMediaType(exchange.http.headers.Get("Content-Type"));
  std::vector<std::string> accepted;
  for (const std::string_view known : kTypes) {
    if (known == kApplyCBORPatch && !cbor) continue;
    if (type == known) return std::nullopt;
    accepted.emplace_back(known);
  }
  return StatusResponse(exchange, meta::NewUnsupportedMediaType(accepted));
}

Awaitable<http::Response> ServeSubresource(ScopePtr scope, ExchangePtr exchange) {
  const std::string& verb = exchange->context.info.verb;
  if (verb == "get") co_return co_await GetResource(scope, exchange);
  if (verb == "update") co_return co_await UpdateResource(scope, exchange);
  if (verb == "patch") co_return co_await PatchResource(scope, exchange);
  co_return NotSupported(*exchange);
}

Awaitable<http::Response> ServeResource(ScopePtr scope, ExchangePtr exchange) {
  const request::RequestInfo& info = exchange->context.info;
  const std::string& verb = info.verb;
  if (verb == "list") co_return co_await ListResource(scope, exchange, false);
  if (verb == "watch") co_return co_await ListResource(scope, exchange, true);
  if (verb == "create") co_return co_await CreateResource(scope, exchange);
  if (verb == "deletecollection") co_return co_await DeleteCollection(scope, exchange);
  const bool item = verb == "get" || verb == "update" || verb == "patch" || verb == "delete";
  if (item && info.name.empty()) co_return NameRequired(*exchange);
  if (verb == "get") co_return co_await GetResource(scope, exchange);
  if (verb == "update") co_return co_await UpdateResource(scope, exchange);
  if (verb == "patch") co_return co_await PatchResource(scope, exchange);
  if (verb == "delete") co_return co_await DeleteResource(scope, exchange);
  co_return NotSupported(*exchange);
}

}  // namespace

Awaitable<std::optional<http::Response>> ServeResolved(Resolution resolution, ExchangePtr exchange) {
  if (std::holds_alternative<std::monostate>(resolution)) co_return std::nullopt;
  if (const auto* status = std::get_if<meta::Status>(&resolution)) co_return StatusResponse(*exchange, *status);
  const ScopePtr scope = std::get<ScopePtr>(std::move(resolution));
  const request::RequestInfo& info = exchange->context.info;
  exchange->allow_cbor = scope->restrictions.allow_cbor;
  exchange->allow_gzip = scope->compress;
  if (info.verb == "patch" && !info.name.empty()) {
    if (auto refused = CheckPatchType(*exchange, scope->restrictions.allow_cbor)) co_return std::move(*refused);
  }
  if (!scope->subresource.empty()) co_return co_await ServeSubresource(scope, exchange);
  co_return co_await ServeResource(scope, exchange);
}

}  // namespace keelson::endpoints
