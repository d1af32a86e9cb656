// PodTolerationRestriction: default tolerations of a namespace or the cluster, and a whitelist of what pods may
// tolerate.
#include "admission/plugins/pod_toleration_restriction.h"

#include <algorithm>

#include "admission/plugins/amounts.h"
#include "admission/plugins/plugins.h"
#include "admission/plugins/simple.h"
#include "base/strings.h"
#include "object/json_text.h"
#include "validation/primitives.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kDefaults = "scheduler.alpha.kubernetes.io/defaultTolerations";
constexpr std::string_view kWhitelist = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
constexpr std::string_view kMemoryPressure = "node.kubernetes.io/memory-pressure";

std::string_view OperatorOf(Value toleration) { return toleration["operator"].as_string(); }

// `wide` tolerates everything that `narrow` does.
bool IsSuperset(Value wide, Value narrow) {
  if (wide == narrow) return true;
  if (wide["key"].as_string() != narrow["key"].as_string() &&
      (!wide["key"].as_string().empty() || OperatorOf(wide) != "Exists")) {
    return false;
  }
  const std::string_view effect = wide["effect"].as_string();
  if (!effect.empty() && effect != narrow["effect"].as_string()) return false;
  if (effect == "NoExecute" && wide["tolerationSeconds"].is_int()) {
    const Value seconds = narrow["tolerationSeconds"];
    if (!seconds.is_int() || seconds.as_int() > wide["tolerationSeconds"].as_int()) return false;
  }
  if (OperatorOf(wide) == "Exists") return true;
  if (OperatorOf(wide) != "Equal" && !OperatorOf(wide).empty()) return false;
  return OperatorOf(narrow) == "Equal" && narrow["value"].as_string() == wide["value"].as_string();
}

// QoS class BestEffort: no container has requests or limits of cpu or memory.
bool IsBestEffort(Value spec) {
  const auto asks = [](Value resources) {
    for (const std::string_view side : {"requests", "limits"}) {
      for (const auto& [name, quantity] : ReadAmounts(resources[side])) {
        if ((name == "cpu" || name == "memory") && quantity.Sign() > 0) return true;
      }
    }
    return false;
  };
  if (asks(spec["resources"])) return false;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value container : spec[list].items()) {
      if (asks(container["resources"])) return false;
    }
  }
  return true;
}

}  // namespace

Value MergeTolerations(base::Arena& arena, std::span<const Value> all) {
  Value merged = Value::List(arena);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool covered = std::ranges::any_of(merged.items(), [&](Value kept) { return IsSuperset(kept, all[i]); }) ||
                         std::ranges::any_of(all.subspan(i + 1), [&](Value later) {
                           return !(later == all[i]) && IsSuperset(later, all[i]);
                         });
    if (!covered) merged.Append(arena, all[i]);
  }
  return merged;
}

namespace {

class PodTolerationRestriction final : public Plugin {
 public:
  explicit PodTolerationRestriction(const PluginContext& context) : reader_(*context.reader) {
    const Value configuration = context.ConfigurationOf(name());
    default_ = configuration["default"].Clone(arena_, true);
    whitelist_ = configuration["whitelist"].Clone(arena_, true);
  }

  std::string_view name() const override { return "PodTolerationRestriction"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    if (!attributes.Is("", "pods") || !attributes.subresource.empty()) co_return meta::Result<void>();
    base::Arena& arena = context.arena;
    Value spec = attributes.object.EnsureMap(arena, "spec");
    std::vector<Value> all(spec["tolerations"].items().begin(), spec["tolerations"].items().end());
    const std::size_t own = all.size();
    if (attributes.operation == Operation::kCreate) {
      KS_CO_TRY(Value extra, co_await OfNamespace(context, attributes.name_space, std::string(kDefaults)));
      if (extra.is_null()) extra = default_.Clone(arena, true);
      for (const Value toleration : extra.items()) all.push_back(toleration);
    }
    if (!IsBestEffort(spec)) {
      Value toleration = Value::Map(arena);
      toleration.Set(arena, "key", kMemoryPressure);
      toleration.Set(arena, "operator", "Exists");
      toleration.Set(arena, "effect", "NoSchedule");
      all.push_back(toleration);
    }
    if (all.size() > own) spec.Set(arena, "tolerations", MergeTolerations(arena, all));
    co_return co_await Validate(context, attributes);
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (!attributes.Is("", "pods") || !attributes.subresource.empty()) co_return meta::Result<void>();
    const Value tolerations = attributes.object.Get("spec", "tolerations");
    if (tolerations.empty()) co_return meta::Result<void>();
    KS_CO_TRY(Value whitelist, co_await OfNamespace(context, attributes.name_space, std::string(kWhitelist)));
    const std::string_view scope = whitelist.is_null() ? "cluster" : "namespace";
    if (whitelist.is_null()) whitelist = whitelist_;
    if (whitelist.empty()) co_return meta::Result<void>();
    for (const Value toleration : tolerations.items()) {
      if (std::ranges::any_of(whitelist.items(), [&](Value allowed) { return IsSuperset(allowed, toleration); }))
        continue;
      co_return meta::NewPlainError(
          "pod tolerations (possibly merged with namespace default tolerations) conflict with its " +
          std::string(scope) + " whitelist");
    }
    co_return meta::Result<void>();
  }

