#include "apiextensions/serving.h"

#include <algorithm>

#include "apiextensions/converted_storage.h"
#include "apiextensions/resource_codec.h"
#include "apiextensions/scale.h"
#include "apiextensions/strategy.h"
#include "endpoints/column_descriptions.h"
#include "endpoints/structural_codec.h"
#include "endpoints/version_converter.h"
#include "patch/field_manager.h"
#include "registry/resource_definition.h"
#include "schema/types.h"
#include "storage/dry_run_storage.h"
#include "storage/storage_factory.h"

namespace keelson::apiextensions {
namespace {

registry::ResourceDefinitionPtr DefineResource(const Definition& definition, const CustomKind& kind,
                                               std::shared_ptr<const registry::RESTStrategy> strategy) {
  auto made = std::make_shared<registry::ResourceDefinition>();
  made->resource = kind.resource;
  made->kind = {definition.group, definition.accepted_names.kind};
  made->list_kind = definition.accepted_names.list_kind;
  made->singular = definition.accepted_names.singular;
  made->namespaced = definition.namespaced;
  for (const DefinitionVersion& version : definition.versions) {
    if (version.storage) made->hub = made->versions.size();
    made->versions.push_back(
        {.group_version = {definition.group, version.name}, .deprecation_warning = version.deprecation_warning});
  }
  made->layout = storage::CustomResourceLayout(kind.resource, kind.storage_version);
  made->strategy = std::move(strategy);
  made->traits.go_package = "unstructured";
  return made;
}

// Descriptions of the columns that every kind has come from the tables of built-in kinds.
std::vector<schema::Column> ColumnsOf(const schema::structural::Columns& columns, bool declared) {
  std::vector<schema::Column> made;
  for (const auto& column : columns.definitions()) {
    std::string_view description = column.description;
    if (made.empty()) description = endpoints::ColumnDescription("", "replicationcontrollers", "Name");
    if (!declared && made.size() == 1) description = endpoints::ColumnDescription("", "replicationcontrollers", "Age");
    made.push_back({column.name, column.type, column.format, column.priority, description});
  }
  return made;
}

std::shared_ptr<endpoints::Scope> NewScope(const ServingConfig& config, const registry::ResourceDefinitionPtr& resource,
                                           const CustomKind& kind, const VersionKindPtr& version,
                                           const endpoints::KindCodecPtr& codec,
                                           const std::shared_ptr<registry::Store>& store) {
  auto scope = std::make_shared<endpoints::Scope>();
  scope->definition = resource;
  scope->codec = codec;
  scope->kind = version->kind;
  scope->list_kind = {version->kind.group, version->kind.version, resource->list_kind};
  scope->resource = {kind.resource.group, version->kind.version, kind.resource.resource};
  scope->namespaced = version->namespaced;
  // Columns have their descriptions unless none were declared: then the only one is Age.
  const auto& definitions = version->columns.definitions();
  scope->columns = ColumnsOf(version->columns, definitions.size() != 2 || !definitions[1].description.empty());
  scope->rest = store;
  scope->hub_api_version = version->api_version;
  scope->go_package = "unstructured";
  scope->restrictions = {.allow_transforms = true, .allow_protobuf = false, .allow_cbor = config.cbor};
  scope->compress = config.compress;
  scope->admission = config.admission;
  scope->authorizer = config.authorizer;
  scope->unsafe_delete_authorizer = config.unsafe_delete_authorizer;
  scope->delete_collection_workers = config.delete_collection_workers;
  scope->watch_list = config.watch_list;
  scope->sharding = config.sharding;
  scope->watch_timeout_min = config.min_request_timeout;
  return scope;
}

void SetFieldManager(endpoints::Scope& scope, const CustomKind& kind, const VersionKind& version) {
  patch::FieldManager::Options options;
  options.kind = version.kind;
  options.subresource = scope.subresource;
  options.custom_resource = true;
  options.schema = version.schema.root();
  for (const VersionKindPtr& other : kind.versions) {
    if (other.get() != &version) options.other_versions.emplace_back(other->api_version, other->schema.root());
  }
  const auto& reset = scope.rest->rest_strategy().RulesOf(scope.endpoint).reset_fields;
  options.reset_fields.assign(reset.begin(), reset.end());
  options.awaits_conversion = scope.version_converter != nullptr;
  scope.field_manager = std::make_shared<patch::FieldManager>(std::move(options));
}

class WebhookConverter final : public endpoints::VersionConverter {
 public:
  explicit WebhookConverter(WebhookConversionPtr conversion) : conversion_(std::move(conversion)) {}
  Awaitable<meta::Result<Value>> Convert(base::Arena& arena, Value object, std::string api_version) const override {
    std::vector<Value> one(1, object);
    KS_CO_TRY(const std::vector<Value> converted,
              co_await apiextensions::Convert(conversion_, arena, std::move(one), std::move(api_version)));
    co_return converted.front();
  }

 private:
  const WebhookConversionPtr conversion_;
};

// The scopes of all versions of one kind, for admission's match policy Equivalent.
struct Equivalents {
  std::shared_ptr<endpoints::EquivalentScopes> main = std::make_shared<endpoints::EquivalentScopes>();
  std::shared_ptr<endpoints::EquivalentScopes> status = std::make_shared<endpoints::EquivalentScopes>();
  std::shared_ptr<endpoints::EquivalentScopes> scale = std::make_shared<endpoints::EquivalentScopes>();

