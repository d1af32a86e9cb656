// ResourceQuota: refuses what would take a namespace over one of its quotas, and books what it lets pass.
// Usage is only ever raised here; the quota controller lowers it again. Each quota is checked and booked in one
// compare-and-set of its status, so that requests side by side cannot both take the last place.
#include <algorithm>
#include <set>

#include "admission/plugins/plugins.h"
#include "admission/plugins/quota_usage.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

// The usage that a request adds to one quota.
struct Demand {
  std::string quota;
  Amounts delta;
};

Amounts Pick(const Amounts& from, const Amounts& names) {
  Amounts picked;
  for (const auto& [name, unused] : names) {
    if (const auto at = from.find(name); at != from.end()) picked.emplace(*at);
  }
  return picked;
}

void RemoveZeros(Amounts& amounts) {
  std::erase_if(amounts, [](const auto& amount) { return amount.second.IsZero(); });
}

// By how much `now` is more than `old`.
Amounts Growth(const Amounts& now, const Amounts& old) {
  Amounts growth;
  for (const auto& [name, quantity] : now) {
    auto more = quantity;
    if (const auto at = old.find(name); at != old.end()) more.Sub(at->second);
    if (more.Sign() > 0) growth.emplace(name, more);
  }
  return growth;
}

// limitedResources of the plugin's configuration: consumption that needs a quota which covers it.
class LimitedResources {
 public:
  explicit LimitedResources(Value configuration) : limited_(configuration["limitedResources"]) {}
  bool empty() const { return limited_.empty(); }

  // Why nothing covers the consumption: `covered` are the resource names of the quotas that matched, `scopes` their
  // scopes.
  meta::Result<void> Check(const Attributes& attributes, const Amounts& usage, const std::set<std::string>& covered,
                           const std::set<std::string_view>& scopes) const {
    std::vector<std::string> uncovered;
    for (const auto& [name, quantity] : usage) {
      if (quantity.Sign() > 0 && NeedsQuota(attributes, name) && !covered.contains(name)) uncovered.push_back(name);
    }
    if (!uncovered.empty())
      return NewForbidden(attributes, "insufficient quota to consume: " + base::Join(uncovered, ","));
    std::string missing;
    for (const Value limited : limited_.items()) {
      const auto terms = limited["matchScopes"].items();
      for (const Value term : quota::MatchingScopes(attributes, {terms.begin(), terms.end()}, attributes.object)) {
        if (!scopes.contains(term["scopeName"].as_string())) missing += (missing.empty() ? "" : " ") + GoText(term);
      }
    }
    // Upstream's plain error: 500 with this text.
    if (!missing.empty()) return meta::NewPlainError("insufficient quota to match these scopes: [" + missing + "]");
    return {};
  }

 private:
  bool NeedsQuota(const Attributes& attributes, std::string_view name) const {
    return std::ranges::any_of(limited_.items(), [&](Value limited) {
      if (!attributes.Is(limited["apiGroup"].as_string(), limited["resource"].as_string())) return false;
      return std::ranges::any_of(limited["matchContains"].items(),
                                 [&](Value part) { return name.find(part.as_string()) != std::string_view::npos; });
    });
  }

  // A ScopedResourceSelectorRequirement as Go's %v prints it.
  static std::string GoText(Value term) {
    std::vector<std::string> values;
    for (const Value value : term["values"].items()) values.emplace_back(value.as_string());
    return "{" + std::string(term["scopeName"].as_string()) + " " + std::string(term["operator"].as_string()) + " [" +
           base::Join(values, " ") + "]}";
  }

  Value limited_;
};

// Scopes of a quota as requirements: spec.scopes have to exist, spec.scopeSelector says more.
std::vector<Value> ScopeTerms(base::Arena& arena, Value quota) {
  std::vector<Value> terms;
  for (const Value scope : quota.Get("spec", "scopes").items()) {
    Value term = Value::Map(arena);
    term.Set(arena, "scopeName", scope);
    term.Set(arena, "operator", "Exists");
    terms.push_back(term);
  }
  for (const Value term : quota.Get("spec", "scopeSelector", "matchExpressions").items()) terms.push_back(term);
  return terms;
}

