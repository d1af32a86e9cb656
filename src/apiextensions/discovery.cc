#include "apiextensions/discovery.h"

#include <algorithm>

#include "apidocs/discovery_documents.h"
#include "apidocs/openapi_documents.h"
#include "base/hash.h"
#include "codec/json.h"
#include "endpoints/assembled_document.h"
#include "schema/schema.h"
#include "schema/structural/openapi.h"
#include "schema/structural/structural.h"
#include "schema/types.h"
#include "storage/packed.h"

namespace keelson::apiextensions {
namespace {

using apidocs::DiscoveryFragment;
namespace structural = schema::structural;

constexpr std::string_view kVerbs[] = {"delete", "deletecollection", "get",    "list",
                                       "patch",  "create",           "update", "watch"};
constexpr std::string_view kTerminatingVerbs[] = {"delete", "deletecollection", "get", "list", "watch"};
constexpr std::string_view kSubresourceVerbs[] = {"get", "patch", "update"};

Value TextList(base::Arena& arena, std::span<const std::string_view> texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string_view text : texts) list.Append(arena, text);
  return list;
}
Value TextList(base::Arena& arena, const std::vector<std::string>& texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string& text : texts) list.Append(arena, std::string_view(text));
  return list;
}
Value VerbsOf(base::Arena& arena, const Definition& definition) {
  return definition.terminating ? TextList(arena, kTerminatingVerbs) : TextList(arena, kVerbs);
}

// The versions that some definition serves, best first.
std::vector<std::string> VersionsOf(const std::vector<DefinitionPtr>& definitions) {
  std::set<std::string> names;
  for (const DefinitionPtr& definition : definitions) {
    for (const DefinitionVersion& version : definition->versions) {
      if (version.served) names.insert(version.name);
    }
  }
  std::vector<std::string> sorted(names.begin(), names.end());
  std::ranges::sort(sorted,
                    [](const std::string& a, const std::string& b) { return apidocs::ComesBeforeAsVersion(a, b); });
  return sorted;
}

Value GroupVersionValue(base::Arena& arena, std::string_view group, std::string_view version) {
  Value value = Value::Map(arena);
  value.Set(arena, "groupVersion", Value::String(arena, std::string(group) + "/" + std::string(version)));
  value.Set(arena, "version", version);
  return value;
}

Value APIGroupValue(base::Arena& arena, std::string_view group, const std::vector<std::string>& versions) {
  Value value = Value::Map(arena);
  value.Set(arena, "name", group);
  Value list = value.EnsureList(arena, "versions");
  for (const std::string& version : versions) list.Append(arena, GroupVersionValue(arena, group, version));
  value.Set(arena, "preferredVersion", GroupVersionValue(arena, group, versions.front()));
  return value;
}

Value SubresourceValue(base::Arena& arena, const Definition& definition, std::string_view name) {
  Value value = Value::Map(arena);
  value.Set(arena, "name", Value::String(arena, definition.accepted_names.plural + "/" + std::string(name)));
  value.Set(arena, "namespaced", definition.namespaced);
  if (name == "scale") {
    value.Set(arena, "group", "autoscaling");
    value.Set(arena, "version", "v1");
  }
  value.Set(arena, "kind", name == "scale" ? std::string_view("Scale") : definition.accepted_names.kind);
  value.Set(arena, "verbs", TextList(arena, kSubresourceVerbs));
  return value;
}

void AppendResources(base::Arena& arena, const Definition& definition, const DefinitionVersion& version, Value list) {
  const Names& names = definition.accepted_names;
  Value value = Value::Map(arena);
  value.Set(arena, "name", std::string_view(names.plural));
  value.Set(arena, "singularName", std::string_view(names.singular));
  value.Set(arena, "namespaced", definition.namespaced);
  value.Set(arena, "kind", std::string_view(names.kind));
  value.Set(arena, "verbs", VerbsOf(arena, definition));
  if (!names.short_names.empty()) value.Set(arena, "shortNames", TextList(arena, names.short_names));
  if (!names.categories.empty()) value.Set(arena, "categories", TextList(arena, names.categories));
  if (const DefinitionVersion& stored = definition.StorageVersion(); stored.served) {
    value.Set(arena, "storageVersionHash",
              Value::String(arena, apidocs::StorageVersionHash(definition.group, stored.name, names.kind)));
  }
  list.Append(arena, value);
  if (version.status) list.Append(arena, SubresourceValue(arena, definition, "status"));
  if (version.scale) list.Append(arena, SubresourceValue(arena, definition, "scale"));
}

