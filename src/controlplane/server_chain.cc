#include "controlplane/server_chain.h"

#include <algorithm>

#include "base/strings.h"
#include "controlplane/custom_routes.h"
#include "controlplane/openapi.h"
#include "endpoints/column_descriptions.h"
#include "endpoints/scope.h"
#include "patch/field_manager.h"
#include "registry/catalog.h"
#include "schema/facts.h"

namespace keelson::controlplane {
using endpoints::APIGroupVersion;
using endpoints::Scope;

std::shared_ptr<Scope> NewScope(const ChainConfig& config, const schema::Resource& resource,
                                std::shared_ptr<registry::Store> store, std::string_view subresource) {
  auto scope = std::make_shared<Scope>();
  scope->kind = {std::string(resource.group), std::string(resource.version), std::string(resource.kind)};
  scope->list_kind = {scope->kind.group, scope->kind.version, scope->kind.kind + "List"};
  scope->resource = {scope->kind.group, scope->kind.version, std::string(resource.plural)};
  scope->namespaced = resource.namespaced;
  scope->type = resource.type;
  scope->columns.assign(resource.columns.begin(), resource.columns.end());
  for (schema::Column& column : scope->columns) {
    column.description = endpoints::ColumnDescription(resource.group, resource.plural, column.name);
  }
  scope->rest = std::move(store);
  scope->definition = config.storage->catalog().Find(resource.group, resource.plural);
  const registry::ServedVersion* served = scope->definition->FindVersion(resource.group, resource.version);
  scope->conversion = served->conversion;
  scope->hub_api_version = scope->definition->hub_version().group_version.ToString();
  scope->go_package = scope->definition->traits.go_package;
  scope->deprecation_warning = served->deprecation_warning;
  scope->restrictions.allow_transforms = true;
  scope->restrictions.allow_tables =
      subresource.empty() ||
      std::ranges::count(base::Split(schema::FactsOf(resource).no_tables, ','), subresource) == 0;
  scope->restrictions.allow_cbor = config.cbor;
  scope->compress = config.compress;
  scope->admission = config.admission;
  scope->authorizer = config.authorizer;
  if (config.allow_unsafe_delete) scope->unsafe_delete_authorizer = config.authorizer;
  scope->unsafe_delete = scope->definition->traits.unsafe_delete;
  scope->delete_collection_workers = config.delete_collection_workers;
  scope->watch_list = config.watch_list;
  scope->sharding = config.sharding;
  scope->watch_timeout_min = config.min_request_timeout;
  scope->subresource = subresource;
  if (config.equivalents) config.equivalents->Join(scope);
  return scope;
}

std::shared_ptr<Scope> NewSubresourceScope(const ChainConfig& config, const schema::Resource& resource,
                                           const schema::Subresource& subresource,
                                           std::shared_ptr<registry::Store> store) {
  auto scope = NewScope(config, resource, std::move(store), subresource.name);
  scope->kind = {std::string(subresource.kind_group), std::string(subresource.kind_version),
                 std::string(subresource.kind)};
  scope->type = subresource.type;
  scope->conversion = {};
  scope->own_kind = true;
  scope->go_package =
      subresource.kind_group.empty() ? "core" : subresource.kind_group.substr(0, subresource.kind_group.find('.'));
  return scope;
}

void TrackSubresource(Scope& scope) {
  patch::FieldManager::Options options;
  options.type = scope.type;
  options.kind = scope.kind;
  options.subresource = scope.subresource;
  scope.field_manager = std::make_shared<patch::FieldManager>(std::move(options));
}

namespace {

// The object in another version of its kind, through the hub; nothing for versions that the kind does not have.
std::optional<Value> ConvertThroughHub(const registry::ResourceDefinition& definition, base::Arena& arena,
                                       const Value& object, std::string_view api_version) {
  const auto find = [&](std::string_view wanted) {
    return std::ranges::find_if(definition.versions, [&](const registry::ServedVersion& version) {
      return version.group_version.ToString() == wanted;
    });
  };
  const auto from = find(object["apiVersion"].as_string());
  const auto to = find(api_version);
  if (from == definition.versions.end() || to == definition.versions.end()) return std::nullopt;
  const Value hub = from->conversion != nullptr ? from->conversion->to_hub(arena, object) : object;
  Value converted = to->conversion != nullptr ? to->conversion->from_hub(arena, hub) : hub.Clone(arena);
  converted.Set(arena, "apiVersion", Value::String(arena, api_version));
  return converted;
}

// How writes through this scope are tracked. Called once its endpoint is known.
void SetFieldManager(Scope& scope) {
  patch::FieldManager::Options options;
  options.type = scope.type;
  options.kind = scope.kind;
  options.subresource = scope.subresource;
  const registry::UpdateRules& rules = scope.rest->rest_strategy().RulesOf(scope.endpoint);
  options.reset_fields.assign(rules.reset_fields.begin(), rules.reset_fields.end());
  const registry::ResourceDefinitionPtr definition = scope.definition;
  if (std::ranges::any_of(definition->versions, &registry::ServedVersion::conversion)) {
    options.convert = [definition](base::Arena& arena, const Value& object, std::string_view api_version) {
      return ConvertThroughHub(*definition, arena, object, api_version);
    };
  }
  scope.field_manager = std::make_shared<patch::FieldManager>(std::move(options));
}

// The rules of a subresource that writes the same object; null when the kind has none of that name.
const registry::UpdateRules* RulesOf(const registry::Strategy& strategy, std::string_view subresource) {
  const auto found = std::ranges::find(strategy.subresources, subresource, &registry::Subresource::name);
  return found == strategy.subresources.end() ? nullptr : &found->rules;
}

void InstallSubresources(const ChainConfig& config, const schema::Resource& resource,
                         const std::shared_ptr<registry::Store>& store, APIGroupVersion& version) {
  for (const schema::Subresource& sub : resource.subresources) {
    auto scope = NewScope(config, resource, store, sub.name);
    if (sub.name == "status") {
      scope->endpoint.part = registry::Endpoint::Part::kStatus;
    } else if (const auto* rules = RulesOf(store->strategy(), sub.name)) {
      scope->endpoint = {registry::Endpoint::Part::kOther, rules};
    } else {
      // Served by special handlers, or not built.
      if (InstallScale(config, resource, sub, store, version) ||
          InstallTokenRequest(config, resource, sub, store, version) ||
          InstallEviction(config, resource, sub, store, version) ||
          InstallConnect(config, resource, sub, store, version)) {
        continue;
      }
      InstallPodSubresource(config, resource, sub, store, version);
      continue;
    }
    SetFieldManager(*scope);
    version.Add(resource.plural, sub.name, endpoints::StoredSubresourceRoute(scope, sub.verbs));
  }
}

std::shared_ptr<APIGroupVersion> InstallVersion(const ChainConfig& config, const schema::Package& package) {
  auto version = std::make_shared<APIGroupVersion>(std::string(package.group), std::string(package.version));
  for (const schema::Resource& resource : package.resources) {
    if (!config.enablement.ResourceEnabled(package.group, package.version, resource.plural)) continue;
    // Resources without the verb get are not stored: they have special handlers.
    if (std::ranges::find(resource.verbs, "get") == resource.verbs.end()) {
      if (!InstallReview(config, resource, *version)) InstallBindings(config, resource, *version);
      continue;
    }
    if (InstallComponentStatuses(config, resource, *version)) continue;
    auto store = config.storage->Get(resource.group, resource.plural);
    if (!store) continue;
    if (store->options().resource.group != resource.group) {
      // The same objects under another group's name: what is said about them is said in that name.
      registry::Store::Options renamed = store->options();
      renamed.resource.group = resource.group;
      store = std::make_shared<registry::Store>(std::move(renamed));
    }
    auto scope = NewScope(config, resource, store);
    SetFieldManager(*scope);
    version->Add(resource.plural, "", endpoints::StoredResourceRoute(scope, resource.verbs));
    InstallSubresources(config, resource, store, *version);
  }
  return version;
}

void InstallGroups(const ChainConfig& config, server::GenericAPIServer& server,
                   const std::function<bool(std::string_view)>& belongs) {
  const auto packages = config.storage->catalog().packages();
  for (const std::string_view group : registry::GroupsByPriority()) {
    if (!belongs(group)) continue;
    server::APIGroupInfo info{.group = std::string(group)};
    for (const schema::Package* package : packages) {
      if (package->group != group || !config.enablement.VersionEnabled(package->group, package->version)) continue;
      auto version = InstallVersion(config, *package);
      if (!version->empty()) info.versions.push_back(std::move(version));
    }
    if (!info.versions.empty()) server.InstallAPIGroup(std::move(info));
  }
}

}  // namespace

void EquivalentResourceRegistry::Join(const std::shared_ptr<Scope>& scope) {
  auto& group = groups_[{scope->definition.get(), scope->subresource}];
  if (!group) group = std::make_shared<endpoints::EquivalentScopes>();
  group->Add(scope);
  scope->equivalents = group;
}

std::shared_ptr<server::GenericAPIServer> CreateServerChain(const ChainConfig& given) {
  ChainConfig config = given;
  config.equivalents = std::make_shared<EquivalentResourceRegistry>();
  auto apiextensions = std::make_shared<server::GenericAPIServer>("apiextensions-apiserver");
  auto kube = std::make_shared<server::GenericAPIServer>("kube-apiserver", apiextensions);
  auto aggregator = std::make_shared<server::GenericAPIServer>("kube-aggregator", kube);
  InstallGroups(config, *apiextensions, [](std::string_view group) { return group == "apiextensions.k8s.io"; });
  InstallGroups(config, *aggregator, [](std::string_view group) { return group == "apiregistration.k8s.io"; });
  InstallGroups(config, *kube, [](std::string_view group) {
    return group != "apiextensions.k8s.io" && group != "apiregistration.k8s.io";
  });
  if (config.custom_resources) apiextensions->SetDynamicHandler(config.custom_resources);
  InstallOpenAPI(*aggregator, config.openapi_source ? config.openapi_source : config.custom_discovery);
  return aggregator;
}

}  // namespace keelson::controlplane
