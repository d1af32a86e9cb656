// Claims of an ID token as Go's decoders read them, errors in their words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "object/value.h"

namespace keelson::auth {

// `json: cannot unmarshal number into <target>`.
std::string CannotUnmarshal(const Value& value, std::string_view target);

// A claim that must be a string (null is ""). "" or what is wrong: `claim not present`.
std::string ClaimText(const Value& claims, std::string_view name, std::string& out);
// A string or a list of strings.
std::string ClaimTexts(const Value& claim, std::vector<std::string>& out);

// The registered claims that go-oidc reads of every token.
struct IDTokenClaims {
  std::string issuer;
  std::vector<std::string> audiences;
  std::optional<std::int64_t> expires, not_before;  // seconds since 1970
  Value all;

  static Outcome<IDTokenClaims, std::string> Parse(base::Arena& arena, std::string_view payload);
  // "" or what is wrong with _claim_names and _claim_sources.
  std::string DistributedProblem() const;
  // No leeway for the expiry (a token without one has expired), a minute for nbf.
  std::string TimeProblem(base::Clock::SystemTime now) const;
};

struct ClaimSource {
  std::string endpoint, access_token;
};
// The endpoint of a distributed claim (_claim_names, _claim_sources); nothing if the claim is not distributed.
Outcome<std::optional<ClaimSource>, std::string> DistributedSource(const Value& claims, std::string_view claim);

}  // namespace keelson::auth
