#include "registry/autoscaling/conversion.h"

#include <string>
#include <string_view>

#include "codec/json.h"
#include "object/json_text.h"
#include "registry/rules/go_struct.h"

namespace keelson::registry {
namespace {

using base::Arena;
using rules::GoField;
using Zero = GoField::Zero;

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kRoundTrip[] = {kMetrics, kCurrentMetrics, kBehavior, kConditions};

constexpr GoField kPolicy[] = {
    {"type", "Type"}, {"value", "Value", Zero::kNumber}, {"periodSeconds", "PeriodSeconds", Zero::kNumber}};
constexpr GoField kRules[] = {{"stabilizationWindowSeconds", "StabilizationWindowSeconds", Zero::kNull},
                              {"selectPolicy", "SelectPolicy", Zero::kNull},
                              {"policies", "Policies", Zero::kNull, kPolicy},
                              {"tolerance", "Tolerance", Zero::kNull}};
constexpr GoField kBehaviorFields[] = {{"scaleUp", "ScaleUp", Zero::kNull, kRules},
                                       {"scaleDown", "ScaleDown", Zero::kNull, kRules}};

void SetUnlessNull(Arena& arena, Value object, std::string_view key, const Value& value) {
  if (!value.is_null()) object.Set(arena, key, value);
}

Value OrZeroQuantity(const Value& quantity) { return quantity.is_null() ? Value("0") : quantity; }

// ---- One metric between the shapes. v2 nests {metric{name,selector}, target{...}}, v1 keeps all in one.

// A metric spec of v2 in the old shape, members in Go's order.
Value OldMetricSource(Arena& arena, std::string_view source, const Value& now) {
  const Value target = now["target"];
  const Value metric = now["metric"];
  Value old = Value::Map(arena, 5);
  if (source == "object") {
    old.Set(arena, "target", now["describedObject"]);
    old.Set(arena, "metricName", metric["name"].as_string());
    old.Set(arena, "targetValue", OrZeroQuantity(target["value"]));
    SetUnlessNull(arena, old, "selector", metric["selector"]);
    SetUnlessNull(arena, old, "averageValue", target["averageValue"]);
  } else if (source == "pods") {
    old.Set(arena, "metricName", metric["name"].as_string());
    old.Set(arena, "targetAverageValue", OrZeroQuantity(target["averageValue"]));
    SetUnlessNull(arena, old, "selector", metric["selector"]);
  } else if (source == "external") {
    old.Set(arena, "metricName", metric["name"].as_string());
    SetUnlessNull(arena, old, "metricSelector", metric["selector"]);
    SetUnlessNull(arena, old, "targetValue", target["value"]);
    SetUnlessNull(arena, old, "targetAverageValue", target["averageValue"]);
  } else {  // resource, containerResource
    old.Set(arena, "name", now["name"].as_string());
    SetUnlessNull(arena, old, "targetAverageUtilization", target["averageUtilization"]);
    SetUnlessNull(arena, old, "targetAverageValue", target["averageValue"]);
    if (source == "containerResource") old.Set(arena, "container", now["container"].as_string());
  }
  return old;
}

Value OldMetricStatus(Arena& arena, std::string_view source, const Value& now) {
  const Value current = now["current"];
  const Value metric = now["metric"];
  Value old = Value::Map(arena, 5);
  if (source == "object") {
    old.Set(arena, "target", now["describedObject"]);
    old.Set(arena, "metricName", metric["name"].as_string());
    old.Set(arena, "currentValue", OrZeroQuantity(current["value"]));
    SetUnlessNull(arena, old, "selector", metric["selector"]);
    SetUnlessNull(arena, old, "averageValue", current["averageValue"]);
  } else if (source == "pods") {
    old.Set(arena, "metricName", metric["name"].as_string());
    old.Set(arena, "currentAverageValue", OrZeroQuantity(current["averageValue"]));
    SetUnlessNull(arena, old, "selector", metric["selector"]);
  } else if (source == "external") {
    old.Set(arena, "metricName", metric["name"].as_string());
    SetUnlessNull(arena, old, "metricSelector", metric["selector"]);
    old.Set(arena, "currentValue", OrZeroQuantity(current["value"]));
    SetUnlessNull(arena, old, "currentAverageValue", current["averageValue"]);
  } else {
    old.Set(arena, "name", now["name"].as_string());
    SetUnlessNull(arena, old, "currentAverageUtilization", current["averageUtilization"]);
    old.Set(arena, "currentAverageValue", OrZeroQuantity(current["averageValue"]));
    if (source == "containerResource") old.Set(arena, "container", now["container"].as_string());
  }
  return old;
}

void SetMetric(Arena& arena, Value now, const Value& old, std::string_view selector_key) {
  Value metric = Value::Map(arena, 2);
  metric.Set(arena, "name", old["metricName"].as_string());
  SetUnlessNull(arena, metric, "selector", old[selector_key]);
  now.Set(arena, "metric", metric);
}

Value NewMetricSource(Arena& arena, std::string_view source, const Value& old) {
  Value now = Value::Map(arena, 3);
  Value target = Value::Map(arena, 3);
  std::string_view type = "AverageValue";
  if (source == "object") {
    now.Set(arena, "describedObject", old["target"].is_map() ? old["target"] : Value::Map(arena));
    if (old["averageValue"].is_null()) type = "Value";
    target.Set(arena, "value", OrZeroQuantity(old["targetValue"]));
    SetUnlessNull(arena, target, "averageValue", old["averageValue"]);
    SetMetric(arena, now, old, "selector");
  } else if (source == "pods") {
    target.Set(arena, "averageValue", OrZeroQuantity(old["targetAverageValue"]));
    SetMetric(arena, now, old, "selector");
  } else if (source == "external") {
    if (!old["targetValue"].is_null()) type = "Value";
    SetUnlessNull(arena, target, "value", old["targetValue"]);
    SetUnlessNull(arena, target, "averageValue", old["targetAverageValue"]);
    SetMetric(arena, now, old, "metricSelector");
  } else {
    now.Set(arena, "name", old["name"].as_string());
    if (!old["targetAverageUtilization"].is_null()) type = "Utilization";
    SetUnlessNull(arena, target, "averageValue", old["targetAverageValue"]);
    SetUnlessNull(arena, target, "averageUtilization", old["targetAverageUtilization"]);
    if (source == "containerResource") now.Set(arena, "container", old["container"].as_string());
  }
  target.Set(arena, "type", type);
  now.Set(arena, "target", target);
  return now;
}

Value NewMetricStatus(Arena& arena, std::string_view source, const Value& old) {
  Value now = Value::Map(arena, 3);
  Value current = Value::Map(arena, 3);
  if (source == "object") {
    now.Set(arena, "describedObject", old["target"].is_map() ? old["target"] : Value::Map(arena));
    current.Set(arena, "value", OrZeroQuantity(old["currentValue"]));
    SetUnlessNull(arena, current, "averageValue", old["averageValue"]);
    SetMetric(arena, now, old, "selector");
  } else if (source == "pods") {
    current.Set(arena, "averageValue", OrZeroQuantity(old["currentAverageValue"]));
    SetMetric(arena, now, old, "selector");
  } else if (source == "external") {
    current.Set(arena, "value", OrZeroQuantity(old["currentValue"]));
    SetUnlessNull(arena, current, "averageValue", old["currentAverageValue"]);
    SetMetric(arena, now, old, "metricSelector");
  } else {
    now.Set(arena, "name", old["name"].as_string());
    current.Set(arena, "averageValue", OrZeroQuantity(old["currentAverageValue"]));
    SetUnlessNull(arena, current, "averageUtilization", old["currentAverageUtilization"]);
    if (source == "containerResource") now.Set(arena, "container", old["container"].as_string());
  }
  now.Set(arena, "current", current);
  return now;
}

using ConvertSource = Value (*)(Arena& arena, std::string_view source, const Value& value);

// A list of metrics with each of their sources converted.
Value ConvertMetrics(Arena& arena, const Value& list, ConvertSource convert) {
  Value out = Value::List(arena, list.size());
  for (const Value& item : list.items()) {
    Value converted = Value::Map(arena, 2);
    converted.Set(arena, "type", item["type"].as_string());
    for (const std::string_view source : {"object", "pods", "resource", "containerResource", "external"}) {
      if (item[source].is_map()) converted.Set(arena, source, convert(arena, source, item[source]));
    }
    out.Append(arena, converted);
  }
  return out;
}

bool IsCPU(const Value& metric) {
  return metric["type"].as_string() == "Resource" && metric["resource"]["name"].as_string() == "cpu";
}

// ScaleUp to scaleUp, all the way down.
Value LowerFirstLetters(Arena& arena, const Value& value) {
  if (value.is_list()) {
    Value out = Value::List(arena, value.size());
    for (const Value& item : value.items()) out.Append(arena, LowerFirstLetters(arena, item));
    return out;
  }
  if (!value.is_map()) return value;
  Value out = Value::Map(arena, value.size());
  for (const auto& member : value.members()) {
    if (member.value.is_null() || member.key.empty()) continue;
    std::string key(member.key);
    if (key[0] >= 'A' && key[0] <= 'Z') key[0] = static_cast<char>(key[0] - 'A' + 'a');
    out.Set(arena, arena.Copy(key), LowerFirstLetters(arena, member.value));
  }
  return out;
}

// The JSON of an annotation; null where there is none or it does not parse.
Value ParsedAnnotation(Arena& arena, const Value& annotations, std::string_view key) {
  const Value text = annotations[key];
  if (text.is_null()) return {};
  auto parsed = codec::DecodeJSON(arena, text.as_string());
  return parsed.ok() ? parsed->value : Value();
}

void SetAnnotation(Arena& arena, Value object, std::string_view key, const std::string& json) {
  object.EnsureMap(arena, "metadata").EnsureMap(arena, "annotations").Set(arena, key, Value::String(arena, json));
}

// A metric of the CPU: `part` is what is wanted of it (target) or what it is (current).
Value CPUMetricWith(Arena& arena, std::string_view part, const Value& value) {
  Value resource = Value::Map(arena, 2);
  resource.Set(arena, "name", "cpu");
  resource.Set(arena, part, value);
  Value metric = Value::Map(arena, 2);
  metric.Set(arena, "type", "Resource");
  metric.Set(arena, "resource", resource);
  return metric;
}

}  // namespace

void DropRoundTripAnnotations(Value metadata) {
  Value annotations = metadata["annotations"];
  if (!annotations.is_map()) return;
  for (const std::string_view key : kRoundTrip) annotations.Erase(key);
  if (annotations.empty()) metadata.Erase("annotations");
}

Value CPUMetric(base::Arena& arena, const Value& utilization) {
  Value target = Value::Map(arena, 2);
  target.Set(arena, "type", "Utilization");
  target.Set(arena, "averageUtilization", utilization);
  return CPUMetricWith(arena, "target", target);
}

Value HorizontalPodAutoscalerToHub(Arena& arena, const Value& object) {
  Value out = object.Clone(arena);
  if (out.Has("apiVersion")) out.Set(arena, "apiVersion", "autoscaling/v2");
  Value spec = out.EnsureMap(arena, "spec");
  const Value annotations = out["metadata"]["annotations"];

  Value metrics = Value::List(arena, 1);
  if (const Value other = ParsedAnnotation(arena, annotations, kMetrics); other.is_list())
    metrics = ConvertMetrics(arena, other, NewMetricSource);
  if (const Value cpu = spec["targetCPUUtilizationPercentage"]; !cpu.is_null())
    metrics.Append(arena, CPUMetric(arena, cpu));
  spec.Erase("targetCPUUtilizationPercentage");
  if (metrics.empty()) metrics.Append(arena, CPUMetric(arena, kDefaultCPUUtilization));
  spec.Set(arena, "metrics", metrics);
  if (const Value behavior = ParsedAnnotation(arena, annotations, kBehavior); behavior.is_map()) {
    const Value converted = LowerFirstLetters(arena, behavior);
    if (!converted.empty()) spec.Set(arena, "behavior", converted);
  }

  Value status = out["status"];
  if (status.is_map()) {
    if (const Value cpu = status["currentCPUUtilizationPercentage"]; !cpu.is_null()) {
      Value current = Value::Map(arena, 1);
      current.Set(arena, "averageUtilization", cpu);
      Value list = Value::List(arena, 1);
      list.Append(arena, CPUMetricWith(arena, "current", current));
      status.Set(arena, "currentMetrics", list);
    }
    status.Erase("currentCPUUtilizationPercentage");
  }
  if (const Value statuses = ParsedAnnotation(arena, annotations, kCurrentMetrics); statuses.is_list()) {
    out.EnsureMap(arena, "status").Set(arena, "currentMetrics", ConvertMetrics(arena, statuses, NewMetricStatus));
  }
  if (const Value conditions = ParsedAnnotation(arena, annotations, kConditions); conditions.is_list()) {
    out.EnsureMap(arena, "status").Set(arena, "conditions", conditions);
  }
  DropRoundTripAnnotations(out["metadata"]);
  return out;
}

Value HorizontalPodAutoscalerFromHub(Arena& arena, const Value& object) {
  Value out = object.Clone(arena);
  if (out.Has("apiVersion")) out.Set(arena, "apiVersion", "autoscaling/v1");
  DropRoundTripAnnotations(out["metadata"]);
  Value spec = out.EnsureMap(arena, "spec");
  Value status = out["status"];

  // The first CPU utilization is v1's own; every other metric that is none goes into the annotation.
  Value others = Value::List(arena, 0);
  for (const Value& metric : spec["metrics"].items()) {
    const Value utilization = metric["resource"]["target"]["averageUtilization"];
    if (!IsCPU(metric) || utilization.is_null()) {
      others.Append(arena, metric);
    } else if (spec["targetCPUUtilizationPercentage"].is_null()) {
      spec.Set(arena, "targetCPUUtilizationPercentage", utilization);
    }
  }
  if (!others.empty())
    SetAnnotation(arena, out, kMetrics, object::ToJSON(ConvertMetrics(arena, others, OldMetricSource)));
  if (const Value behavior = spec["behavior"]; !behavior.is_null()) {
    SetAnnotation(arena, out, kBehavior, rules::RenderGoStruct(behavior, kBehaviorFields));
  }
  spec.Erase("metrics");
  spec.Erase("behavior");

  if (!status.is_map()) return out;
  const Value statuses = status["currentMetrics"];
  for (const Value& metric : statuses.items()) {
    const Value utilization = metric["resource"]["current"]["averageUtilization"];
    if (IsCPU(metric) && !utilization.is_null()) status.Set(arena, "currentCPUUtilizationPercentage", utilization);
  }
  if (!statuses.empty())
    SetAnnotation(arena, out, kCurrentMetrics, object::ToJSON(ConvertMetrics(arena, statuses, OldMetricStatus)));
  if (const Value conditions = status["conditions"]; !conditions.empty()) {
    Value ordered = Value::List(arena, conditions.size());
    for (const Value& condition : conditions.items()) {
      Value item = Value::Map(arena, 5);
      item.Set(arena, "type", condition["type"].as_string());
      item.Set(arena, "status", condition["status"].as_string());
      item.Set(arena, "lastTransitionTime", condition["lastTransitionTime"]);
      for (const std::string_view key : {"reason", "message"}) SetUnlessNull(arena, item, key, condition[key]);
      ordered.Append(arena, item);
    }
    SetAnnotation(arena, out, kConditions, object::ToJSON(ordered));
  }
  status.Erase("currentMetrics");
  status.Erase("conditions");
  return out;
}

}  // namespace keelson::registry
