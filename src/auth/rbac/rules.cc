#include "auth/rbac/rules.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/strings.h"

namespace keelson::auth::rbac {
namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view kAll = "*";

bool Has(const Texts& texts, std::string_view text) { return std::ranges::find(texts, text) != texts.end(); }
bool HasOrAll(const Texts& texts, std::string_view text) { return Has(texts, kAll) || Has(texts, text); }
bool HasAllOf(const Texts& texts, const Texts& wanted) {
  return std::ranges::all_of(wanted, [&](const std::string& text) { return Has(texts, text); });
}

Texts TextsOf(const Value& list) {
  Texts texts;
  texts.reserve(list.size());
  for (const Value& item : list.items()) texts.emplace_back(item.as_string());
  return texts;
}

std::string_view WithoutTrailingStars(std::string_view url) {
  while (url.ends_with('*')) url.remove_suffix(1);
  return url;
}

// One rule entry against one path.
bool URLCovers(std::string_view rule, std::string_view url) {
  if (rule == kAll || rule == url) return true;
  return rule.ends_with('*') && url.starts_with(WithoutTrailingStars(rule));
}

bool ResourceMatches(const PolicyRule& rule, std::string_view combined, std::string_view subresource) {
  for (const std::string& resource : rule.resources) {
    if (resource == kAll || resource == combined) return true;
    // "*/scale" is every resource's scale.
    if (!subresource.empty() && resource.size() == subresource.size() + 2 && resource.starts_with("*/") &&
        resource.ends_with(subresource)) {
      return true;
    }
  }
  return false;
}

bool ResourcesCover(const Texts& held, const Texts& wanted) {
  if (Has(held, kAll) || HasAllOf(held, wanted)) return true;
  return std::ranges::all_of(wanted, [&](const std::string& resource) {
    if (Has(held, resource)) return true;
    const auto slash = resource.find('/');
    return slash != std::string::npos && Has(held, "*" + resource.substr(slash));
  });
}

bool Covers(const PolicyRule& held, const PolicyRule& wanted) {
  const bool verbs = Has(held.verbs, kAll) || HasAllOf(held.verbs, wanted.verbs);
  const bool groups = Has(held.api_groups, kAll) || HasAllOf(held.api_groups, wanted.api_groups);
  const bool resources = ResourcesCover(held.resources, wanted.resources);
  const bool urls = std::ranges::all_of(wanted.non_resource_urls, [&](const std::string& url) {
    return std::ranges::any_of(held.non_resource_urls, [&](const std::string& rule) { return URLCovers(rule, url); });
  });
  const bool names = held.resource_names.empty() ||
                     (!wanted.resource_names.empty() && HasAllOf(held.resource_names, wanted.resource_names));
  return verbs && groups && resources && urls && names;
}

void AppendList(std::string& out, std::string_view name, const Texts& texts) {
  if (texts.empty()) return;
  if (out.size() > 1) out += ", ";
  out += name;
  out += ":[";
  for (std::size_t i = 0; i < texts.size(); ++i) out += (i == 0 ? "" : " ") + base::GoQuote(texts[i]);
  out += ']';
}

}  // namespace

PolicyRule RuleOf(const Value& rule) {
  return {.verbs = TextsOf(rule["verbs"]),
          .api_groups = TextsOf(rule["apiGroups"]),
          .resources = TextsOf(rule["resources"]),
          .resource_names = TextsOf(rule["resourceNames"]),
          .non_resource_urls = TextsOf(rule["nonResourceURLs"])};
}

PolicyRules RulesOf(const Value& role) {
  PolicyRules rules;
  rules.reserve(role["rules"].size());
  for (const Value& rule : role["rules"].items()) rules.push_back(RuleOf(rule));
  return rules;
}

Value ToValue(base::Arena& arena, const PolicyRule& rule) {
  Value out = Value::Map(arena, 5);
  const auto set = [&](std::string_view key, const Texts& texts) {
    if (texts.empty()) return;
    Value list = Value::List(arena, texts.size());
    for (const std::string& text : texts) list.Append(arena, Value::String(arena, text));
    out.Set(arena, key, list);
  };
  set("verbs", rule.verbs);
  set("apiGroups", rule.api_groups);
  set("resources", rule.resources);
  set("resourceNames", rule.resource_names);
  set("nonResourceURLs", rule.non_resource_urls);
  return out;
}

