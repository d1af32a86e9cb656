#include "auth/rbac/split_rules.h"

#include <algorithm>
#include <tuple>

namespace keelson::auth::rbac {
namespace {

void WriteKey(std::string& key, std::string_view group, std::string_view resource, std::string_view subresource) {
  key.assign(group);
  key += '\0';
  key += resource;
  if (subresource.empty()) return;
  key += '/';
  key += subresource;
}

}  // namespace

SplitRules::SplitRules(PolicyRules rules) : rules_(std::move(rules)) {
  for (std::uint32_t at = 0; at < rules_.size(); ++at) {
    const PolicyRule& rule = rules_[at];
    if (!rule.non_resource_urls.empty()) url_rules_.push_back(at);
    if (rule.api_groups.size() > kPairsMax || rule.api_groups.size() * rule.resources.size() > kPairsMax) {
      wide_.push_back(at);
      continue;
    }
    for (const std::string& group : rule.api_groups) {
      for (const std::string& resource : rule.resources) {
        Pair& pair = pairs_.emplace_back(std::string(), at);
        WriteKey(pair.key, group, resource, {});
      }
    }
  }
  std::ranges::sort(pairs_, {}, [](const Pair& pair) { return std::tie(pair.key, pair.rule); });
}

bool SplitRules::AllowPair(std::string_view key, const Attributes& attributes) const {
  const auto rest = std::ranges::lower_bound(pairs_, key, {}, &Pair::key);
  for (auto at = rest; at != pairs_.end() && at->key == key; ++at) {
    if (RuleAllows(attributes, rules_[at->rule])) return true;
  }
  return false;
}

bool SplitRules::Allow(const Attributes& attributes) const {
  const auto allows = [&](std::uint32_t at) { return RuleAllows(attributes, rules_[at]); };
  if (!attributes.resource_request) return std::ranges::any_of(url_rules_, allows);
  // A request matches a rule by its group or "*", and by its resource, "*" or "*/subresource".
  std::string key;
  const std::string_view resource = attributes.resource;
  const std::string_view subresource = attributes.subresource;
  for (const std::string_view group : {std::string_view(attributes.api_group), std::string_view("*")}) {
    WriteKey(key, group, resource, subresource);
    if (AllowPair(key, attributes)) return true;
    WriteKey(key, group, "*", {});
    if (AllowPair(key, attributes)) return true;
    if (subresource.empty()) continue;
    WriteKey(key, group, "*", subresource);
    if (AllowPair(key, attributes)) return true;
  }
  return std::ranges::any_of(wide_, allows);
}

}  // namespace keelson::auth::rbac
