#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "registry/autoscaling/conversion.h"
#include "registry/autoscaling/strategies.h"
#include "registry/core/resources.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

constexpr std::int64_t kStabilizationWindowSecondsMax = 3600;
constexpr std::int64_t kPeriodSecondsMax = 1800;

// ---- Defaults

Value ScalingPolicy(base::Arena& arena, std::string_view type, std::int64_t value) {
  Value policy = Value::Map(arena, 3);
  policy.Set(arena, "type", type);
  policy.Set(arena, "value", value);
  policy.Set(arena, "periodSeconds", 15);
  return policy;
}

void DefaultScalingRules(base::Arena& arena, Value behavior, std::string_view direction) {
  Value rules = behavior.EnsureMap(arena, direction);
  const bool up = direction == "scaleUp";
  if (up) Default(arena, rules, "stabilizationWindowSeconds", 0);
  Default(arena, rules, "selectPolicy", "Max");
  if (!rules["policies"].is_null()) return;  // An empty list stays, and is refused.
  Value policies = Value::List(arena, 2);
  if (up) policies.Append(arena, ScalingPolicy(arena, "Pods", 4));
  policies.Append(arena, ScalingPolicy(arena, "Percent", 100));
  rules.Set(arena, "policies", policies);
}

void SetDefaults(base::Arena& arena, Value object) {
  DropRoundTripAnnotations(object["metadata"]);
  Value spec = object.EnsureMap(arena, "spec");
  Default(arena, spec, "minReplicas", 1);
  if (spec["metrics"].empty()) {
    Value metrics = Value::List(arena, 1);
    metrics.Append(arena, CPUMetric(arena, kDefaultCPUUtilization));
    spec.Set(arena, "metrics", metrics);
  }
  if (Value behavior = spec["behavior"]; behavior.is_map()) {
    DefaultScalingRules(arena, behavior, "scaleUp");
    DefaultScalingRules(arena, behavior, "scaleDown");
  }
}

// ---- Validation

struct ReferenceOptions {
  bool allow_invalid_api_version = false;
  bool allow_empty_api_group = false;
};
struct Options {
  std::int64_t replicas_min = 1;
  ReferenceOptions scale_target;
  ReferenceOptions object_metrics{.allow_invalid_api_version = false, .allow_empty_api_group = true};
};

// Why an apiVersion is refused; empty when it is not.
std::string APIVersionProblem(std::string_view text, const ReferenceOptions& options) {
  if (options.allow_invalid_api_version) return {};
  const auto version = ParseGroupVersion(text);
  if (!version.has_value()) return "unexpected GroupVersion string: " + std::string(text);
  if (!options.allow_empty_api_group && version->group.empty()) return "apiVersion must specify API group";
  return {};
}

void RequireSegment(std::string_view text, const FieldPath& path, std::string_view detail, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path, detail));
  } else {
    AddInvalid(path, text, validation::IsValidPathSegmentName(text), errors);
  }
}

void ValidateReference(const Value& reference, const FieldPath& path, const ReferenceOptions& options,
                       FieldErrors& errors) {
  RequireSegment(reference["kind"].as_string(), path.Child("kind"), {}, errors);
  RequireSegment(reference["name"].as_string(), path.Child("name"), {}, errors);
  const std::string_view version = reference["apiVersion"].as_string();
  if (const std::string why = APIVersionProblem(version, options); !why.empty()) {
    errors.push_back(Invalid(path.Child("apiVersion"), version, why));
  }
}

