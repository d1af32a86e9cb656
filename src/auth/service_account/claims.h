// Claims of a service account token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::auth {

struct ObjectClaim {
  std::string name, uid;
};

// A bound token's claims; times in seconds since 1970.
struct TokenClaims {
  std::string issuer, subject, id;
  std::vector<std::string> audiences;
  std::optional<std::int64_t> expires, not_before, issued_at;
  std::string name_space;
  ObjectClaim service_account;
  std::optional<ObjectClaim> pod, secret, node;
  std::optional<std::int64_t> warn_after;

  std::string ToJSON() const;  // members in alphabetical order
  static TokenClaims From(Value payload);
};

std::string ServiceAccountUserName(std::string_view name_space, std::string_view name);

}  // namespace keelson::auth