class ResourceQuotaPlugin final : public Plugin {
 public:
  explicit ResourceQuotaPlugin(const PluginContext& options)
      : reader_(*options.reader),
        clock_(*options.clock),
        configurations_(options.configurations),
        limited_(options.ConfigurationOf("ResourceQuota")) {}
  std::string_view name() const override { return "ResourceQuota"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (!quota::Handles(attributes)) co_return meta::Result<void>();
    KS_CO_TRY(const std::vector<Value> quotas,
              co_await reader_.List(context.arena, "", "resourcequotas", attributes.name_space));
    if (quotas.empty() && limited_.empty()) co_return meta::Result<void>();
    KS_CO_TRY(const std::vector<Demand> demands, FindDemands(context.arena, attributes, quotas));
    // All quotas are checked before any usage is written.
    for (const Demand& demand : demands) {
      for (const Value quota : quotas) {
        if (quota.Get("metadata", "name").as_string() != demand.quota) continue;
        KS_CO_RETURN_IF_ERROR(CheckLimit(attributes, demand, quota));
      }
    }
    if (attributes.dry_run) co_return meta::Result<void>();
    for (const Demand& demand : demands) KS_CO_RETURN_IF_ERROR(co_await Book(context, attributes, demand));
    co_return meta::Result<void>();
  }

 private:
  // Names of the quota's resources that the object counts for; empty when the quota does not look at it. The error: the
  // object cannot be counted.
  static meta::Result<std::vector<std::string>> RestrictedNames(const Attributes& attributes, Value quota) {
    std::vector<std::string> names = quota::MatchingNames(attributes, ReadAmounts(quota.Get("status", "hard")));
    if (names.empty() || !quota::ScopesMatch(attributes, quota["spec"], attributes.object))
      return std::vector<std::string>();
    const std::string name(quota.Get("metadata", "name").as_string());
    if (const std::string missing = quota::MissingConstraints(attributes, names, attributes.object); !missing.empty())
      return NewForbidden(attributes, "failed quota: " + name + ": " + missing);
    const Amounts used = ReadAmounts(quota.Get("status", "used"));
    for (const std::string& resource : names) {
      if (used.contains(resource)) continue;
      return NewForbidden(attributes, "status unknown for quota: " + name + ", resources: " + base::Join(names, ","));
    }
    return names;
  }

  meta::Result<std::vector<Demand>> FindDemands(base::Arena& arena, const Attributes& attributes,
                                                const std::vector<Value>& quotas) const {
    const bool update = attributes.operation == Operation::kUpdate;
    const bool stored_before = update && !attributes.old_object.Get("metadata", "resourceVersion").as_string().empty();
    const Amounts usage = quota::Usage(attributes, attributes.object, clock_.Now());
    const Amounts old_usage = stored_before ? quota::Usage(attributes, attributes.old_object, clock_.Now()) : Amounts();
    std::vector<Demand> demands;
    std::set<std::string> covered;
    std::set<std::string_view> scopes;
    for (const Value quota : quotas) {
      for (const Value term : quota::MatchingScopes(attributes, ScopeTerms(arena, quota), attributes.object))
        scopes.insert(term["scopeName"].as_string());
      KS_TRY(const std::vector<std::string> names, RestrictedNames(attributes, quota));
      if (names.empty()) continue;
      covered.insert(names.begin(), names.end());
      const bool counted_before = stored_before && quota::ScopesMatch(attributes, quota["spec"], attributes.old_object);
      demands.push_back(
          {std::string(quota.Get("metadata", "name").as_string()), counted_before ? Growth(usage, old_usage) : usage});
    }
    std::vector<std::string> negative;
    for (const auto& [resource, quantity] : usage) {
      if (quantity.Sign() < 0) negative.push_back(resource);
    }
    if (!negative.empty())
      return NewForbidden(attributes, "quota usage is negative for resource(s): " + base::Join(negative, ","));
    if (demands.empty()) demands.push_back({"", stored_before ? Growth(usage, old_usage) : usage});
    for (Demand& demand : demands) RemoveZeros(demand.delta);
    std::erase_if(demands, [](const Demand& demand) { return demand.delta.empty(); });
    if (demands.empty()) return demands;
    KS_RETURN_IF_ERROR(limited_.Check(attributes, usage, covered, scopes));
    std::erase_if(demands, [](const Demand& demand) { return demand.quota.empty(); });
    return demands;
  }