 private:
  // The tolerations in a namespace's annotation; null without one.
  Task<Value> OfNamespace(request::Context& context, std::string name_space, std::string annotation) {
    auto found = co_await reader_.Get(context.arena, "", "namespaces", "", name_space, false);
    if (!found.ok()) found = co_await reader_.Get(context.arena, "", "namespaces", "", name_space, true);
    if (!found.ok()) co_return found.error();
    const Value text = found->Get("metadata", "annotations")[annotation];
    if (!text.is_string()) co_return Value();
    if (text.as_string().empty()) co_return Value::List(context.arena);
    const auto parsed = object::ParseJSON(context.arena, text.as_string());
    if (!parsed || !parsed->is_list()) {
      co_return meta::NewPlainError("invalid tolerations in annotation " + annotation);
    }
    co_return *parsed;
  }

  ObjectReader& reader_;
  base::Arena arena_;
  Value default_, whitelist_;
};

}  // namespace

namespace {

// Upstream's ValidateTolerations.
void CheckToleration(Value toleration, const std::string& path, meta::FieldErrors& errors) {
  const auto invalid = [&](std::string_view field, std::string_view value, std::string_view why) {
    errors.push_back(
        {meta::FieldError::Type::kInvalid, path + std::string(field), base::GoQuote(value), std::string(why)});
  };
  const auto unsupported = [&](std::string_view field, std::string_view value, std::string_view supported) {
    errors.push_back({meta::FieldError::Type::kNotSupported, path + std::string(field), base::GoQuote(value),
                      "supported values: " + std::string(supported)});
  };
  const std::string_view key = toleration["key"].as_string(), value = toleration["value"].as_string();
  const std::string_view op = OperatorOf(toleration), effect = toleration["effect"].as_string();
  if (!key.empty()) {
    for (const std::string& why : validation::IsQualifiedName(key)) invalid("key", key, why);
  }
  if (key.empty() && op != "Exists") {
    invalid("operator", op,
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
  }
  if (toleration["tolerationSeconds"].is_int() && effect != "NoExecute")
    invalid("effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
  if (op.empty() || op == "Equal") {
    if (const auto why = validation::IsValidLabelValue(value); !why.empty())
      invalid("operator", value, base::Join(why, ";"));
  } else if (op == "Exists") {
    if (!value.empty()) invalid("operator", value, "value must be empty when `operator` is 'Exists'");
  } else {
    unsupported("operator", op, op == "Lt" || op == "Gt" ? R"("Equal", "Exists", "Gt", "Lt")" : R"("Equal", "Exists")");
  }
  if (!effect.empty() && effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute")
    unsupported("effect", effect, R"("NoExecute", "NoSchedule", "PreferNoSchedule")");
}

}  // namespace

std::string CheckPodTolerationRestriction(Value configuration) {
  constexpr ConfigurationKind kKinds[] = {{"podtolerationrestriction.admission.k8s.io", "v1alpha1", "Configuration"}};
  if (configuration.is_null()) return "";
  if (std::string error = CheckConfigurationKind(configuration, kKinds); !error.empty()) return error;
  meta::FieldErrors errors;
  for (const std::string list : {"default", "whitelist"}) {
    const Value tolerations = configuration[list];
    for (std::size_t i = 0; i < tolerations.size(); ++i)
      CheckToleration(tolerations[i], "podtolerationrestriction." + list + "[" + std::to_string(i) + "].", errors);
  }
  if (errors.empty()) return "";
  std::vector<std::string> texts;
  for (const meta::FieldError& error : errors) texts.push_back(error.ToString());
  return "invalid config: [" + base::Join(texts, " ") + "]";
}

std::unique_ptr<Plugin> NewPodTolerationRestriction(const PluginContext& context) {
  return std::make_unique<PodTolerationRestriction>(context);
}

}  // namespace keelson::admission