void ValidateTarget(const Value& target, const FieldPath& path, FieldErrors& errors) {
  const std::string_view type = target["type"].as_string();
  if (type.empty()) errors.push_back(Required(path.Child("type"), "must specify a metric target type"));
  if (!OneOf(type, {"Utilization", "Value", "AverageValue"})) {
    errors.push_back(Invalid(path.Child("type"), type, "must be either Utilization, Value, or AverageValue"));
  }
  for (const std::string_view field : {"value", "averageValue"}) {
    if (const Value value = target[field]; !value.is_null() && QuantityOf(value).Sign() != 1) {
      errors.push_back(Invalid(path.Child(field), value, "must be positive"));
    }
  }
  if (const Value utilization = target["averageUtilization"]; !utilization.is_null() && utilization.as_int() < 1) {
    errors.push_back(Invalid(path.Child("averageUtilization"), utilization, "must be greater than 0"));
  }
}

void ValidateObjectSource(const Value& source, const FieldPath& path, const Options& options, FieldErrors& errors) {
  const FieldPath metric = path.Child("metric");
  const FieldPath target = path.Child("target");
  ValidateReference(source["describedObject"], path.Child("describedObject"), options.object_metrics, errors);
  RequireSegment(source["metric"]["name"].as_string(), metric.Child("name"), "must specify a metric name", errors);
  ValidateTarget(source["target"], target, errors);
  if (source["target"]["value"].is_null() && source["target"]["averageValue"].is_null()) {
    errors.push_back(Required(target.Child("averageValue"), "must set either a target value or averageValue"));
  }
}

void ValidateExternalSource(const Value& source, const FieldPath& path, FieldErrors& errors) {
  const FieldPath metric = path.Child("metric");
  const FieldPath target = path.Child("target");
  RequireSegment(source["metric"]["name"].as_string(), metric.Child("name"), "must specify a metric name", errors);
  ValidateTarget(source["target"], target, errors);
  const bool value = !source["target"]["value"].is_null();
  const bool average = !source["target"]["averageValue"].is_null();
  if (!value && !average) {
    errors.push_back(
        Required(target.Child("averageValue"), "must set either a target value for metric or a per-pod target"));
  }
  if (value && average) {
    errors.push_back(
        Forbidden(target.Child("value"), "may not set both a target value for metric and a per-pod target"));
  }
}

void ValidatePodsSource(const Value& source, const FieldPath& path, FieldErrors& errors) {
  const FieldPath metric = path.Child("metric");
  const FieldPath target = path.Child("target");
  RequireSegment(source["metric"]["name"].as_string(), metric.Child("name"), "must specify a metric name", errors);
  ValidateTarget(source["target"], target, errors);
  if (source["target"]["averageValue"].is_null()) {
    errors.push_back(Required(target.Child("averageValue"), "must specify a positive target averageValue"));
  }
}

void ValidateResourceSource(const Value& source, const FieldPath& path, bool container, FieldErrors& errors) {
  const std::string_view name = source["name"].as_string();
  if (name.empty()) {
    errors.push_back(Required(path.Child("name"), "must specify a resource name"));
  } else if (container) {
    core::CheckContainerResourceName(name, path.Child("name"), errors);
  }
  if (container) {
    const std::string_view text = source["container"].as_string();
    if (text.empty()) {
      errors.push_back(Required(path.Child("container"), "must specify a container"));
    } else {
      AddInvalid(path.Child("container"), text, validation::IsDNS1123Label(text), errors);
    }
  }
  const FieldPath target = path.Child("target");
  ValidateTarget(source["target"], target, errors);
  const bool utilization = !source["target"]["averageUtilization"].is_null();
  const bool value = !source["target"]["averageValue"].is_null();
  if (!utilization && !value) {
    errors.push_back(
        Required(target.Child("averageUtilization"), "must set either a target raw value or a target utilization"));
  }
  if (utilization && value) {
    errors.push_back(
        Forbidden(target.Child("averageValue"), "may not set both a target raw value and a target utilization"));
  }
}

struct Source {
  std::string_view type;
  std::string_view field;
};
// In the order they are looked at.
constexpr Source kSources[] = {{"Object", "object"},
                               {"External", "external"},
                               {"Pods", "pods"},
                               {"Resource", "resource"},
                               {"ContainerResource", "containerResource"}};