bool RuleAllows(const Attributes& attributes, const PolicyRule& rule) {
  if (!HasOrAll(rule.verbs, attributes.verb)) return false;
  if (!attributes.resource_request) {
    return std::ranges::any_of(rule.non_resource_urls,
                               [&](const std::string& url) { return URLCovers(url, attributes.path); });
  }
  if (!HasOrAll(rule.api_groups, attributes.api_group)) return false;
  const std::string combined =
      attributes.subresource.empty() ? attributes.resource : attributes.resource + "/" + attributes.subresource;
  if (!ResourceMatches(rule, combined, attributes.subresource)) return false;
  return rule.resource_names.empty() || Has(rule.resource_names, attributes.name);
}

PolicyRules BreakdownRule(const PolicyRule& rule) {
  PolicyRules atoms;
  for (const std::string& group : rule.api_groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        PolicyRule atom{.verbs = {verb}, .api_groups = {group}, .resources = {resource}};
        if (rule.resource_names.empty()) {
          atoms.push_back(std::move(atom));
          continue;
        }
        for (const std::string& name : rule.resource_names) {
          atom.resource_names = {name};
          atoms.push_back(atom);
        }
      }
    }
  }
  for (const std::string& url : rule.non_resource_urls) {
    for (const std::string& verb : rule.verbs) atoms.push_back({.verbs = {verb}, .non_resource_urls = {url}});
  }
  return atoms;
}

namespace {

// How many atoms a rule has; kRuleAtomsMax + 1 for any number above.
std::size_t AtomCount(const PolicyRule& rule) {
  const auto product = [](std::initializer_list<std::size_t> factors) {
    std::size_t count = 1;
    for (const std::size_t factor : factors)
      count = std::min(count * std::min(factor, kRuleAtomsMax + 1), kRuleAtomsMax + 1);
    return count;
  };
  return product({rule.api_groups.size(), rule.resources.size(), rule.verbs.size(),
                  std::max<std::size_t>(rule.resource_names.size(), 1)}) +
         product({rule.non_resource_urls.size(), rule.verbs.size()});
}

// Covers() costs the product of the list lengths; long lists are compared atom by atom within the bound.
bool IsShort(const PolicyRule& rule) {
  return rule.verbs.size() + rule.api_groups.size() + rule.resources.size() + rule.resource_names.size() +
             rule.non_resource_urls.size() <=
         1000;
}

}  // namespace

std::optional<PolicyRules> UncoveredRules(std::span<const PolicyRule> held, std::span<const PolicyRule> wanted) {
  PolicyRules missing;
  std::size_t atoms = 0;
  for (const PolicyRule& rule : wanted) {
    const auto covers_rule = [&](const PolicyRule& owner) { return Covers(owner, rule); };
    if (IsShort(rule) && std::ranges::any_of(held, covers_rule)) continue;
    atoms += AtomCount(rule);
    if (atoms > kRuleAtomsMax) return std::nullopt;
    for (PolicyRule& atom : BreakdownRule(rule)) {
      const bool covered = std::ranges::any_of(held, [&](const PolicyRule& owner) { return Covers(owner, atom); });
      if (!covered) missing.push_back(std::move(atom));
    }
  }
  return missing;
}

PolicyRules CompactRules(std::span<const PolicyRule> rules) {
  PolicyRules compact;
  std::map<std::tuple<std::string_view, std::string_view, bool, std::string_view>, std::size_t> places;
  for (const PolicyRule& rule : rules) {
    const bool simple = rule.api_groups.size() == 1 && rule.resources.size() == 1 && rule.resource_names.size() <= 1 &&
                        rule.non_resource_urls.empty();
    if (!simple) {
      compact.push_back(rule);
      continue;
    }
    const bool named = !rule.resource_names.empty();
    const auto [place, added] = places.try_emplace(
        {rule.api_groups[0], rule.resources[0], named, named ? rule.resource_names[0] : ""}, compact.size());
    if (added) {
      compact.push_back(rule);
    } else {
      Texts& verbs = compact[place->second].verbs;
      verbs.insert(verbs.end(), rule.verbs.begin(), rule.verbs.end());
    }
  }
  return compact;
}

std::string CompactString(const PolicyRule& rule) {
  std::string out = "{";
  AppendList(out, "APIGroups", rule.api_groups);
  AppendList(out, "Resources", rule.resources);
  AppendList(out, "NonResourceURLs", rule.non_resource_urls);
  AppendList(out, "ResourceNames", rule.resource_names);
  AppendList(out, "Verbs", rule.verbs);
  return out + "}";
}

const PolicyRules& FullAuthority() {
  static const PolicyRules rules = {
      {.verbs = {"*"}, .api_groups = {"*"}, .resources = {"*"}},
      {.verbs = {"*"}, .non_resource_urls = {"*"}},
  };
  return rules;
}

}  // namespace keelson::auth::rbac
