#include "auth/static_tokens.h"

#include <openssl/sha.h>

#include <algorithm>
#include <map>

#include "auth/csv.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::auth {
namespace {

std::string Digest(std::string_view token) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace

Outcome<std::unique_ptr<StaticTokenAuthenticator>, std::string> StaticTokenAuthenticator::FromCSV(
    std::string_view file_name, std::string_view csv) {
  std::map<std::string, request::User> users;
  CSVReader reader(csv);
  for (int number = 1;; ++number) {
    auto read = reader.Next();
    if (!read.ok()) return read.error();
    if (!*read) break;
    const std::vector<std::string>& fields = **read;
    if (fields.size() < 3) {
      return "token file '" + std::string(file_name) +
             "' must have at least 3 columns (token, user name, user uid), found " + std::to_string(fields.size());
    }
    if (fields[0].empty()) {
      log::Warning("Token file has an empty token", "path", file_name, "record", number);
      continue;
    }
    request::User user{.name = fields[1], .uid = fields[2]};
    if (fields.size() > 3) {
      for (const auto group : base::Split(fields[3], ',')) user.groups.emplace_back(group);
    }
    if (!users.insert_or_assign(Digest(fields[0]), std::move(user)).second)
      log::Warning("Token file has a token twice", "path", file_name, "record", number);
  }
  auto authenticator = std::make_unique<StaticTokenAuthenticator>();
  authenticator->tokens_.assign(std::make_move_iterator(users.begin()), std::make_move_iterator(users.end()));
  return authenticator;
}

Awaitable<AuthenticationResult> StaticTokenAuthenticator::AuthenticateToken(std::string token,
                                                                            std::vector<std::string> audiences) {
  static_cast<void>(audiences);
  const std::string digest = Digest(token);
  const auto found = std::ranges::lower_bound(tokens_, digest, {}, &std::pair<std::string, request::User>::first);
  AuthenticationResult result;
  if (found != tokens_.end() && found->first == digest) result.user = found->second;
  co_return result;
}

}  // namespace keelson::auth
