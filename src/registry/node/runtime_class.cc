#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "registry/core/node_labels.h"
#include "registry/core/resources.h"
#include "registry/core/scheduling.h"
#include "registry/node/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Required;

constexpr GoField kToleration[] = {
    {"key", "Key"},
    {"operator", "Operator"},
    {"value", "Value"},
    {"effect", "Effect"},
    {"tolerationSeconds", "TolerationSeconds", GoField::Zero::kNull},
};

void ValidateScheduling(const Value& scheduling, FieldErrors& errors) {
  const FieldPath path("scheduling");
  if (const Value selector = scheduling["nodeSelector"]; !selector.is_null()) {
    validation::ValidateLabels(selector, path.Child("nodeSelector"), errors);
  }
  const FieldPath tolerations_path = path.Child("tolerations");
  const Value tolerations = scheduling["tolerations"];
  core::ValidateTolerations(tolerations, /*allow_comparison=*/false, tolerations_path, errors);
  std::set<std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>> seen;
  std::int64_t index = 0;
  for (const Value& toleration : tolerations.items()) {
    const FieldPath at = tolerations_path.Index(index++);
    const bool fresh = seen.emplace(toleration["key"].as_string(), toleration["operator"].as_string(),
                                    toleration["value"].as_string(), toleration["effect"].as_string())
                           .second;
    if (!fresh) errors.push_back(DuplicateRendered(at, RenderGoStruct(toleration, kToleration)));
  }
}

void ValidateBody(const Value& object, FieldErrors& errors) {
  const std::string_view handler = object["handler"].as_string();
  if (handler.empty()) {
    errors.push_back(Required(FieldPath("handler")));
  } else {
    AddInvalid(FieldPath("handler"), handler, validation::NameIsDNSLabel(handler, false), errors);
  }
  if (const Value overhead = object["overhead"]; !overhead.is_null()) {
    core::ValidateOverhead(overhead["podFixed"], {}, FieldPath("overhead"), errors);
  }
  if (const Value scheduling = object["scheduling"]; !scheduling.is_null()) ValidateScheduling(scheduling, errors);
}

void ValidateRuntimeClass(const Call&, Value object, Value, FieldErrors& errors) { ValidateBody(object, errors); }

void ValidateRuntimeClassUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors, false);
  ValidateBody(object, errors);
  ValidateMetaUpdate(object, old, errors, false);
  ImmutableText(object["handler"], old["handler"], FieldPath("handler"), errors);
}

void Warnings(const Call& call, Value object, Value) {
  for (const auto& member : object["scheduling"]["nodeSelector"].members()) {
    if (const std::string_view message = core::DeprecatedNodeLabel(member.key); !message.empty()) {
      call.warnings.push_back("scheduling.nodeSelector: " + std::string(message));
    }
  }
}

void RuntimeClassRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["handler"].as_string());
  cells.Append(arena, Age(arena, clock, object));
}

constexpr Strategy kStrategies[] = {{
    .group = "node.k8s.io",
    .kind = "RuntimeClass",
    .allow_create_on_update = true,
    .allow_unconditional_update = false,
    .core_finalizers = false,
    .validate = ValidateRuntimeClass,
    .warnings_on_create = Warnings,
    .update = {.validate_update = ValidateRuntimeClassUpdate, .warnings_on_update = Warnings},
    .table_row = RuntimeClassRow,
}};

}  // namespace

std::span<const Strategy> NodeStrategies() { return kStrategies; }

}  // namespace keelson::registry
