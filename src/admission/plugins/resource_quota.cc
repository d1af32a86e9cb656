// ResourceQuota: refuses what would take a namespace over one of its quotas, and books what it lets pass.
// Usage is only ever raised here; the quota controller lowers it again. Each quota is checked and booked in one
// compare-and-set of its status, so that requests side by side cannot both take the last place.
#include "admission/plugins/plugins.h"
#include "admission/plugins/quota_usage.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

// What one quota is asked for.
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

class ResourceQuotaPlugin final : public Plugin {
 public:
  explicit ResourceQuotaPlugin(const PluginContext& options) : reader_(*options.reader), clock_(*options.clock) {}
  std::string_view name() const override { return "ResourceQuota"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (!quota::Handles(attributes)) co_return meta::Result<void>();
    KS_CO_TRY(const std::vector<Value> quotas,
              co_await reader_.List(context.arena, "", "resourcequotas", attributes.name_space));
    if (quotas.empty()) co_return meta::Result<void>();
    KS_CO_TRY(const std::vector<Demand> demands, FindDemands(attributes, quotas));
    // All quotas are asked before any is booked.
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
  meta::Result<std::vector<Demand>> FindDemands(const Attributes& attributes, const std::vector<Value>& quotas) const {
    std::vector<Demand> demands;
    const bool update = attributes.operation == Operation::kUpdate;
    const bool stored_before = update && !attributes.old_object.Get("metadata", "resourceVersion").as_string().empty();
    const Amounts usage = quota::Usage(attributes, attributes.object, clock_.Now());
    const Amounts old_usage = stored_before ? quota::Usage(attributes, attributes.old_object, clock_.Now()) : Amounts();
    for (const Value quota : quotas) {
      const Amounts hard = ReadAmounts(quota.Get("status", "hard"));
      const std::vector<std::string> names = quota::MatchingNames(attributes, hard);
      if (names.empty() || !quota::ScopesMatch(attributes, quota["spec"], attributes.object)) continue;
      const std::string name(quota.Get("metadata", "name").as_string());
      if (const std::string missing = quota::MissingConstraints(attributes, names, attributes.object);
          !missing.empty()) {
        return NewForbidden(attributes, "failed quota: " + name + ": " + missing);
      }
      const Amounts used = ReadAmounts(quota.Get("status", "used"));
      for (const std::string& resource : names) {
        if (used.contains(resource)) continue;
        return NewForbidden(attributes, "status unknown for quota: " + name + ", resources: " + base::Join(names, ","));
      }
      const bool counted_before = stored_before && quota::ScopesMatch(attributes, quota["spec"], attributes.old_object);
      demands.push_back({name, counted_before ? Growth(usage, old_usage) : usage});
    }
    std::vector<std::string> negative;
    for (const auto& [resource, quantity] : usage) {
      if (quantity.Sign() < 0) negative.push_back(resource);
    }
    if (!negative.empty())
      return NewForbidden(attributes, "quota usage is negative for resource(s): " + base::Join(negative, ","));
    for (Demand& demand : demands) RemoveZeros(demand.delta);
    std::erase_if(demands, [](const Demand& demand) { return demand.delta.empty(); });
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
};

}  // namespace

std::unique_ptr<Plugin> NewResourceQuota(const PluginContext& options) {
  return std::make_unique<ResourceQuotaPlugin>(options);
}

}  // namespace keelson::admission
