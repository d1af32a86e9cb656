#include "apiextensions/definition.h"

#include <algorithm>

#include "apidocs/discovery_documents.h"

namespace keelson::apiextensions {
namespace {

std::vector<std::string> Texts(const Value& list) {
  std::vector<std::string> texts;
  for (const Value& item : list.items()) texts.emplace_back(item.as_string());
  return texts;
}

Names ReadNames(const Value& names) {
  return {.plural = std::string(names["plural"].as_string()),
          .singular = std::string(names["singular"].as_string()),
          .kind = std::string(names["kind"].as_string()),
          .list_kind = std::string(names["listKind"].as_string()),
          .short_names = Texts(names["shortNames"]),
          .categories = Texts(names["categories"])};
}

std::string WarningOf(const Value& definition, const DefinitionVersion& version, const std::string& group,
                      const std::string& kind) {
  for (const Value& one : definition["spec"]["versions"].items()) {
    if (one["name"].as_string() == version.name && one["deprecationWarning"].is_string())
      return std::string(one["deprecationWarning"].as_string());
  }
  std::string text = group + "/" + version.name + " " + kind + " is deprecated";
  std::string_view best;
  for (const Value& one : definition["spec"]["versions"].items()) {
    const std::string_view name = one["name"].as_string();
    if (!one["served"].as_bool() || one["deprecated"].as_bool() || !apidocs::ComesBeforeAsVersion(name, version.name))
      continue;
    if (best.empty() || apidocs::ComesBeforeAsVersion(name, best)) best = name;
  }
  if (!best.empty()) text += "; use " + group + "/" + std::string(best) + " " + kind;
  return text;
}

}  // namespace

const DefinitionVersion* Definition::FindVersion(std::string_view version) const {
  const auto found = std::ranges::find(versions, version, &DefinitionVersion::name);
  return found == versions.end() ? nullptr : &*found;
}

const DefinitionVersion& Definition::StorageVersion() const {
  const auto found = std::ranges::find_if(versions, &DefinitionVersion::storage);
  return found == versions.end() ? versions.front() : *found;
}

Value FindCondition(const Value& definition, std::string_view type) {
  for (const Value& condition : definition["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return {};
}

bool ConditionIs(const Value& definition, std::string_view type, std::string_view status) {
  return FindCondition(definition, type)["status"].as_string() == status;
}

DefinitionPtr ReadDefinition(const Value& value, storage::ObjectPtr object) {
  auto definition = std::make_shared<Definition>();
  const Value spec = value["spec"], metadata = value["metadata"];
  definition->name = metadata["name"].as_string();
  definition->uid = metadata["uid"].as_string();
  definition->generation = metadata["generation"].as_int();
  definition->deleting = metadata["deletionTimestamp"].is_string();
  definition->group = spec["group"].as_string();
  definition->namespaced = spec["scope"].as_string() == "Namespaced";
  definition->preserve_unknown_fields = spec["preserveUnknownFields"].as_bool();
  definition->webhook_conversion = spec["conversion"]["strategy"].as_string() == "Webhook";
  definition->names_accepted = ConditionIs(value, "NamesAccepted", "True");
  definition->established = ConditionIs(value, "Established", "True");
  definition->terminating = ConditionIs(value, "Terminating", "True");
  definition->spec_names = ReadNames(spec["names"]);
  definition->accepted_names = ReadNames(value["status"]["acceptedNames"]);
  for (const Value& version : spec["versions"].items()) {
    DefinitionVersion& made = definition->versions.emplace_back();
    made.name = version["name"].as_string();
    made.served = version["served"].as_bool();
    made.storage = version["storage"].as_bool();
    made.deprecated = version["deprecated"].as_bool();
    made.status = version["subresources"]["status"].is_map();
    made.scale = version["subresources"]["scale"].is_map();
    if (made.deprecated)
      made.deprecation_warning = WarningOf(value, made, definition->group, definition->spec_names.kind);
  }
  definition->object = std::move(object);
  return definition;
}

}  // namespace keelson::apiextensions
