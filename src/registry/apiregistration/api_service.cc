#include <chrono>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "object/time.h"
#include "registry/apiregistration/bootstrap.h"
#include "registry/apiregistration/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Invalid;
using validation::Required;

constexpr std::int64_t kGroupPriorityMax = 20'000;
constexpr std::int64_t kVersionPriorityMax = 1000;

void SetDefaults(base::Arena& arena, Value object) {
  if (Value service = object["spec"]["service"]; service.is_map()) Default(arena, service, "port", 443);
}

// Local APIServices are available from the start.
void PrepareForCreate(const Call& call, Value object, Value) {
  base::Arena& arena = call.arena;
  Value status = Value::Map(arena, 1);
  object.Set(arena, "status", status);
  if (!object["spec"]["service"].is_null()) return;
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(call.clock.Now().time_since_epoch()).count();
  Value condition = Value::Map(arena, 5);
  condition.Set(arena, "type", "Available");
  condition.Set(arena, "status", "True");
  condition.Set(arena, "lastTransitionTime", Value::String(arena, object::FormatTime(now)));
  condition.Set(arena, "reason", "Local");
  condition.Set(arena, "message", "Local APIServices are always available");
  status.EnsureList(arena, "conditions").Append(arena, condition);
}

void PrepareForStatusUpdate(const Call& call, Value object, Value old) {
  Value metadata = object.EnsureMap(call.arena, "metadata");
  for (const std::string_view key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    CopyMember(call.arena, metadata, old["metadata"], key);
  }
}

// The name is version and group; the rule needs the spec, so it is here and not in a name rule.
void ValidateNames(const Value& object, FieldErrors& errors) {
  const Value spec = object["spec"];
  const std::string wanted = std::string(spec["version"].as_string()) + "." + std::string(spec["group"].as_string());
  const FieldPath metadata("metadata");
  for (const std::string_view field : {"generateName", "name"}) {
    const std::string_view name = object["metadata"][field].as_string();
    if (name.empty() || name == wanted || !validation::IsValidPathSegmentName(name).empty()) continue;
    errors.push_back(
        Invalid(metadata.Child(field), name, "must be `spec.version+\".\"+spec.group`: " + base::GoQuote(wanted)));
  }
  ValidateMeta(object, false, validation::NameIsPathSegment, errors, false);
}

void ValidateBody(const Value& object, FieldErrors& errors) {
  ValidateNames(object, errors);
  const FieldPath path("spec");
  const Value spec = object["spec"];
  const std::string_view group = spec["group"].as_string();
  const std::string_view version = spec["version"].as_string();
  if (group.empty() && version != "v1") {
    errors.push_back(Required(path.Child("group"), "only v1 may have an empty group and it better be legacy kube"));
  }
  if (!group.empty()) AddInvalid(path.Child("group"), group, validation::IsDNS1123Subdomain(group), errors);
  AddInvalid(path.Child("version"), version, validation::IsDNS1035Label(version), errors);
  const std::int64_t group_priority = spec["groupPriorityMinimum"].as_int();
  if (group_priority <= 0 || group_priority > kGroupPriorityMax) {
    errors.push_back(
        Invalid(path.Child("groupPriorityMinimum"), Value(group_priority), "must be positive and less than 20000"));
  }
  const std::int64_t version_priority = spec["versionPriority"].as_int();
  if (version_priority <= 0 || version_priority > kVersionPriorityMax) {
    errors.push_back(
        Invalid(path.Child("versionPriority"), Value(version_priority), "must be positive and less than 1000"));
  }
  const std::string bundle = base::Base64Decode(spec["caBundle"].as_string()).value_or(std::string());
  const bool insecure = spec["insecureSkipTLSVerify"].as_bool();
  const Value service = spec["service"];
  if (service.is_null()) {
    if (!bundle.empty()) {
      const std::string size = std::to_string(bundle.size()) + " bytes";
      errors.push_back(
          Invalid(path.Child("caBundle"), std::string_view(size), "local APIServices may not have a caBundle"));
    }
    if (insecure)
      errors.push_back(Invalid(path.Child("insecureSkipTLSVerify"), Value(true),
                               "local APIServices may not have insecureSkipTLSVerify"));
    return;
  }
  const FieldPath service_path = path.Child("service");
  if (service["namespace"].as_string().empty()) errors.push_back(Required(service_path.Child("namespace")));
  if (service["name"].as_string().empty()) errors.push_back(Required(service_path.Child("name")));
  const std::int64_t port = service["port"].as_int();
  if (const Messages messages = validation::IsValidPortNum(port); !messages.empty()) {
    errors.push_back(
        Invalid(service_path.Child("port"), Value(port), "port is not valid: " + base::Join(messages, ", ")));
  }
  if (insecure && !bundle.empty()) {
    errors.push_back(
        Invalid(path.Child("insecureSkipTLSVerify"), Value(true), "may not be true if caBundle is present"));
  }
}

