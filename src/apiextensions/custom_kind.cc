#include "apiextensions/custom_kind.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "validation/structural/object_pipeline.h"
#include "validation/structural_cel/rule_validator.h"

namespace keelson::apiextensions {
namespace {

// Memory of compiled rules by that of their schema: 29 on average of 49 schemas of well-known projects. The serving
// state besides the schemas is an estimate.
constexpr std::size_t kRulesFactor = 30;
constexpr std::size_t kServingBytes = 24 * 1024;
constexpr std::size_t kServedVersionBytes = 8 * 1024;

using schema::structural::Columns;
using schema::structural::SelectableFields;

using validation::structural::RuleValidator;

// Compiled with the first evaluation, and again after the budget has dropped them.
class LazyRules final : public validation::structural::RuleSet,
                        public CompiledBudget::Member,
                        public std::enable_shared_from_this<LazyRules> {
 public:
  LazyRules(schema::structural::SchemaRef schema, const CompileOptions& options)
      : schema_(std::move(schema)), time_zones_(options.time_zones), budget_(options.budget) {}

  void Evaluate(base::Arena& arena, const Value& object, const Value* old, const cel::Interrupt* interrupt,
                validation::structural::Verdict& verdict) const override {
    const auto rules = Compiled();
    if (!rules) return;
    auto result = rules->Validate(arena, object, old, {.time_zones = time_zones_, .interrupt = interrupt});
    std::ranges::move(result.errors, std::back_inserter(verdict.errors));
    std::ranges::move(result.warnings, std::back_inserter(verdict.warnings));
  }

 private:
  std::shared_ptr<const RuleValidator> Compiled() const {
    Use();
    std::shared_ptr<const RuleValidator> rules;
    {
      std::lock_guard lock(mutex_);
      if (rules_) return rules_;
      rules_ = rules = RuleValidator::New(schema_);
    }
    if (rules && budget_) budget_->Charge(weak_from_this(), kRulesFactor * schema_->total_bytes());
    return rules;
  }

  bool Drop() const override {
    std::shared_ptr<const RuleValidator> dropped;  // freed after the lock
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    std::swap(dropped, rules_);
    return true;
  }

  const schema::structural::SchemaRef schema_;
  const cel::TimeZones* const time_zones_;
  const std::shared_ptr<CompiledBudget> budget_;
  mutable std::mutex mutex_;  // held while they are compiled: they are compiled once
  mutable std::shared_ptr<const RuleValidator> rules_;
};

Outcome<VersionKindPtr, std::string> CompileVersion(const std::shared_ptr<schema::structural::Pool>& pool,
                                                    const Definition& definition, const Value& version,
                                                    const CompileOptions& options) {
  auto made = std::make_shared<VersionKind>();
  made->pool = pool;
  const std::string name(version["name"].as_string());
  if (const Value schema = version["schema"]["openAPIV3Schema"]; schema.is_map()) {
    auto built = pool->Build(schema);
    if (!built.ok()) return "version " + name + ": " + built.error();
    base::Arena arena;
    if (const auto pruned = validation::structural::PruneDefaults(arena, schema, built->root())) {
      built = pool->Build(*pruned);
      if (!built.ok()) return "version " + name + ": " + built.error();
    }
    made->schema = *std::move(built);
    if (made->schema.root().has_rules_below()) made->rules = std::make_shared<const LazyRules>(made->schema, options);
  }
  made->kind = {definition.group, name, definition.accepted_names.kind};
  made->api_version = definition.group + "/" + name;
  made->namespaced = definition.namespaced;
  made->served = version["served"].as_bool();
  made->preserve_unknown_fields = definition.preserve_unknown_fields;
  made->status = version["subresources"]["status"].is_map();
  const Value scale = version["subresources"]["scale"];
  made->scale = scale.is_map();
  made->spec_replicas = scale["specReplicasPath"].as_string();
  made->status_replicas = scale["statusReplicasPath"].as_string();
  made->label_selector = scale["labelSelectorPath"].as_string();
  made->columns = Columns::Of(version["additionalPrinterColumns"]);
  made->selectable = SelectableFields::Of(version["selectableFields"]);
  return VersionKindPtr(std::move(made));
}

}  // namespace

validation::structural::CustomResource VersionKind::ForValidation() const {
  validation::structural::CustomResource resource;
  resource.group = kind.group;
  resource.version = kind.version;
  resource.kind = kind.kind;
  resource.namespaced = namespaced;
  resource.schema = schema.root();
  resource.scale = {.spec_replicas = spec_replicas,
                    .status_replicas = status_replicas,
                    .label_selector = label_selector,
                    .enabled = scale};
  resource.rules = rules.get();
  return resource;
}

const VersionKind* CustomKind::FindAPIVersion(std::string_view api_version) const {
  const auto found =
      std::ranges::find(versions, api_version, [](const auto& one) -> std::string_view { return one->api_version; });
  return found == versions.end() ? nullptr : found->get();
}

VersionKindPtr CustomKind::Find(std::string_view version) const {
  const auto found =
      std::ranges::find(versions, version, [](const auto& one) -> std::string_view { return one->kind.version; });
  return found == versions.end() ? nullptr : *found;
}

std::size_t EstimatedBytes(const CustomKind& kind) {
  std::size_t bytes = kServingBytes;
  for (const VersionKindPtr& version : kind.versions)
    bytes += kServedVersionBytes + (version->schema ? version->schema->total_bytes() : 0);
  return bytes;
}

Outcome<CustomKindPtr, std::string> CompileKind(const std::shared_ptr<schema::structural::Pool>& pool,
                                                const Definition& definition, const Value& value,
                                                const CompileOptions& options) {
  auto kind = std::make_shared<CustomKind>();
  kind->resource = {definition.group, definition.accepted_names.plural};
  kind->storage_version = definition.StorageVersion().name;
  kind->storage_api_version = definition.group + "/" + kind->storage_version;
  for (const Value& version : value["spec"]["versions"].items()) {
    KS_TRY(VersionKindPtr made, CompileVersion(pool, definition, version, options));
    for (std::size_t i = 0; i < made->selectable.size(); ++i) {
      const bool known = std::ranges::any_of(kind->selectable, [&](const auto& one) {
        return one.first->selectable.name(one.second) == made->selectable.name(i);
      });
      if (!known) kind->selectable.emplace_back(made, i);
    }
    kind->versions.push_back(std::move(made));
  }
  return CustomKindPtr(std::move(kind));
}

}  // namespace keelson::apiextensions
