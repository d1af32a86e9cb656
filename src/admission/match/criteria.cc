#include "admission/match/criteria.h"

#include <algorithm>

namespace keelson::admission {
namespace {

std::vector<std::string> Texts(Value list) {
  std::vector<std::string> texts;
  texts.reserve(list.size());
  for (const Value item : list.items()) texts.emplace_back(item.as_string());
  return texts;
}

std::uint8_t Bit(Operation operation) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(operation)); }

std::uint8_t OperationsOf(Value list) {
  std::uint8_t bits = 0;
  for (const Value item : list.items()) {
    const std::string_view name = item.as_string();
    if (name == "*") return 0xff;
    for (const Operation operation :
         {Operation::kCreate, Operation::kUpdate, Operation::kDelete, Operation::kConnect}) {
      if (name == ToString(operation)) bits |= Bit(operation);
    }
  }
  return bits;
}

bool ExactOrWildcard(const std::vector<std::string>& items, std::string_view wanted) {
  return std::ranges::any_of(items, [&](const std::string& item) { return item == "*" || item == wanted; });
}

bool IsNamespaces(const meta::GroupVersionResource& resource) {
  return resource.group.empty() && resource.version == "v1" && resource.resource == "namespaces";
}

std::vector<ResourceRule> RulesOf(Value list) {
  std::vector<ResourceRule> rules;
  rules.reserve(list.size());
  for (const Value rule : list.items()) rules.push_back(ResourceRule::Of(rule));
  return rules;
}

}  // namespace

ResourceRule ResourceRule::Of(Value rule) {
  ResourceRule compiled;
  compiled.operations = OperationsOf(rule["operations"]);
  compiled.groups = Texts(rule["apiGroups"]);
  compiled.versions = Texts(rule["apiVersions"]);
  for (const std::string& text : Texts(rule["resources"])) {
    const auto slash = text.find('/');
    if (slash == std::string::npos) {
      compiled.resources.emplace_back(text, "");
    } else {
      compiled.resources.emplace_back(text.substr(0, slash), text.substr(slash + 1));
    }
  }
  compiled.names = Texts(rule["resourceNames"]);
  const std::string_view scope = rule["scope"].as_string();
  compiled.scope = scope == "Namespaced" ? Scope::kNamespaced : scope == "Cluster" ? Scope::kCluster : Scope::kAll;
  return compiled;
}

bool ResourceRule::Matches(const Attributes& attributes, const meta::GroupVersionResource& resource) const {
  if ((operations & Bit(attributes.operation)) == 0) return false;
  // A namespace is cluster-scoped although requests for it carry its name as their namespace.
  const bool cluster = IsNamespaces(resource) || attributes.name_space.empty();
  if (scope == Scope::kNamespaced && cluster) return false;
  if (scope == Scope::kCluster && !cluster) return false;
  if (!ExactOrWildcard(groups, resource.group) || !ExactOrWildcard(versions, resource.version)) return false;
  const bool named = std::ranges::any_of(resources, [&](const auto& row) {
    return (row.first == "*" || row.first == resource.resource) &&
           (row.second == "*" || row.second == attributes.subresource);
  });
  return named && (names.empty() || std::ranges::find(names, attributes.name) != names.end());
}

meta::LabelSelector LabelSelectorOf(Value selector) {
  using Operator = meta::LabelSelector::Operator;
  std::vector<meta::LabelSelector::Requirement> requirements;
  for (const auto& label : selector["matchLabels"].members()) {
    requirements.push_back({std::string(label.key), Operator::kEquals, {std::string(label.value.as_string())}});
  }
  for (const Value expression : selector["matchExpressions"].items()) {
    const std::string_view op = expression["operator"].as_string();
    const Operator kind = op == "In"       ? Operator::kIn
                          : op == "NotIn"  ? Operator::kNotIn
                          : op == "Exists" ? Operator::kExists
                                           : Operator::kDoesNotExist;
    std::vector<std::string> values = Texts(expression["values"]);
    std::ranges::sort(values);
    requirements.push_back({std::string(expression["key"].as_string()), kind, std::move(values)});
  }
  return meta::LabelSelector::Of(std::move(requirements));
}

bool SelectorMatches(const meta::LabelSelector& selector, Value labels) {
  if (selector.Empty()) return true;
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  pairs.reserve(labels.size());
  for (const auto& label : labels.members()) pairs.emplace_back(label.key, label.value.as_string());
  std::ranges::sort(pairs);
  return selector.Matches(pairs);
}

Criteria Criteria::OfWebhook(Value webhook) {
  Criteria criteria;
  criteria.namespaces = LabelSelectorOf(webhook["namespaceSelector"]);
  criteria.objects = LabelSelectorOf(webhook["objectSelector"]);
  criteria.rules = RulesOf(webhook["rules"]);
  criteria.equivalent = webhook["matchPolicy"].as_string() == "Equivalent";
  return criteria;
}