void ValidateAPIService(const Call&, Value object, Value, FieldErrors& errors) { ValidateBody(object, errors); }

void ValidateAPIServiceUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors, false);
  ValidateBody(object, errors);
}

void ValidateAPIServiceStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors, false);
  const FieldPath status("status");
  const FieldPath path = status.Child("conditions");
  std::int64_t index = 0;
  for (const Value& condition : object["status"]["conditions"].items()) {
    const FieldPath at = path.Index(index++);
    CheckOneOf(condition["status"].as_string(), {"True", "False", "Unknown"}, at.Child("status"), errors);
  }
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::string service = "Local";
  if (const Value reference = object["spec"]["service"]; !reference.is_null()) {
    service = std::string(reference["namespace"].as_string()) + "/" + std::string(reference["name"].as_string());
  }
  std::string available = "Unknown";
  for (const Value& condition : object["status"]["conditions"].items()) {
    if (condition["type"].as_string() != "Available") continue;
    available = condition["status"].as_string();
    if (const std::string_view reason = condition["reason"].as_string(); available != "True" && !reason.empty()) {
      available += " (" + std::string(reason) + ")";
    }
    break;
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Value::String(arena, service));
  cells.Append(arena, Value::String(arena, available));
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"spec", "metadata"};

constexpr Strategy kStrategies[] = {{
    .group = "apiregistration.k8s.io",
    .kind = "APIService",
    .name_rule = validation::NameIsPathSegment,
    .allow_unconditional_update = false,
    .core_finalizers = false,
    .has_status = true,
    .defaults = SetDefaults,
    .prepare_for_create = PrepareForCreate,
    .validate = ValidateAPIService,
    .validates_metadata = true,
    .update = {.validate_update = ValidateAPIServiceUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = PrepareForStatusUpdate,
               .validate_update = ValidateAPIServiceStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = Row,
}};

}  // namespace

std::span<const Strategy> ApiregistrationStrategies() { return kStrategies; }

Value LocalAPIService(base::Arena& arena, const APIServicePriority& priority, std::string_view automanaged) {
  Value labels = Value::Map(arena, 1);
  labels.Set(arena, "kube-aggregator.kubernetes.io/automanaged", Value::String(arena, automanaged));
  Value metadata = Value::Map(arena, 2);
  metadata.Set(arena, "name", Value::String(arena, std::string(priority.version) + "." + std::string(priority.group)));
  metadata.Set(arena, "labels", labels);
  Value spec = Value::Map(arena, 4);
  if (!priority.group.empty()) spec.Set(arena, "group", Value::String(arena, priority.group));
  spec.Set(arena, "version", Value::String(arena, priority.version));
  spec.Set(arena, "groupPriorityMinimum", std::int64_t{priority.group_priority});
  spec.Set(arena, "versionPriority", std::int64_t{priority.version_priority});
  Value object = Value::Map(arena, 4);
  object.Set(arena, "kind", "APIService");
  object.Set(arena, "apiVersion", "apiregistration.k8s.io/v1");
  object.Set(arena, "metadata", metadata);
  object.Set(arena, "spec", spec);
  return object;
}

}  // namespace keelson::registry
