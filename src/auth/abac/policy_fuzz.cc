#include <cstddef>
#include <cstdint>
#include <string_view>

#include "auth/abac/policy.h"
#include "base/check.h"

using keelson::auth::abac::ParsePolicyFile;

// No text crashes the parser; a policy without user and group never matches a user.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policies = ParsePolicyFile("f", {reinterpret_cast<const char*>(data), size});
  if (!policies.ok()) return 0;
  keelson::auth::Attributes attributes;
  attributes.verb = "get";
  attributes.path = "/x";
  for (const auto& policy : *policies) {
    const bool matches = keelson::auth::abac::Matches(policy, attributes);
    KS_CHECK(!matches || policy.user.empty());
  }
  return 0;
}
