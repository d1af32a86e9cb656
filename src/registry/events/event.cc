#include <string>
#include <string_view>

#include "object/time.h"
#include "registry/events/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Invalid;
using validation::Required;

constexpr std::size_t kReportingInstanceBytesMax = 128;
constexpr std::size_t kActionBytesMax = 128;
constexpr std::size_t kReasonBytesMax = 128;
constexpr std::size_t kNoteBytesMax = 1024;

bool HasTime(const Value& time) {
  if (time.as_string().empty()) return false;
  const auto parsed = object::ParseTime(time.as_string(), true);
  return !parsed.ok() || !parsed->IsZero();
}

void AtMost(std::string_view text, std::size_t max, std::string_view field, FieldErrors& errors) {
  if (text.size() > max)
    errors.push_back(Invalid(FieldPath(field), "", "can have at most " + std::to_string(max) + " characters"));
}

void RequireAtMost(std::string_view text, std::size_t max, std::string_view field, FieldErrors& errors) {
  if (text.empty()) errors.push_back(Required(FieldPath(field)));
  AtMost(text, max, field, errors);
}

void ValidateCommon(const Call& call, const Value& event, FieldErrors& errors) {
  const std::string_view name_space = event["metadata"]["namespace"].as_string();
  const Value involved = event["involvedObject"];
  const std::string_view involved_namespace = involved["namespace"].as_string();
  const FieldPath involved_path("involvedObject");
  const auto mismatch = [&] {
    errors.push_back(Invalid(involved_path.Child("namespace"), involved_namespace, "does not match event.namespace"));
  };
  if (!HasTime(event["eventTime"])) {
    if (involved_namespace.empty()) {
      if (!name_space.empty() && name_space != "default") mismatch();
    } else if (name_space != involved_namespace) {
      mismatch();
    }
  } else {
    if (involved_namespace.empty() && name_space != "default" && name_space != "kube-system") mismatch();
    const std::string_view controller = event["reportingComponent"].as_string();
    const FieldPath controller_path(call.request_group.empty() ? "reportingComponent" : "reportingController");
    if (controller.empty()) errors.push_back(Required(controller_path));
    CheckQualifiedName(controller, controller_path, errors);
    RequireAtMost(event["reportingInstance"].as_string(), kReportingInstanceBytesMax, "reportingInstance", errors);
    RequireAtMost(event["action"].as_string(), kActionBytesMax, "action", errors);
    RequireAtMost(event["reason"].as_string(), kReasonBytesMax, "reason", errors);
    AtMost(event["message"].as_string(), kNoteBytesMax, "message", errors);
  }
  AddInvalid(FieldPath("namespace"), name_space, validation::IsDNS1123Subdomain(name_space), errors);
}

void ValidateSeries(const Value& event, FieldErrors& errors) {
  const Value series = event["series"];
  if (series.is_null()) return;
  if (series["count"].as_int() < 2) errors.push_back(Invalid(FieldPath("series.count"), "", "should be at least 2"));
  if (!HasTime(series["lastObservedTime"])) errors.push_back(Required(FieldPath("series.lastObservedTime")));
}

constexpr GoField kReference[] = {{"kind", "Kind"},
                                  {"namespace", "Namespace"},
                                  {"name", "Name"},
                                  {"uid", "UID"},
                                  {"apiVersion", "APIVersion"},
                                  {"resourceVersion", "ResourceVersion"},
                                  {"fieldPath", "FieldPath"}};
constexpr GoField kSource[] = {{"component", "Component"}, {"host", "Host"}};

void ImmutableStruct(const Value& event, const Value& old, std::string_view field, std::span<const GoField> fields,
                     bool pointer, FieldErrors& errors) {
  const bool comes_or_goes = pointer && event[field].is_null() != old[field].is_null();
  if (!comes_or_goes && SemanticEqual(event[field], old[field])) return;
  std::string text = pointer && event[field].is_null() ? "null" : RenderGoStruct(event[field], fields);
  errors.push_back(InvalidRendered(FieldPath(field), std::move(text), "field is immutable"));
}