void ValidateSource(const Value& metric, const Source& source, const FieldPath& path, const Options& options,
                    FieldErrors& errors) {
  const Value body = metric[source.field];
  if (source.field == "object") {
    ValidateObjectSource(body, path, options, errors);
  } else if (source.field == "external") {
    ValidateExternalSource(body, path, errors);
  } else if (source.field == "pods") {
    ValidatePodsSource(body, path, errors);
  } else {
    ValidateResourceSource(body, path, source.field == "containerResource", errors);
  }
}

void ValidateMetric(const Value& metric, const FieldPath& path, const Options& options, FieldErrors& errors) {
  const std::string_view type = metric["type"].as_string();
  const auto not_supported = [&] {
    NotSupportedValue(path.Child("type"), type, {"ContainerResource", "External", "Object", "Pods", "Resource"},
                      errors);
  };
  const auto* const expected = std::ranges::find(kSources, type, &Source::type);
  const bool known = expected != std::end(kSources);
  if (type.empty()) errors.push_back(Required(path.Child("type"), "must specify a metric source type"));
  if (!known) not_supported();
  std::vector<std::string_view> present;
  for (const Source& source : kSources) {
    if (metric[source.field].is_null()) continue;
    present.push_back(source.field);
    if (present.size() == 1) ValidateSource(metric, source, path.Child(source.field), options, errors);
  }
  if (!known) {
    not_supported();  // Once more: the type decides which source is expected, and there is none.
  } else if (metric[expected->field].is_null()) {
    errors.push_back(Required(path.Child(expected->field), "must populate information for the given metric source"));
  }
  if (present.size() == 1) return;
  std::ranges::sort(present);
  for (const std::string_view field : present) {
    if (known && field == expected->field) continue;
    errors.push_back(Forbidden(path.Child(field), "must populate the given metric source only"));
  }
}

void ValidateMetrics(const Value& spec, const FieldPath& spec_path, const Options& options, FieldErrors& errors) {
  const FieldPath path = spec_path.Child("metrics");
  bool scales_to_zero = false;
  std::int64_t index = 0;
  for (const Value& metric : spec["metrics"].items()) {
    ValidateMetric(metric, path.Index(index++), options, errors);
    scales_to_zero = scales_to_zero || OneOf(metric["type"].as_string(), {"Object", "External"});
  }
  if (const Value min = spec["minReplicas"]; !min.is_null() && min.as_int() == 0 && !scales_to_zero) {
    errors.push_back(
        Forbidden(path, "must specify at least one Object or External metric to support scaling to zero replicas"));
  }
}

void ValidateScalingRules(const Value& rules, const FieldPath& path, FieldErrors& errors) {
  if (rules.is_null()) return;
  if (const Value window = rules["stabilizationWindowSeconds"]; !window.is_null()) {
    const FieldPath at = path.Child("stabilizationWindowSeconds");
    if (window.as_int() < 0) errors.push_back(Invalid(at, window, "must be greater than or equal to zero"));
    if (window.as_int() > kStabilizationWindowSecondsMax)
      errors.push_back(Invalid(at, window, "must be less than or equal to 3600"));
  }
  if (const Value policy = rules["selectPolicy"]; !policy.is_null()) {
    CheckOneOf(policy.as_string(), {"Disabled", "Max", "Min"}, path.Child("selectPolicy"), errors);
  }
  const FieldPath policies = path.Child("policies");
  if (rules["policies"].empty()) errors.push_back(Required(policies, "must specify at least one Policy"));
  std::int64_t index = 0;
  for (const Value& policy : rules["policies"].items()) {
    const FieldPath at = policies.Index(index++);
    CheckOneOf(policy["type"].as_string(), {"Percent", "Pods"}, at.Child("type"), errors);
    const std::int64_t value = policy["value"].as_int();
    const std::int64_t period = policy["periodSeconds"].as_int();
    if (value <= 0) errors.push_back(Invalid(at.Child("value"), Value(value), "must be greater than zero"));
    if (period <= 0) errors.push_back(Invalid(at.Child("periodSeconds"), Value(period), "must be greater than zero"));
    if (period > kPeriodSecondsMax)
      errors.push_back(Invalid(at.Child("periodSeconds"), Value(period), "must be less than or equal to 1800"));
  }
  if (const Value tolerance = rules["tolerance"]; !tolerance.is_null()) {
    core::CheckNonnegativeQuantity(tolerance, path.Child("tolerance"), errors);
  }
}