Criteria Criteria::OfPolicy(Value match_resources) {
  Criteria criteria;
  criteria.namespaces = LabelSelectorOf(match_resources["namespaceSelector"]);
  criteria.objects = LabelSelectorOf(match_resources["objectSelector"]);
  criteria.rules = RulesOf(match_resources["resourceRules"]);
  criteria.exclude_rules = RulesOf(match_resources["excludeResourceRules"]);
  criteria.no_rules_match_all = true;
  criteria.equivalent = match_resources["matchPolicy"].as_string() == "Equivalent";
  return criteria;
}

Task<Value> Matcher::Namespace() {
  if (!namespace_) {
    auto found = co_await reader_.Get(context_.arena, "", "namespaces", "", attributes_.name_space, false);
    // The cache may be behind: the store has the last word.
    if (!found.ok()) found = co_await reader_.Get(context_.arena, "", "namespaces", "", attributes_.name_space, true);
    namespace_ = std::move(found);
  }
  co_return *namespace_;
}

bool Matcher::AsksForNamespace(const Criteria& criteria) const {
  const bool namespaces = attributes_.resource.resource == "namespaces";
  return !criteria.namespaces.Empty() && (!attributes_.name_space.empty() || namespaces);
}

Awaitable<Matcher::Selected> Matcher::MatchNamespace(const Criteria& criteria) {
  const bool namespaces = attributes_.resource.resource == "namespaces";
  const bool written = attributes_.operation == Operation::kCreate || attributes_.operation == Operation::kUpdate;
  if (namespaces && attributes_.subresource.empty() && written) {
    co_return Selected{.matches = SelectorMatches(criteria.namespaces, attributes_.object.Get("metadata", "labels"))};
  }
  auto found = co_await Namespace();
  if (!found.ok()) {
    const meta::Status& error = found.error();
    if (error.reason() == meta::StatusReason::kNotFound) co_return Selected{.error = error};
    co_return Selected{.error = meta::NewInternalError(error.message())};
  }
  co_return Selected{.matches = SelectorMatches(criteria.namespaces, found->Get("metadata", "labels"))};
}

bool Matcher::MatchObject(const Criteria& criteria) const {
  if (criteria.objects.Empty()) return true;
  if (attributes_.operation == Operation::kConnect) return false;  // Options of connections have no labels.
  const auto matches = [&](Value object) {
    return !object.is_null() && SelectorMatches(criteria.objects, object.Get("metadata", "labels"));
  };
  return matches(attributes_.object) || matches(attributes_.old_object);
}

std::optional<ObjectInterfaces::Resource> Matcher::MatchRules(const std::vector<ResourceRule>& rules, bool equivalent) {
  for (const ResourceRule& rule : rules) {
    if (rule.Matches(attributes_, attributes_.resource))
      return ObjectInterfaces::Resource{attributes_.resource, attributes_.kind};
  }
  if (!equivalent || rules.empty()) return std::nullopt;
  if (!equivalents_) equivalents_ = attributes_.interfaces->EquivalentResources();
  for (const ResourceRule& rule : rules) {
    for (const ObjectInterfaces::Resource& other : *equivalents_) {
      if (other.resource != attributes_.resource && rule.Matches(attributes_, other.resource)) return other;
    }
  }
  return std::nullopt;
}

std::optional<ObjectInterfaces::Resource> Matcher::MatchRequest(const Criteria& criteria) {
  std::optional<ObjectInterfaces::Resource> found;
  if (criteria.rules.empty() && criteria.no_rules_match_all) {
    found = ObjectInterfaces::Resource{attributes_.resource, attributes_.kind};
  } else {
    found = MatchRules(criteria.rules, criteria.equivalent);
  }
  if (!found || !MatchObject(criteria) || MatchRules(criteria.exclude_rules, criteria.equivalent)) return std::nullopt;
  return found;
}

std::optional<std::optional<ObjectInterfaces::Resource>> Matcher::MatchNow(const Criteria& criteria) {
  auto found = MatchRequest(criteria);
  if (found && AsksForNamespace(criteria)) return std::nullopt;
  return found;
}

Task<std::optional<ObjectInterfaces::Resource>> Matcher::Match(const Criteria& criteria) {
  using Found = std::optional<ObjectInterfaces::Resource>;
  // Rules first: they are the cheapest and exclude most requests. Errors of selectors count only where rules match.
  Found found = MatchRequest(criteria);
  if (!found || !AsksForNamespace(criteria)) co_return found;
  const Selected selected = co_await MatchNamespace(criteria);
  if (selected.error) co_return *selected.error;
  if (!selected.matches) co_return Found();
  co_return found;
}

}  // namespace keelson::admission