  static void Join(const std::shared_ptr<endpoints::EquivalentScopes>& group,
                   const std::shared_ptr<endpoints::Scope>& scope) {
    group->Add(scope);
    scope->equivalents = group;
  }
};

ServedVersion NewServedVersion(const ServingConfig& config, const registry::ResourceDefinitionPtr& resource,
                               const CustomKindPtr& kind, const VersionKindPtr& version,
                               const std::shared_ptr<registry::Store>& base, const WebhookConversionPtr& conversion,
                               const Equivalents& equivalents) {
  ServedVersion served;
  served.version = version;
  registry::Store::Options options = base->options();
  options.codec = NewResourceCodec(kind, version, conversion != nullptr);
  options.dry_run_storage = nullptr;  // that of `base`
  if (conversion) {
    // A dry run converts as a write does: what the stored version does not have is missing in the answer, too.
    auto dry_run = std::make_shared<storage::DryRunStorage>(options.storage, base->options().codec);
    options.dry_run_storage = NewConvertedStorage(std::move(dry_run), kind, version, conversion);
    options.storage = NewConvertedStorage(options.storage, kind, version, conversion);
  }
  options.strategy = NewStrategy(version);
  served.store = std::make_shared<registry::Store>(std::move(options));
  const auto codec = endpoints::NewStructuralCodec(
      {.schema = version->schema, .keeps = version, .preserve_unknown_fields = version->preserve_unknown_fields});
  std::shared_ptr<const endpoints::VersionConverter> converter;
  if (conversion) converter = std::make_shared<const WebhookConverter>(conversion);
  auto main = NewScope(config, resource, *kind, version, codec, served.store);
  main->version_converter = converter;
  SetFieldManager(*main, *kind, *version);
  Equivalents::Join(equivalents.main, main);
  served.metadata = served.main = std::move(main);
  if (conversion) {
    registry::Store::Options unconverted = base->options();
    unconverted.strategy = served.store->options().strategy;
    served.metadata =
        NewScope(config, resource, *kind, version, codec, std::make_shared<registry::Store>(std::move(unconverted)));
  }
  if (version->status) {
    auto status = NewScope(config, resource, *kind, version, codec, served.store);
    status->subresource = "status";
    status->endpoint.part = registry::Endpoint::Part::kStatus;
    status->version_converter = converter;
    SetFieldManager(*status, *kind, *version);
    Equivalents::Join(equivalents.status, status);
    served.status = std::move(status);
  }
  if (version->scale) {
    static const registry::UpdateRules kScale{};  // the Scale's own are in its REST
    auto scale = NewScope(config, resource, *kind, version, ScaleCodec(), served.store);
    scale->subresource = "scale";
    scale->endpoint = {registry::Endpoint::Part::kOther, &kScale};
    scale->kind = {"autoscaling", "v1", "Scale"};
    scale->type = &schema::types::autoscaling_v1::kScale;
    scale->own_kind = true;
    scale->go_package = "autoscaling";
    scale->columns = ScaleColumns();
    scale->rest = NewScaleREST(kind, version, served.store, *scale->type);
    patch::FieldManager::Options tracked{.type = scale->type, .kind = scale->kind, .subresource = scale->subresource};
    tracked.unconvertible = true;
    scale->field_manager = std::make_shared<patch::FieldManager>(std::move(tracked));
    Equivalents::Join(equivalents.scale, scale);
    served.scale = std::move(scale);
  }
  return served;
}

}  // namespace

const ServedVersion* Serving::Find(std::string_view version) const {
  const auto found = std::ranges::find(
      versions, version, [](const ServedVersion& one) -> std::string_view { return one.version->kind.version; });
  return found == versions.end() ? nullptr : &*found;
}

// Null for the strategy None.
static Outcome<WebhookConversionPtr, std::string> ConversionOf(const ServingConfig& config, const std::string& name,
                                                               const Value& conversion) {
  if (conversion["strategy"].as_string() != "Webhook") return WebhookConversionPtr();
  auto made = std::make_shared<WebhookConversion>();
  made->definition = name;
  made->metrics = config.conversion_metrics;
  if (!config.conversion_client) return std::string("conversion webhooks are not available");
  KS_TRY(made->client, config.conversion_client(conversion["webhook"]));
  for (const Value& version : conversion["webhook"]["conversionReviewVersions"].items()) {
    if (version.as_string() != "v1" && version.as_string() != "v1beta1") continue;
    made->v1 = version.as_string() == "v1";
    break;
  }
  return WebhookConversionPtr(std::move(made));
}

Outcome<ServingPtr, std::string> NewServing(const ServingConfig& config, const CompiledForms& compiled,
                                            const Definition& definition, const Value& value) {
  auto serving = base::MakeRef<Serving>();
  KS_TRY(serving->kind,
         CompileKind(compiled.pool, definition, value, {.time_zones = config.time_zones, .budget = compiled.budget}));
  const CustomKindPtr& kind = serving->kind;
  KS_TRY(const WebhookConversionPtr conversion, ConversionOf(config, definition.name, value["spec"]["conversion"]));
  const auto resource = DefineResource(definition, *kind, NewStrategy(kind->Find(kind->storage_version)));
  serving->base =
      config.storage->Add(*resource, NewStorageCodec(kind, config.cbor ? StoredAs::kCBOR : StoredAs::kJSON));
  const Equivalents equivalents;
  for (const VersionKindPtr& version : kind->versions) {
    if (!version->served) continue;
    serving->versions.push_back(
        NewServedVersion(config, resource, kind, version, serving->base, conversion, equivalents));
  }
  return ServingPtr(serving);
}

}  // namespace keelson::apiextensions