void ValidateSpec(const Value& spec, const Options& options, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value min = spec["minReplicas"];
  const std::int64_t max = spec["maxReplicas"].as_int();
  if (!min.is_null() && min.as_int() < options.replicas_min) {
    errors.push_back(Invalid(path.Child("minReplicas"), min,
                             "must be greater than or equal to " + std::to_string(options.replicas_min)));
  }
  const FieldPath max_path = path.Child("maxReplicas");
  if (max == 0) {
    errors.push_back(Required(max_path, "must be set and greater than 0"));
  } else if (max < 0) {
    errors.push_back(Invalid(max_path, Value(max), "must be greater than or equal to 1"));
  }
  if (!min.is_null() && max < min.as_int())
    errors.push_back(Invalid(max_path, Value(max), "must be greater than or equal to `minReplicas`"));
  ValidateReference(spec["scaleTargetRef"], path.Child("scaleTargetRef"), options.scale_target, errors);
  ValidateMetrics(spec, path, options, errors);
  const FieldPath behavior = path.Child("behavior");
  ValidateScalingRules(spec["behavior"]["scaleUp"], behavior.Child("scaleUp"), errors);
  ValidateScalingRules(spec["behavior"]["scaleDown"], behavior.Child("scaleDown"), errors);
}

Options OptionsFor(const Call& call, const Value& object, const Value& old) {
  Options options;
  const Value old_min = old["spec"]["minReplicas"];
  const bool old_zero = !old_min.is_null() && old_min.as_int() == 0;
  if (old_zero || (call.feature_enabled != nullptr && call.feature_enabled("HPAScaleToZero"))) options.replicas_min = 0;
  const Value target = object["spec"]["scaleTargetRef"];
  const Value old_target = old["spec"]["scaleTargetRef"];
  if (!old.is_null() && target["apiVersion"].as_string() == old_target["apiVersion"].as_string() &&
      target["kind"].as_string() == old_target["kind"].as_string()) {
    options.scale_target.allow_invalid_api_version = true;
  } else if (target["kind"].as_string() == "ReplicationController") {
    options.scale_target.allow_empty_api_group = true;  // The only scalable kind of the core group.
  }
  for (const Value& metric : old["spec"]["metrics"].items()) {
    if (metric["type"].as_string() != "Object" || metric["object"].is_null()) continue;
    if (!APIVersionProblem(metric["object"]["describedObject"]["apiVersion"].as_string(), options.object_metrics)
             .empty()) {
      options.object_metrics.allow_invalid_api_version = true;
      break;
    }
  }
  return options;
}

void ValidateHPA(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidateSpec(object["spec"], OptionsFor(call, object, Value()), errors);
}

void ValidateHPAUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  ValidateSpec(object["spec"], OptionsFor(call, object, old), errors);
}

void ValidateHPAStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMetaUpdate(object, old, errors);
  const FieldPath path("status");
  for (const std::string_view field : {"currentReplicas", "desiredReplicas"}) {
    validation::ValidateNonnegative(object["status"][field].as_int(), path.Child(field), errors);
  }
}

// ---- Table

std::string QuantityText(const Value& value) { return value.is_null() ? "<nil>" : QuantityOf(value).ToString(); }
std::string PercentText(const Value& value) { return std::to_string(value.as_int()) + "%"; }