  // The usage that a quota would have then, or why it cannot be had.
  static meta::Result<Amounts> CheckLimit(const Attributes& attributes, const Demand& demand, Value quota) {
    const Amounts hard = ReadAmounts(quota.Get("status", "hard"));
    const Amounts requested = Pick(demand.delta, hard);
    const Amounts used = ReadAmounts(quota.Get("status", "used"));
    Amounts next = used;
    Amounts exceeded;
    for (const auto& [name, quantity] : requested) {
      const auto [at, inserted] = next.emplace(name, quantity);
      if (!inserted) at->second.Add(quantity);
      if (at->second.Compare(hard.at(name)) > 0) exceeded.emplace(name, quantity);
    }
    if (exceeded.empty() || attributes.subresource == "status") return next;
    return NewForbidden(attributes, "exceeded quota: " + demand.quota + ", requested: " + quota::ToString(exceeded) +
                                        ", used: " + quota::ToString(Pick(used, exceeded)) +
                                        ", limited: " + quota::ToString(Pick(hard, exceeded)));
  }

  Task<void> Book(request::Context& context, const Attributes& attributes, const Demand& demand) {
    std::optional<meta::Status> refusal;
    base::Arena& arena = context.arena;
    auto written = co_await reader_.UpdateStatus(
        arena, "", "resourcequotas", attributes.name_space, demand.quota, [&](Value current) -> std::optional<Value> {
          refusal.reset();
          auto next = CheckLimit(attributes, demand, current);
          if (!next.ok()) {
            refusal = next.error();
            return std::nullopt;
          }
          Value used = Value::Map(arena);
          for (const auto& [name, quantity] : *next)
            used.Set(arena, arena.Copy(name), Value::String(arena, quantity.ToString()));
          current.EnsureMap(arena, "status").Set(arena, "used", used);
          return current;
        });
    if (refusal) co_return *refusal;
    // A quota that has gone meanwhile limits nothing.
    if (!written.ok() && written.error().reason() != meta::StatusReason::kNotFound) co_return written.error();
    co_return meta::Result<void>();
  }

  ObjectReader& reader_;
  const base::Clock& clock_;
  std::shared_ptr<const PluginConfigurations> configurations_;  // holds what limited_ refers to
  LimitedResources limited_;
};

}  // namespace

std::string CheckResourceQuota(Value configuration) {
  constexpr ConfigurationKind kKinds[] = {{"apiserver.config.k8s.io", "v1", "ResourceQuotaConfiguration"},
                                          {"resourcequota.admission.k8s.io", "v1beta1", "Configuration"},
                                          {"resourcequota.admission.k8s.io", "v1alpha1", "Configuration"}};
  if (configuration.is_null()) return "";
  if (std::string error = CheckConfigurationKind(configuration, kKinds); !error.empty()) return error;
  std::vector<std::string> unknown;
  const auto only = [&](const Value& map, const std::string& path, std::initializer_list<std::string_view> known) {
    for (const auto& member : map.members()) {
      if (std::ranges::find(known, member.key) == known.end())
        unknown.push_back("unknown field " + base::GoQuote(path + std::string(member.key)));
    }
  };
  only(configuration, "", {"apiVersion", "kind", "limitedResources"});
  meta::FieldErrors errors;
  const Value limited = configuration["limitedResources"];
  for (std::size_t i = 0; i < limited.size(); ++i) {
    const std::string path = "limitedResources[" + std::to_string(i) + "].";
    only(limited[i], path, {"apiGroup", "resource", "matchContains", "matchScopes"});
    if (limited[i]["resource"].as_string().empty())
      errors.push_back({meta::FieldError::Type::kRequired, path + "resource", "", ""});
  }
  if (!unknown.empty()) return "strict decoding error: " + base::Join(unknown, ", ");
  return errors.empty() ? "" : meta::AggregateMessage(errors);
}

std::unique_ptr<Plugin> NewResourceQuota(const PluginContext& options) {
  return std::make_unique<ResourceQuotaPlugin>(options);
}

}  // namespace keelson::admission
