#include "auth/external_jwt/plugin.h"

#include <algorithm>

#include "base/arena.h"
#include "base/strings.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::auth::external_jwt {

Outcome<TokenHeader, std::string> ReadHeader(std::string_view header) {
  const auto text = base::Base64URLDecode(header);
  if (!text) return std::string("while unwrapping header: illegal base64 data");
  base::Arena arena;
  const auto fields = object::ParseJSON(arena, *text);
  const std::string parsing = "while parsing header JSON: ";
  if (!fields || !fields->is_map()) return parsing + "json: cannot unmarshal the header";
  if (HasDuplicateKeys(*text)) return parsing + "duplicate field";
  for (const auto& member : fields->members()) {
    const std::string_view key = member.key;
    if (key != "alg" && key != "kid" && key != "typ") return parsing + "json: unknown field " + base::GoQuote(key);
    if (!member.value.is_string())
      return parsing + "json: cannot unmarshal field " + std::string(key) + " of type string";
  }
  const std::string_view key_id = (*fields)["kid"].as_string(), algorithm = (*fields)["alg"].as_string();
  if ((*fields)["typ"].as_string() != "JWT") return std::string("bad type");
  if (key_id.empty()) return std::string("key id missing");
  if (key_id.size() > KeyCache::kKeyIDBytesMax) return std::string("key id longer than 1 kb");
  constexpr std::string_view kAlgorithms[] = {"RS256", "ES256", "ES384", "ES512"};
  if (std::ranges::find(kAlgorithms, algorithm) == std::end(kAlgorithms)) {
    return "bad signing algorithm " + base::GoQuote(algorithm);
  }
  return TokenHeader{.key_id = std::string(key_id)};
}

// "" if the header is valid for a token.
Awaitable<std::string> Plugin::ValidateHeader(std::string header) const {
  auto read = ReadHeader(header);
  if (!read.ok()) co_return std::move(read).error();
  if (co_await options_.keys->Excluded(read->key_id)) {
    co_return "key used for signing JWT (kid: " + read->key_id + ") is excluded from OIDC discovery docs";
  }
  co_return std::string();
}

Awaitable<Outcome<std::string, SigningError>> Plugin::GenerateToken(std::string payload) {
  const auto count = [this](std::string_view code) {
    if (options_.metrics != nullptr) options_.metrics->Signed(code);
  };
  const std::string claims = base::Base64URLEncode(payload);
  auto answer = co_await options_.service->Sign(claims, options_.timeout);
  if (!answer.ok()) {
    count(answer.error().code);
    co_return SigningError{"while signing jwt: " + answer.error().message};
  }
  std::string problem = co_await ValidateHeader(answer->header);
  if (!problem.empty()) {
    problem = "while validating header: " + problem;
  } else if (answer->signature.empty()) {
    problem = "empty signature returned";
  }
  count(problem.empty() ? "OK" : kNotGRPC);
  if (!problem.empty()) co_return SigningError{std::move(problem)};
  co_return answer->header + "." + claims + "." + answer->signature;
}

}  // namespace keelson::auth::external_jwt