Value ResponseKind(base::Arena& arena, std::string_view group, std::string_view version, std::string_view kind) {
  Value value = Value::Map(arena);
  value.Set(arena, "group", group);
  value.Set(arena, "version", version);
  value.Set(arena, "kind", kind);
  return value;
}

Value AggregatedResource(base::Arena& arena, const Definition& definition, const DefinitionVersion& version) {
  const Names& names = definition.accepted_names;
  Value value = Value::Map(arena);
  value.Set(arena, "resource", std::string_view(names.plural));
  value.Set(arena, "responseKind", ResponseKind(arena, definition.group, version.name, names.kind));
  value.Set(arena, "scope", definition.namespaced ? "Namespaced" : "Cluster");
  value.Set(arena, "singularResource", std::string_view(names.singular));
  value.Set(arena, "verbs", VerbsOf(arena, definition));
  if (!names.short_names.empty()) value.Set(arena, "shortNames", TextList(arena, names.short_names));
  if (!names.categories.empty()) value.Set(arena, "categories", TextList(arena, names.categories));
  const auto add = [&](std::string_view name, Value kind) {
    Value sub = Value::Map(arena);
    sub.Set(arena, "subresource", name);
    sub.Set(arena, "responseKind", kind);
    sub.Set(arena, "verbs", TextList(arena, kSubresourceVerbs));
    value.EnsureList(arena, "subresources").Append(arena, sub);
  };
  if (version.status) add("status", ResponseKind(arena, definition.group, version.name, names.kind));
  if (version.scale) add("scale", ResponseKind(arena, "autoscaling", "v1", "Scale"));
  return value;
}

Value AggregatedGroup(base::Arena& arena, std::string_view group, const std::vector<std::string>& versions,
                      std::vector<DefinitionPtr> definitions) {
  std::ranges::sort(definitions, {},
                    [](const DefinitionPtr& one) -> std::string_view { return one->accepted_names.plural; });
  Value value = Value::Map(arena);
  value.EnsureMap(arena, "metadata").Set(arena, "name", group);
  Value list = value.EnsureList(arena, "versions");
  for (const std::string& name : versions) {
    Value version = Value::Map(arena);
    version.Set(arena, "version", std::string_view(name));
    Value resources = version.EnsureList(arena, "resources");
    for (const DefinitionPtr& definition : definitions) {
      const DefinitionVersion* const served = definition->FindVersion(name);
      if (served != nullptr && served->served) resources.Append(arena, AggregatedResource(arena, *definition, *served));
    }
    version.Set(arena, "freshness", "Current");
    list.Append(arena, version);
  }
  return value;
}

apidocs::DiscoveryFragmentPtr MakeFragment(std::string_view group, const std::vector<DefinitionPtr>& definitions) {
  const std::vector<std::string> versions = VersionsOf(definitions);
  if (versions.empty()) return nullptr;
  base::Arena arena;
  auto fragment = std::make_shared<DiscoveryFragment>();
  fragment->group = group;
  codec::EncodeJSON(APIGroupValue(arena, group, versions), schema::types::meta_v1::kAPIGroup, fragment->api_group);
  codec::EncodeJSON(AggregatedGroup(arena, group, versions, definitions),
                    schema::types::apidiscovery_v2::kAPIGroupDiscovery, fragment->aggregated);
  for (const std::string& version : versions) {
    std::string made_of;
    for (const DefinitionPtr& definition : definitions) {
      const DefinitionVersion* const served = definition->FindVersion(version);
      if (served == nullptr || !served->served) continue;
      made_of += definition->uid + "/" + std::to_string(definition->generation) + "/" +
                 definition->accepted_names.kind + "/" + definition->accepted_names.list_kind + ";";
    }
    fragment->versions.push_back({version, apidocs::ETagOf(made_of)});
  }
  return fragment;
}

