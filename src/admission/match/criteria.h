// Match criteria of a webhook or policy: rules, selectors, match policy. Compiled once from the stored object,
// immutable then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/admission.h"
#include "admission/attributes.h"
#include "meta/selector.h"

namespace keelson::admission {

// A RuleWithOperations, or NamedRuleWithOperations of policies.
struct ResourceRule {
  enum class Scope : std::uint8_t { kAll, kNamespaced, kCluster };

  std::uint8_t operations = 0;  // one bit per Operation
  std::vector<std::string> groups, versions;
  std::vector<std::pair<std::string, std::string>> resources;  // resource, subresource
  std::vector<std::string> names;                              // empty: all
  Scope scope = Scope::kAll;

  static ResourceRule Of(Value rule);
  // `resource` is the requested one or an equivalent.
  bool Matches(const Attributes& attributes, const meta::GroupVersionResource& resource) const;
};

// A metav1.LabelSelector. Null selects nothing in Kubernetes, but defaulting has filled in {} where this is used.
meta::LabelSelector LabelSelectorOf(Value selector);
bool SelectorMatches(const meta::LabelSelector& selector, Value labels);

struct Criteria {
  meta::LabelSelector namespaces, objects;
  std::vector<ResourceRule> rules, exclude_rules;
  bool no_rules_match_all = false;  // of bindings
  bool equivalent = true;           // matchPolicy

  // From a webhook, or from matchConstraints or matchResources of a policy or binding.
  static Criteria OfWebhook(Value webhook);
  static Criteria OfPolicy(Value match_resources);
};

// Matches one request against many criteria. The namespace is read at most once.
class Matcher {
 public:
  // All must outlive this.
  Matcher(ObjectReader& reader, request::Context& context, const Attributes& attributes)
      : reader_(reader), context_(context), attributes_(attributes) {}

  // The resource and kind under which it matches; nothing when it does not. Errors are those of the look-up of the
  // namespace: 404 as it is, all others 500.
  Task<std::optional<ObjectInterfaces::Resource>> Match(const Criteria& criteria);
  // Match() without reading anything: rules and the object's selector exclude the request, or no selector needs its
  // namespace. Nothing: only Match() can decide.
  std::optional<std::optional<ObjectInterfaces::Resource>> MatchNow(const Criteria& criteria);
  // The request's namespace; null for cluster-scoped requests.
  Task<Value> Namespace();

 private:
  // Verdict of a selector: unknown (an error) counts only once rules match.
  struct Selected {
    bool matches = false;
    std::optional<meta::Status> error;
  };
  Awaitable<Selected> MatchNamespace(const Criteria& criteria);
  // All but the namespace's selector.
  std::optional<ObjectInterfaces::Resource> MatchRequest(const Criteria& criteria);
  bool AsksForNamespace(const Criteria& criteria) const;
  bool MatchObject(const Criteria& criteria) const;
  std::optional<ObjectInterfaces::Resource> MatchRules(const std::vector<ResourceRule>& rules, bool equivalent);

  ObjectReader& reader_;
  request::Context& context_;
  const Attributes& attributes_;
  std::optional<meta::Result<Value>> namespace_;
  std::optional<std::vector<ObjectInterfaces::Resource>> equivalents_;
};

}  // namespace keelson::admission