// "cpu: 3%/80%" of a resource, "3/10" or "3/10 (avg)" of the others. `status` is null if there is none at the same
// index.
std::string MetricText(const Value& metric, const Value& status) {
  const auto* const source = std::ranges::find(kSources, metric["type"].as_string(), &Source::type);
  if (source == std::end(kSources)) return "<unknown type>";
  const Value target = metric[source->field]["target"];
  const Value current = status[source->field]["current"];
  const bool has_status = !status[source->field].is_null();
  const bool average = !target["averageValue"].is_null();
  if (source->field == "resource" || source->field == "containerResource") {
    const std::string name(metric[source->field]["name"].as_string());
    if (average) {
      return name + ": " + (has_status ? QuantityText(current["averageValue"]) : "<unknown>") + "/" +
             QuantityText(target["averageValue"]);
    }
    const Value now = current["averageUtilization"];
    const Value goal = target["averageUtilization"];
    return name + ": " + (now.is_null() ? "<unknown>" : PercentText(now)) + "/" +
           (goal.is_null() ? "<auto>" : PercentText(goal));
  }
  if (source->field == "pods") {
    return (has_status ? QuantityText(current["averageValue"]) : "<unknown>") + "/" +
           QuantityText(target["averageValue"]);
  }
  if (average) {
    const Value now = current["averageValue"];
    return (now.is_null() ? "<unknown>" : QuantityText(now)) + "/" + QuantityText(target["averageValue"]) + " (avg)";
  }
  return (has_status ? QuantityText(current["value"]) : "<unknown>") + "/" + QuantityText(target["value"]);
}

std::string FormatMetrics(const Value& metrics, const Value& statuses) {
  constexpr std::size_t kShown = 2;
  if (metrics.empty()) return "<none>";
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(metrics.size(), kShown); ++i)
    texts.push_back(MetricText(metrics[i], statuses[i]));
  std::string text = base::Join(texts, ", ");
  if (metrics.size() > kShown) text += " + " + std::to_string(metrics.size() - kShown) + " more...";
  return text;
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  const Value target = spec["scaleTargetRef"];
  const Value min = spec["minReplicas"];
  cells.Append(arena, NameCell(object));
  cells.Append(arena, Value::String(arena, std::string(target["kind"].as_string()) + "/" +
                                               std::string(target["name"].as_string())));
  cells.Append(arena, Value::String(arena, FormatMetrics(spec["metrics"], object["status"]["currentMetrics"])));
  cells.Append(arena, min.is_null() ? Value("<unset>") : Value::String(arena, std::to_string(min.as_int())));
  cells.Append(arena, spec["maxReplicas"].as_int());
  cells.Append(arena, object["status"]["currentReplicas"].as_int());
  cells.Append(arena, Age(arena, clock, object));
}

// ---- Scale: never stored, what the scale subresources take and give.

void ValidateScale(const Call&, Value object, Value, FieldErrors& errors) {
  const FieldPath path("spec");
  validation::ValidateNonnegative(object["spec"]["replicas"].as_int(), path.Child("replicas"), errors);
}

void ScaleRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["spec"]["replicas"].as_int());
  cells.Append(arena, object["status"]["replicas"].as_int());
  cells.Append(arena, Age(arena, clock, object));
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"spec"};

constexpr Strategy kStrategies[] = {
    {.group = "autoscaling", .kind = "Scale", .validate = ValidateScale, .table_row = ScaleRow},
    {
        .group = "autoscaling",
        .kind = "HorizontalPodAutoscaler",
        .has_status = true,
        .defaults = SetDefaults,
        .validate = ValidateHPA,
        .update = {.validate_update = ValidateHPAUpdate, .reset_fields = kMainReset},
        .status = {.validate_update = ValidateHPAStatusUpdate, .reset_fields = kStatusReset},
        .table_row = Row,
    },
};

}  // namespace

std::span<const Strategy> AutoscalingStrategies() { return kStrategies; }

}  // namespace keelson::registry