void ImmutableTime(const Value& event, const Value& old, std::string_view field, bool micro, FieldErrors& errors) {
  const auto now = object::ParseTime(event[field].as_string(), micro);
  const auto before = object::ParseTime(old[field].as_string(), micro);
  const bool has_now = HasTime(event[field]);
  if (has_now == HasTime(old[field]) && (!has_now || (now.ok() && before.ok() && *now == *before))) return;
  errors.push_back(Invalid(FieldPath(field), event[field], "field is immutable"));
}

constexpr SelectableField kSelectable[] = {
    {.name = "regarding.kind", .path = "involvedObject.kind"},
    {.name = "regarding.namespace", .path = "involvedObject.namespace"},
    {.name = "regarding.name", .path = "involvedObject.name"},
    {.name = "regarding.uid", .path = "involvedObject.uid"},
    {.name = "regarding.apiVersion", .path = "involvedObject.apiVersion"},
    {.name = "regarding.resourceVersion", .path = "involvedObject.resourceVersion"},
    {.name = "regarding.fieldPath", .path = "involvedObject.fieldPath"},
    {.name = "reason", .path = "reason"},
    {.name = "reportingController", .path = "reportingComponent"},
    {.name = "type", .path = "type"},
};

constexpr Strategy kStrategies[] = {{
    .group = "events.k8s.io",
    .kind = "Event",
    .allow_create_on_update = true,
    .garbage_collection = GarbageCollection::kUnsupported,
    .validate = ValidateEventCreate,
    .validates_metadata = true,
    .update = {.validate_update = ValidateEventUpdate},
    .selectable_fields = kSelectable,
}};

}  // namespace

void ValidateEventCreate(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateCommon(call, object, errors);
  if (call.request_group.empty()) return;
  ValidateMeta(object, true, validation::NameIsDNSSubdomain, errors);
  ValidateSeries(object, errors);
  if (!HasTime(object["eventTime"])) errors.push_back(Required(FieldPath("eventTime")));
  const std::string_view type = object["type"].as_string();
  if (type != "Normal" && type != "Warning")
    errors.push_back(Invalid(FieldPath("type"), "", "has invalid value: " + std::string(type)));
  for (const std::string_view field : {"firstTimestamp", "lastTimestamp"}) {
    if (HasTime(object[field])) errors.push_back(Invalid(FieldPath(field), "", "needs to be unset"));
  }
  if (object["count"].as_int() != 0) errors.push_back(Invalid(FieldPath("count"), "", "needs to be unset"));
  if (!IsZero(object["source"])) errors.push_back(Invalid(FieldPath("source"), "", "needs to be unset"));
}

void ValidateEventUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateCommon(call, object, errors);
  if (call.request_group.empty()) return;
  ValidateMetaUpdate(object, old, errors);
  // An empty series is not the absence of one.
  if (object["series"].is_null() != old["series"].is_null() || !SemanticEqual(object["series"], old["series"]))
    ValidateSeries(object, errors);
  ImmutableStruct(object, old, "involvedObject", kReference, false, errors);
  ImmutableText(object["reason"], old["reason"], FieldPath("reason"), errors);
  ImmutableText(object["message"], old["message"], FieldPath("message"), errors);
  ImmutableStruct(object, old, "source", kSource, false, errors);
  ImmutableTime(object, old, "firstTimestamp", false, errors);
  ImmutableTime(object, old, "lastTimestamp", false, errors);
  if (object["count"].as_int() != old["count"].as_int()) {
    errors.push_back(Invalid(FieldPath("count"), Value(object["count"].as_int()), "field is immutable"));
  }
  ImmutableText(object["reason"], old["reason"], FieldPath("reason"), errors);  // Twice, as upstream.
  ImmutableText(object["type"], old["type"], FieldPath("type"), errors);
  ImmutableTime(object, old, "eventTime", true, errors);
  ImmutableText(object["action"], old["action"], FieldPath("action"), errors);
  ImmutableStruct(object, old, "related", kReference, true, errors);
  ImmutableText(object["reportingComponent"], old["reportingComponent"], FieldPath("reportingController"), errors);
  ImmutableText(object["reportingInstance"], old["reportingInstance"], FieldPath("reportingInstance"), errors);
}

std::span<const Strategy> EventsStrategies() { return kStrategies; }

}  // namespace keelson::registry
