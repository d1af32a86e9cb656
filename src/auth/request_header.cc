#include <algorithm>

#include "auth/authenticator.h"
#include "auth/certificate_verifier.h"
#include "base/strings.h"
#include "base/url.h"

namespace keelson::auth {
namespace {

std::string FirstValue(const http::Headers& headers, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto value = headers.Get(name); !value.empty()) return std::string(value);
  }
  return {};
}

// Extra-Scopes%2Fa of the header X-Remote-Extra-Scopes%2Fa is the key scopes/a.
void AddExtra(const http::Headers& headers, const std::string& prefix, request::User& user) {
  const std::string lower_prefix = base::ToLower(prefix);
  for (const auto& [name, value] : headers.fields()) {
    const std::string lower = base::ToLower(name);
    if (!lower.starts_with(lower_prefix)) continue;
    const std::string raw = lower.substr(lower_prefix.size());
    const std::string key = base::PathUnescape(raw).value_or(raw);
    auto found = std::ranges::find(user.extra, key, &std::pair<std::string, std::vector<std::string>>::first);
    if (found == user.extra.end()) found = user.extra.insert(user.extra.end(), {key, {}});
    found->second.push_back(value);
  }
}

}  // namespace

RequestHeaderAuthenticator::RequestHeaderAuthenticator(RequestHeaderOptions options)
    : options_(std::move(options)), verifier_(std::make_unique<CertificateVerifier>()) {}
RequestHeaderAuthenticator::~RequestHeaderAuthenticator() = default;

bool RequestHeaderAuthenticator::SetCA(std::string_view pem) { return verifier_->SetCA(pem); }

Awaitable<AuthenticationResult> RequestHeaderAuthenticator::Authenticate(const http::Request& request) {
  const auto verified = verifier_->Verify(request.peer);
  if (!verified.ok()) co_return AuthenticationResult{.error = verified.error()};
  if (!*verified) co_return AuthenticationResult{};
  const std::string& proxy = (*verified)->common_name;
  if (!options_.allowed_names.empty() &&
      std::ranges::find(options_.allowed_names, proxy) == options_.allowed_names.end()) {
    co_return AuthenticationResult{.error = "x509: subject with cn=" + proxy + " is not in the allowed list"};
  }
  request::User user;
  user.name = FirstValue(request.headers, options_.username_headers);
  if (user.name.empty()) co_return AuthenticationResult{};
  user.uid = FirstValue(request.headers, options_.uid_headers);
  for (const std::string& header : options_.group_headers) {
    for (const auto value : request.headers.Values(header)) {
      if (!value.empty()) user.groups.emplace_back(value);
    }
  }
  for (const std::string& prefix : options_.extra_header_prefixes) AddExtra(request.headers, prefix, user);
  co_return AuthenticationResult{.user = std::move(user)};
}

}  // namespace keelson::auth
