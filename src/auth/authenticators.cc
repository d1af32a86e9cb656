#include <algorithm>

#include "auth/authenticator.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

// One CSV record with Go's encoding/csv quoting; fields are trimmed of nothing.
std::vector<std::string> SplitCSVLine(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        fields.back() += c;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

std::string_view BearerToken(const http::Request& request) {
  const std::string_view header = base::Trim(request.headers.Get("Authorization"));
  const auto space = header.find(' ');
  if (space == std::string_view::npos || !base::EqualsIgnoreCase(header.substr(0, space), "bearer")) return {};
  const std::string_view rest = header.substr(space + 1);
  return rest.substr(0, rest.find(' '));
}

void StaticTokenAuthenticator::Add(std::string token, request::User user) {
  for (auto& known : tokens_) {
    if (known.first == token) {
      known.second = std::move(user);
      return;
    }
  }
  tokens_.emplace_back(std::move(token), std::move(user));
}

Outcome<std::unique_ptr<StaticTokenAuthenticator>, std::string> StaticTokenAuthenticator::FromCSV(
    std::string_view file_name, std::string_view csv) {
  auto authenticator = std::make_unique<StaticTokenAuthenticator>();
  for (std::string_view line : base::Split(csv, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto fields = SplitCSVLine(line);
    if (fields.size() < 3) {
      return "token file '" + std::string(file_name) +
             "' must have at least 3 columns (token, user name, user uid), found " + std::to_string(fields.size());
    }
    if (fields[0].empty()) continue;
    request::User user{.name = fields[1], .uid = fields[2]};
    if (fields.size() > 3 && !fields[3].empty()) {
      for (const auto group : base::Split(fields[3], ',')) user.groups.emplace_back(group);
    }
    authenticator->Add(fields[0], std::move(user));
  }
  return authenticator;
}

Awaitable<AuthenticationResult> StaticTokenAuthenticator::Authenticate(const http::Request& request) {
  const std::string_view token = BearerToken(request);
  AuthenticationResult result;
  if (token.empty()) co_return result;
  // Every token is compared, so that the time does not tell which one came close.
  const request::User* found = nullptr;
  for (const auto& [known, user] : tokens_) {
    if (base::ConstantTimeEquals(known, token)) found = &user;
  }
  if (found != nullptr) result.user = *found;
  co_return result;
}

Awaitable<AuthenticationResult> UnionAuthenticator::Authenticate(const http::Request& request) {
  return Ask(request, std::nullopt);
}

Awaitable<AuthenticationResult> UnionAuthenticator::AuthenticateFor(const http::Request& request,
                                                                    std::vector<std::string> audiences) {
  return Ask(request, std::move(audiences));
}

Awaitable<AuthenticationResult> UnionAuthenticator::Ask(const http::Request& request,
                                                        std::optional<std::vector<std::string>> audiences) {
  AuthenticationResult result;
  for (const auto& member : members_) {
    AuthenticationResult answer =
        audiences ? co_await member->AuthenticateFor(request, *audiences) : co_await member->Authenticate(request);
    if (answer.user) {
      request::User& user = *answer.user;
      if (user.name != request::kAnonymous && !user.InGroup(request::kAuthenticated) &&
          !user.InGroup(request::kUnauthenticated)) {
        user.groups.emplace_back(request::kAuthenticated);
      }
      co_return answer;
    }
    if (!answer.error.empty()) result.error += (result.error.empty() ? "" : ", ") + answer.error;
  }
  // A token that nobody knows is an invalid credential, not an anonymous request.
  if (result.error.empty() && !BearerToken(request).empty()) result.error = "invalid bearer token";
  if (result.error.empty() && allow_anonymous_) {
    result.user =
        request::User{.name = std::string(request::kAnonymous), .groups = {std::string(request::kUnauthenticated)}};
  }
  co_return result;
}

}  // namespace keelson::auth
