#include <algorithm>
#include <map>

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

using Extra = std::map<std::string, std::vector<std::string>>;

// Extra-Scopes%2Fa of the header X-Remote-Extra-Scopes%2Fa is the key scopes/a.
void AddExtra(const http::Headers& headers, const std::string& prefix, Extra& extra) {
  const std::string lower_prefix = base::ToLower(prefix);
  for (const auto& [name, value] : headers) {
    const std::string lower = base::ToLower(name);
    if (!lower.starts_with(lower_prefix)) continue;
    const std::string raw = lower.substr(lower_prefix.size());
    extra[base::PathUnescape(raw).value_or(raw)].emplace_back(value);
  }
}

}  // namespace

RequestHeaderAuthenticator::RequestHeaderAuthenticator(RequestHeaderOptions options)
    : options_(std::move(options)), verifier_(std::make_unique<CertificateVerifier>()) {}
RequestHeaderAuthenticator::~RequestHeaderAuthenticator() = default;

std::string RequestHeaderAuthenticator::SetCA(std::string_view pem) { return verifier_->SetCA(pem); }

AuthenticationResult RequestHeaderAuthenticator::Authenticate(const http::Request& request) const {
  const auto verified = verifier_->Verify(request.peer);
  if (!verified.ok()) return AuthenticationResult::Failed(verified.error());
  if (!*verified) return {};
  const std::string& proxy = (*verified)->common_name;
  if (!options_.allowed_names.empty() &&
      std::ranges::find(options_.allowed_names, proxy) == options_.allowed_names.end()) {
    return AuthenticationResult::Failed("x509: subject with cn=" + proxy + " is not in the allowed list");
  }
  request::User user;
  user.name = FirstValue(request.headers, options_.username_headers);
  if (user.name.empty()) return {};
  user.uid = FirstValue(request.headers, options_.uid_headers);
  for (const std::string& header : options_.group_headers) {
    for (const auto value : request.headers.Values(header)) {
      if (!value.empty()) user.groups.emplace_back(value);
    }
  }
  Extra extra;
  for (const std::string& prefix : options_.extra_header_prefixes) AddExtra(request.headers, prefix, extra);
  user.extra.assign(std::make_move_iterator(extra.begin()), std::make_move_iterator(extra.end()));
  AuthenticationResult result;
  result.user = std::move(user);
  return result;
}

}  // namespace keelson::auth
