// A role's rules, split by API group and resource so that a request looks at the few rules that name its resource.
// Immutable. Thread safety: const members from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "auth/authorizer.h"
#include "auth/rbac/rules.h"

namespace keelson::auth::rbac {

class SplitRules {
 public:
  // A rule with more pairs of group and resource than this is not split but looked at by every request.
  static constexpr std::size_t kPairsMax = 1024;

  explicit SplitRules(PolicyRules rules);
  const PolicyRules& rules() const { return rules_; }
  bool Allow(const Attributes& attributes) const;

 private:
  struct Pair {
    std::string key;  // group NUL resource
    std::uint32_t rule;
  };
  bool AllowPair(std::string_view key, const Attributes& attributes) const;

  PolicyRules rules_;
  std::vector<Pair> pairs_;               // sorted
  std::vector<std::uint32_t> wide_;       // rules that are not split
  std::vector<std::uint32_t> url_rules_;  // rules with non-resource URLs
};

}  // namespace keelson::auth::rbac