structural::PublishedVersion Published(const Definition& definition, const DefinitionVersion& version,
                                       std::string_view schema, const Value& value) {
  structural::PublishedVersion published;
  published.group = definition.group;
  published.version = version.name;
  published.kind = definition.accepted_names.kind;
  published.list_kind = definition.accepted_names.list_kind;
  published.plural = definition.accepted_names.plural;
  published.namespaced = definition.namespaced;
  published.status = version.status;
  published.scale = version.scale;
  published.schema = schema;
  published.preserve_unknown_fields = definition.preserve_unknown_fields;
  for (const Value& one : value["spec"]["versions"].items()) {
    if (one["name"].as_string() != version.name) continue;
    for (const Value& field : one["selectableFields"].items())
      published.selectable_fields.push_back(field["jsonPath"].as_string());
  }
  return published;
}

}  // namespace

void DiscoveryDocuments::Update(DefinitionPtr definition) {
  std::lock_guard lock(mutex_);
  Group& group = groups_[definition->group];
  DefinitionPtr& known = group[definition->name];
  const bool shown = known && known->established;
  const bool same = known && known->ServesAs(*definition) && known->established == definition->established &&
                    known->terminating == definition->terminating;
  if (!same && (shown || definition->established)) changed_.insert(definition->group);
  known = std::move(definition);
}

void DiscoveryDocuments::Remove(const Definition& definition) {
  std::lock_guard lock(mutex_);
  const auto group = groups_.find(definition.group);
  if (group == groups_.end()) return;
  group->second.erase(definition.name);
  const bool gone = group->second.empty();
  if (gone) groups_.erase(group);
  // Names of groups that came and went between two reads are not kept: nobody may ever read.
  if (gone && !IsShown(definition.group)) {
    changed_.erase(definition.group);
  } else {
    changed_.insert(definition.group);
  }
}

bool DiscoveryDocuments::IsShown(std::string_view group) const {
  const auto group_of = [](const auto& fragment) -> std::string_view { return fragment->group; };
  return std::ranges::binary_search(fragments_->groups, group, {}, group_of);
}

std::vector<DefinitionPtr> DiscoveryDocuments::Established(std::string_view group) const {
  std::vector<DefinitionPtr> definitions;
  const auto found = groups_.find(group);
  if (found == groups_.end()) return definitions;
  for (const auto& [name, definition] : found->second) {
    if (definition->established) definitions.push_back(definition);
  }
  return definitions;
}

std::shared_ptr<const apidocs::DiscoveryFragments> DiscoveryDocuments::Discovery() const {
  std::lock_guard lock(mutex_);
  if (changed_.empty()) return fragments_;
  auto next = std::make_shared<apidocs::DiscoveryFragments>();
  next->generation = fragments_->generation + 1;
  // Both lists are sorted by group.
  auto old = fragments_->groups.begin();
  const auto keep_until = [&](const std::string* group) {
    while (old != fragments_->groups.end() && (group == nullptr || (*old)->group < *group))
      next->groups.push_back(*old++);
  };
  for (const std::string& group : changed_) {
    keep_until(&group);
    if (old != fragments_->groups.end() && (*old)->group == group) ++old;
    if (auto fragment = MakeFragment(group, Established(group))) next->groups.push_back(std::move(fragment));
  }
  keep_until(nullptr);
  changed_.clear();
  fragments_ = std::move(next);
  return fragments_;
}

std::optional<http::Response> DiscoveryDocuments::Respond(const endpoints::Exchange& exchange, std::string_view group,
                                                          std::string_view version) const {
  std::vector<DefinitionPtr> definitions;
  {
    std::lock_guard lock(mutex_);
    definitions = Established(group);
  }
  const std::vector<std::string> versions = VersionsOf(definitions);
  base::Arena arena;
  std::string json;
  if (version.empty()) {
    if (versions.empty()) return std::nullopt;
    Value document = Value::Map(arena);
    document.Set(arena, "kind", "APIGroup");
    document.Set(arena, "apiVersion", "v1");
    for (const auto& member : APIGroupValue(arena, group, versions).members())
      document.Set(arena, member.key, member.value);
    const schema::Struct& type = schema::types::meta_v1::kAPIGroup;
    codec::EncodeJSON(document, type, json);
    return endpoints::AssembledDocument(std::move(json), type, "v1", "APIGroup").Respond(exchange);
  }
  if (std::ranges::find(versions, version) == versions.end()) return std::nullopt;
  Value document = Value::Map(arena);
  document.Set(arena, "kind", "APIResourceList");
  document.Set(arena, "apiVersion", "v1");
  document.Set(arena, "groupVersion", Value::String(arena, std::string(group) + "/" + std::string(version)));
  Value resources = document.EnsureList(arena, "resources");
  for (const DefinitionPtr& definition : definitions) {
    const DefinitionVersion* const served = definition->FindVersion(version);
    if (served != nullptr && served->served) AppendResources(arena, *definition, *served, resources);
  }
  const schema::Struct& type = schema::types::meta_v1::kAPIResourceList;
  codec::EncodeJSON(document, type, json);
  return endpoints::AssembledDocument(std::move(json), type, "v1", "APIResourceList").Respond(exchange);
}

