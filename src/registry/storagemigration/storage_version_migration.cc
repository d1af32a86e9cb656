#include <algorithm>
#include <string>

#include "base/strings.h"
#include "object/json_text.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/storagemigration/strategies.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Invalid;
using validation::Required;

void ValidateResource(const Value& resource, FieldErrors& errors) {
  const FieldPath spec("spec"), path = spec.Child("resource");
  const std::string_view name = resource["resource"].as_string(), group = resource["group"].as_string();
  if (name.empty()) {
    errors.push_back(Required(path.Child("resource"), "resource is required to be set"));
  } else if (const auto why = validation::IsDNS1035Label(name); !why.empty()) {
    errors.push_back(Invalid(path.Child("resource"), name, base::Join(why, ",")));
  }
  if (group.empty()) return;
  if (const auto why = validation::IsDNS1123Subdomain(group); !why.empty())
    errors.push_back(Invalid(path.Child("group"), group, base::Join(why, ",")));
}

void ValidateMigration(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateResource(object["spec"]["resource"], errors);
}

void ValidateMigrationUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateResource(object["spec"]["resource"], errors);
  ValidateMetaUpdate(object, old, errors);
  if (SemanticEqual(object["spec"], old["spec"])) return;
  // The internal spec has no JSON tags: its member is Resource, the members of a GroupResource are as on the wire.
  std::string rendered = R"({"Resource":{"group":)";
  object::AppendJSONString(rendered, object["spec"]["resource"]["group"].as_string());
  rendered += R"(,"resource":)";
  object::AppendJSONString(rendered, object["spec"]["resource"]["resource"].as_string());
  errors.push_back(InvalidRendered(FieldPath("spec"), rendered + "}}", "field is immutable"));
}

void PrepareStatus(const Call& call, Value object, Value old) { ResetMetaForStatus(call.arena, object, old); }

bool Holds(const Value& object, std::string_view type) {
  const Value conditions = object["status"]["conditions"];
  return std::ranges::any_of(conditions.items(), [type](const Value& condition) {
    return condition["type"].as_string() == type && condition["status"].as_string() == "True";
  });
}

bool IsWellFormed(std::string_view resource_version) {
  return !resource_version.starts_with('0') &&
         std::ranges::all_of(resource_version, [](char c) { return c >= '0' && c <= '9'; });
}

void ValidateMigrationStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  const FieldPath status("status");
  const FieldPath version_path = status.Child("resourceVersion"), conditions_path = status.Child("conditions");
  const std::string_view version = object["status"]["resourceVersion"].as_string();
  const std::string_view old_version = old["status"]["resourceVersion"].as_string();
  if (!IsWellFormed(version)) {
    errors.push_back(Invalid(version_path, version, "resource version is not well formed: " + std::string(version)));
  }
  const Value conditions = object["status"]["conditions"];
  validation::ValidateConditions(conditions, conditions_path, errors);
  if (!old_version.empty() && old_version != version)
    errors.push_back(Invalid(version_path, version, "field is immutable"));
  const bool succeeded = Holds(object, "Succeeded"), failed = Holds(object, "Failed");
  if (succeeded && failed) {
    errors.push_back(
        Invalid(conditions_path, conditions, "Both success and failed conditions cannot be true at the same time"));
  }
  if (Holds(old, "Succeeded") && !succeeded) {
    errors.push_back(Invalid(conditions_path, conditions, "Success condition cannot be set to false once it is true"));
  }
  if (Holds(old, "Failed") && !failed)
    errors.push_back(Invalid(conditions_path, conditions, "Failed condition cannot be set to false once it is true"));
}

void MigrationRow(base::Arena& arena, const base::Clock&, Value object, Value cells) {
  const Value resource = object["spec"]["resource"];
  std::string text(resource["resource"].as_string());
  if (const std::string_view group = resource["group"].as_string(); !group.empty()) text += "." + std::string(group);
  std::string_view state = "Unknown";
  for (const Value& condition : object["status"]["conditions"].items()) {
    const std::string_view type = condition["type"].as_string();
    const bool tells = type == "Running" || type == "Failed" || type == "Succeeded";
    if (tells && condition["status"].as_string() == "True") state = type;
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Value::String(arena, text));
  cells.Append(arena, state);
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

constexpr Strategy kStrategies[] = {{
    .group = "storagemigration.k8s.io",
    .kind = "StorageVersionMigration",
    .allow_unconditional_update = false,
    .has_status = true,
    .validate = ValidateMigration,
    .update = {.validate_update = ValidateMigrationUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareStatus,
               .validate_update = ValidateMigrationStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = MigrationRow,
}};

}  // namespace

std::span<const Strategy> StoragemigrationStrategies() { return kStrategies; }

}  // namespace keelson::registry
