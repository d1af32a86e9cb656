// RBAC's rules as plain data: what a rule allows, which rules cover which, and their text in messages. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "auth/authorizer.h"
#include "base/arena.h"
#include "object/value.h"

namespace keelson::auth::rbac {

struct PolicyRule {
  std::vector<std::string> verbs;
  std::vector<std::string> api_groups;
  std::vector<std::string> resources;
  std::vector<std::string> resource_names;
  std::vector<std::string> non_resource_urls;
  bool operator==(const PolicyRule&) const = default;
};
using PolicyRules = std::vector<PolicyRule>;

PolicyRule RuleOf(const Value& rule);    // rbac.authorization.k8s.io/v1 PolicyRule
PolicyRules RulesOf(const Value& role);  // of a Role or ClusterRole
Value ToValue(base::Arena& arena, const PolicyRule& rule);

bool RuleAllows(const Attributes& attributes, const PolicyRule& rule);

// A rule is a product: four lists of a thousand entries make 10^12 atoms. Rules that one held rule covers as a whole
// are not broken down; the rest may have this many atoms together.
inline constexpr std::size_t kRuleAtomsMax = 10'000;

// Every (group, resource, verb[, name]) and (URL, verb) of a rule as a separate rule.
PolicyRules BreakdownRule(const PolicyRule& rule);
// The atoms of `wanted` that no single rule of `held` covers; empty when all are covered. None when there are more than
// kRuleAtomsMax atoms to look at.
std::optional<PolicyRules> UncoveredRules(std::span<const PolicyRule> held, std::span<const PolicyRule> wanted);
// Rules for the same group, resource and name become one with the verbs of all, in order.
PolicyRules CompactRules(std::span<const PolicyRule> rules);
std::string CompactString(
    const PolicyRule& rule);  // {APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}

// Rules for every verb on every resource and URL: writers of aggregation rules must hold them.
const PolicyRules& FullAuthority();

}  // namespace keelson::auth::rbac