static apidocs::OpenAPICustomResource PathsOf(const structural::PublishedVersion& published) {
  return {.group = published.group,
          .version = published.version,
          .kind = published.kind,
          .plural = published.plural,
          .model = structural::ModelName(published),
          .list_model = structural::ListModelName(published),
          .namespaced = published.namespaced,
          .status = published.status,
          .scale = published.scale};
}

std::string DiscoveryDocuments::OpenAPIv3(std::string group, std::string version) const {
  std::vector<DefinitionPtr> definitions;
  {
    std::lock_guard lock(mutex_);
    definitions = Established(group);
  }
  std::string models;
  std::vector<apidocs::OpenAPICustomResource> resources;
  for (const DefinitionPtr& definition : definitions) {
    const DefinitionVersion* const served = definition->FindVersion(version);
    if (served == nullptr || !served->served) continue;
    base::Arena arena;
    const auto value = definitions_->Decode(arena, definition->object);
    if (!value.ok()) continue;
    const base::SharedBytes unpacked = storage::Unpacked(definition->object->stored());
    const std::string_view stored = unpacked.view();
    const auto published =
        Published(*definition, *served, structural::FindVersionSchema(stored, version).value_or(""), *value);
    std::string more;
    if (!structural::AppendModels(more, published, structural::OpenAPIVersion::kV3)) continue;
    models += (models.empty() ? "" : ",") + more;
    resources.push_back(PathsOf(published));
  }
  return models.empty() ? std::string() : apidocs::CustomResourceDocumentV3(resources, models);
}

namespace {

using Keys = base::StringViewSet;

// Keys of a JSON document that may be paths or names of models. One pass: the document has megabytes, definitions are
// many.
Keys PathsAndModels(std::string_view json) {
  Keys keys;
  for (std::size_t begin = json.find('"'); begin != std::string_view::npos; begin = json.find('"', begin)) {
    std::size_t end = begin + 1;
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    if (end >= json.size()) break;
    const std::string_view key = json.substr(begin + 1, end - begin - 1);
    const bool named = key.find('.') != std::string_view::npos || key.starts_with('/');
    if (named && json.substr(end + 1).starts_with(':')) keys.insert(key);
    begin = end + 1;
  }
  return keys;
}

// The name of the first model: models is `"NAME":{...},...`.
std::string_view FirstModel(std::string_view models) {
  models.remove_prefix(1);
  return models.substr(0, models.find('"'));
}

}  // namespace

// Versions whose path or model a built-in kind has are left out: duplicate names make a document invalid.
void DiscoveryDocuments::AppendOpenAPIv2To(std::string_view base, std::string& paths, std::string& definitions) const {
  std::vector<DefinitionPtr> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [group, members] : groups_) {
      for (const DefinitionPtr& definition : Established(group)) all.push_back(definition);
    }
  }
  const Keys taken = all.empty() ? Keys() : PathsAndModels(base);
  for (const DefinitionPtr& definition : all) {
    base::Arena arena;
    const auto value = definitions_->Decode(arena, definition->object);
    if (!value.ok()) continue;
    const base::SharedBytes unpacked = storage::Unpacked(definition->object->stored());
    const std::string_view stored = unpacked.view();
    for (const DefinitionVersion& version : definition->versions) {
      if (!version.served) continue;
      const auto published =
          Published(*definition, version, structural::FindVersionSchema(stored, version.name).value_or(""), *value);
      std::string models;
      if (!structural::AppendModels(models, published, structural::OpenAPIVersion::kV2)) continue;
      const std::string path =
          "/apis/" + definition->group + "/" + version.name + "/" + definition->accepted_names.plural;
      if (taken.contains(path) || taken.contains(FirstModel(models))) continue;
      definitions += "," + models;
      apidocs::AppendCustomResourcePathsV2(paths, PathsOf(published));
    }
  }
}

}  // namespace keelson::apiextensions
