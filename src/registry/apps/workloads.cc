#include "registry/apps/workloads.h"
#include "object/json_text.h"

#include "base/strings.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/pod_options.h"
#include "registry/core/pod_spec.h"
#include "registry/core/pod_template.h"
#include "registry/rules/rules.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::apps {
namespace {

using base::Arena;
using core::CoreHubTypes;
using core::PodOptions;

constexpr std::string_view kMoreThanReplicas = "cannot be greater than status.replicas";
constexpr std::string_view kMoreThanReady = "cannot be greater than readyReplicas";

PodOptions TemplateOptions(const Call& call, Value old) {
  const Value before = old["spec"]["template"];
  return core::PodOptionsFor(call, false, before["spec"], before["metadata"]);
}

// "25%" is 25 and a number itself; what is neither counts as nothing.
std::int64_t IntOrPercent(Value value) {
  if (!value.is_string()) return value.as_int();
  const std::string_view text = value.as_string();
  if (!validation::IsValidPercent(text).empty()) return base::ParseInt64(text).value_or(0);
  return base::ParseInt64(text.substr(0, text.size() - 1)).value_or(0);
}

void CheckIntOrPercent(Value object, std::string_view key, const FieldPath& path, FieldErrors& errors) {
  rules::ValidatePositiveIntOrPercent(object[key].is_null() ? Value(0) : object[key], path.Child(key), errors);
}

void CheckAtMost100Percent(Value object, std::string_view key, const FieldPath& path, FieldErrors& errors) {
  rules::IsNotMoreThan100Percent(object[key], path.Child(key), errors);
}

void CheckUnchangedMetadata(Value object, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
}

// A struct that is none of the supported ones: its hub form is what upstream shows.
validation::FieldError NotSupportedStruct(const FieldPath& path, Value value, std::string_view type, Names supported) {
  validation::FieldError error = NotSupported(path, Value(""), supported);
  error.value = CoreHubTypes().JSON(value, type);
  return error;
}

// Deployments and replica sets check selector and template alike (down to the word "deployment").
void CheckSelectorAndTemplate(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  const Value selector = spec["selector"];
  const FieldPath selector_path = path.Child("selector"), template_path = path.Child("template");
  core::CheckWorkloadSelector(selector, "deployment", selector_path, errors);
  if (!selector.is_null() && !LabelSelectorParses(selector)) {
    return errors.push_back(
        InvalidHub(selector_path, CoreHubTypes(), selector, "~LabelSelector", "invalid label selector"));
  }
  // A nil selector matches nothing, an empty one is not compared.
  const bool matches = selector.is_null() ? false
                                          : LabelSelectorEmpty(selector) ||
                                                LabelSelectorMatches(selector, spec["template"]["metadata"]["labels"]);
  core::CheckTemplateLabels(spec["template"], matches, template_path, errors);
  core::ValidatePodTemplateSpec(spec["template"], options, template_path, errors);
  core::CheckRunsForever(spec["template"], "ReplicaSet", template_path, errors);
}

void CheckDeploymentStrategy(Value strategy, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kTypes[] = {"Recreate", "RollingUpdate"};
  const std::string_view type = Text(strategy, "type");
  const Value rolling = strategy["rollingUpdate"];
  const FieldPath at = path.Child("rollingUpdate");
  if (type == "Recreate") {
    if (!rolling.is_null()) errors.push_back(Forbidden(at, "may not be specified when strategy `type` is 'Recreate'"));
  } else if (type != "RollingUpdate") {
    errors.push_back(NotSupportedStruct(path, strategy, "DeploymentStrategy", kTypes));
  } else if (rolling.is_null()) {
    errors.push_back(Required(at, "this should be defaulted and never be nil"));
  } else {
    CheckIntOrPercent(rolling, "maxUnavailable", at, errors);
    CheckIntOrPercent(rolling, "maxSurge", at, errors);
    if (IntOrPercent(rolling["maxUnavailable"]) == 0 && IntOrPercent(rolling["maxSurge"]) == 0) {
      const Value shown = rolling["maxUnavailable"].is_null() ? Value(0) : rolling["maxUnavailable"];
      errors.push_back(Invalid(at.Child("maxUnavailable"), shown, "may not be 0 when `maxSurge` is 0"));
    }
    CheckAtMost100Percent(rolling, "maxUnavailable", at, errors);
  }
}

void CheckDeploymentSpec(Value spec, const PodOptions& options, FieldErrors& errors) {
  const FieldPath path("spec");
  CheckNonnegative(spec, "replicas", path, errors);
  CheckSelectorAndTemplate(spec, options, path, errors);
  CheckDeploymentStrategy(spec["strategy"], path.Child("strategy"), errors);
  for (const std::string_view key : {"minReadySeconds", "revisionHistoryLimit"})
    CheckNonnegative(spec, key, path, errors);
  if (const Value deadline = spec["progressDeadlineSeconds"]; !deadline.is_null()) {
    CheckNonnegative(spec, "progressDeadlineSeconds", path, errors);
    if (deadline.as_int() <= Int(spec, "minReadySeconds")) {
      errors.push_back(
          Invalid(path.Child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds"));
    }
  }
}

void CheckReplicaSetSpec(Value spec, const PodOptions& options, FieldErrors& errors) {
  const FieldPath path("spec");
  for (const std::string_view key : {"replicas", "minReadySeconds"}) CheckNonnegative(spec, key, path, errors);
  CheckSelectorAndTemplate(spec, options, path, errors);
}

void SetGeneration(const Call& call, Value object, Value old) {
  Value metadata = object["metadata"];
  metadata.Set(call.arena, "generation", Value(Int(old["metadata"], "generation") + 1));
}

std::string Fraction(std::int64_t a, std::int64_t b) { return std::to_string(a) + "/" + std::to_string(b); }

}  // namespace

void PrepareTemplate(const Call& call, Value object, Value old) {
  core::DropDisabledPodFields(call, object["spec"]["template"]["spec"], old["spec"]["template"]["spec"]);
}

void WarnTemplate(const Call& call, Value object, Value old) {
  if (!old.is_null() && Int(object["metadata"], "generation") == Int(old["metadata"], "generation")) return;
  const Value pod_template = object["spec"]["template"];
  const FieldPath spec("spec");
  core::WarnPodSpec(call, pod_template["spec"], pod_template["metadata"], spec.Child("template"));
}

void WarnTemplateAndName(const Call& call, Value object, Value old) {
  core::WarnName(call, object, "Pod names and hostnames");
  WarnTemplate(call, object, old);
}

// --- Deployment ---

void DefaultDeployment(Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  core::DefaultPodTemplate(arena, spec, "template");
  Default(arena, spec, "replicas", Value(1));
  Value strategy = spec.EnsureMap(arena, "strategy");
  DefaultText(arena, strategy, "type", "RollingUpdate");
  if (Text(strategy, "type") == "RollingUpdate") {
    Value rolling = strategy.EnsureMap(arena, "rollingUpdate");
    Default(arena, rolling, "maxUnavailable", "25%");
    Default(arena, rolling, "maxSurge", "25%");
  }
  Default(arena, spec, "revisionHistoryLimit", Value(10));
  Default(arena, spec, "progressDeadlineSeconds", Value(600));
}

void PrepareDeployment(const Call& call, Value object, Value old) {
  PrepareTemplate(call, object, old);
  if (old.is_null()) {
    Value metadata = object["metadata"];
    return metadata.Set(call.arena, "generation", Value(1));
  }
  // Annotations count too, as upstream: old controllers were configured with them.
  const bool same_annotations =
      validation::SemanticEqual(object["metadata"]["annotations"], old["metadata"]["annotations"]);
  if (!same_annotations || !SemanticEqual(object["spec"], old["spec"], schema::types::apps_v1::kDeploymentSpec))
    SetGeneration(call, object, old);
}

void PrepareDeploymentStatus(const Call& call, Value object, Value old) {
  CopyMember(call.arena, object["metadata"], old["metadata"], "labels");
}

void ValidateDeployment(const Call& call, Value object, Value old, FieldErrors& errors) {
  CheckDeploymentSpec(object["spec"], TemplateOptions(call, old), errors);
}

void ValidateDeploymentUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  CheckUnchangedMetadata(object, old, errors);
  CheckDeploymentSpec(object["spec"], TemplateOptions(call, old), errors);
  core::CheckSelectorUnchanged(object["spec"]["selector"], old["spec"]["selector"], errors);
}

void ValidateDeploymentStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  const FieldPath path("status");
  const Value status = object["status"];
  CheckUnchangedMetadata(object, old, errors);
  core::CheckStatusCounts(status,
                          {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
                           "unavailableReplicas", "terminatingReplicas", "collisionCount"},
                          path, errors);
  core::CheckNotMoreThan(status, {"updatedReplicas", "readyReplicas", "availableReplicas"}, "replicas",
                         kMoreThanReplicas, path, errors);
  core::CheckNotMoreThan(status, {"availableReplicas"}, "readyReplicas", kMoreThanReady, path, errors);
  core::CheckNotDecremented(status, old["status"], "collisionCount", path, errors);
}

void DeploymentRow(Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"], status = object["status"], selector = spec["selector"];
  std::string selector_text = LabelSelectorParses(selector) ? LabelSelectorText(selector) : "<invalid>";
  if (LabelSelectorEmpty(selector)) selector_text.clear();
  Row(arena, cells)
      .Name(object)
      .Add(Fraction(Int(status, "readyReplicas"), Int(spec, "replicas")))
      .Add(Int(status, "updatedReplicas"))
      .Add(Int(status, "availableReplicas"))
      .Age(clock, object)
      .Add(ContainerNames(spec["template"]["spec"]))
      .Add(ContainerImages(spec["template"]["spec"]))
      .Add(selector_text);
}

// --- ReplicaSet ---

void DefaultReplicaSet(Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  core::DefaultPodTemplate(arena, spec, "template");
  Default(arena, spec, "replicas", Value(1));
}

void ValidateReplicaSet(const Call& call, Value object, Value old, FieldErrors& errors) {
  CheckReplicaSetSpec(object["spec"], TemplateOptions(call, old), errors);
}

void ValidateReplicaSetUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  CheckUnchangedMetadata(object, old, errors);
  CheckReplicaSetSpec(object["spec"], TemplateOptions(call, old), errors);
  core::CheckSelectorUnchanged(object["spec"]["selector"], old["spec"]["selector"], errors);
}

void ValidateReplicaSetStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  const FieldPath path("status");
  const Value status = object["status"];
  CheckUnchangedMetadata(object, old, errors);
  core::CheckStatusCounts(status,
                          {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                           "observedGeneration", "terminatingReplicas"},
                          path, errors);
  core::CheckNotMoreThan(status, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}, "replicas",
                         kMoreThanReplicas, path, errors);
  core::CheckNotMoreThan(status, {"availableReplicas"}, "readyReplicas", kMoreThanReady, path, errors);
}

void ReplicaSetRow(Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"], status = object["status"];
  Row(arena, cells)
      .Name(object)
      .Add(Int(spec, "replicas"))
      .Add(Int(status, "replicas"))
      .Add(Int(status, "readyReplicas"))
      .Age(clock, object)
      .Add(ContainerNames(spec["template"]["spec"]))
      .Add(ContainerImages(spec["template"]["spec"]))
      .Add(LabelSelectorText(spec["selector"]));
}

// --- DaemonSet ---

namespace {

constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

// apps/v1 carries spec.templateGeneration of old in an annotation.
std::int64_t TemplateGeneration(Value object) {
  return base::ParseInt64(Text(object["metadata"]["annotations"], kTemplateGeneration)).value_or(0);
}

void SetTemplateGeneration(Arena& arena, Value object, std::int64_t generation) {
  Value metadata = object.EnsureMap(arena, "metadata");
  metadata.EnsureMap(arena, "annotations")
      .Set(arena, kTemplateGeneration, Value::String(arena, std::to_string(generation)));
}

void CheckDaemonSetStrategy(Value strategy, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kTypes[] = {"RollingUpdate", "OnDelete"};
  const std::string_view type = Text(strategy, "type");
  if (type == "OnDelete") return;
  if (type != "RollingUpdate")
    return errors.push_back(NotSupportedStruct(path, strategy, "DaemonSetUpdateStrategy", kTypes));
  const Value rolling = strategy["rollingUpdate"];
  const FieldPath at = path.Child("rollingUpdate");
  if (rolling.is_null()) return errors.push_back(Required(at));
  for (const std::string_view key : {"maxUnavailable", "maxSurge"}) CheckIntOrPercent(rolling, key, at, errors);
  for (const std::string_view key : {"maxUnavailable", "maxSurge"}) CheckAtMost100Percent(rolling, key, at, errors);
  const bool unavailable = IntOrPercent(rolling["maxUnavailable"]) != 0, surge = IntOrPercent(rolling["maxSurge"]) != 0;
  if (unavailable && surge) {
    errors.push_back(
        Invalid(at.Child("maxSurge"), rolling["maxSurge"], "may not be set when maxUnavailable is non-zero"));
  } else if (!unavailable && !surge) {
    errors.push_back(Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"));
  }
}

void CheckDaemonSetSpec(Value object, const PodOptions& options, bool allow_invalid_selector, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"], selector = spec["selector"];
  const FieldPath template_path = path.Child("template");
  validation::ValidateLabelSelector(selector, path.Child("selector"), errors, allow_invalid_selector);
  if (selector.is_null() || LabelSelectorParses(selector)) {
    core::CheckTemplateLabels(spec["template"], LabelSelectorMatches(selector, spec["template"]["metadata"]["labels"]),
                              template_path, errors);
  }
  if (!selector.is_null() && LabelSelectorEmpty(selector)) {
    errors.push_back(InvalidHub(path.Child("selector"), CoreHubTypes(), selector, "~LabelSelector",
                                "empty selector is invalid for daemonset"));
  }
  core::ValidatePodTemplateSpec(spec["template"], options, template_path, errors);
  core::CheckRunsForever(spec["template"], "DaemonSet", template_path, errors);
  CheckNonnegative(spec, "minReadySeconds", path, errors);
  validation::ValidateNonnegative(TemplateGeneration(object), path.Child("templateGeneration"), errors);
  CheckDaemonSetStrategy(spec["updateStrategy"], path.Child("updateStrategy"), errors);
  CheckNonnegative(spec, "revisionHistoryLimit", path, errors);
}

}  // namespace

void DefaultDaemonSet(Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  // Upstream's conversion writes the hub's templateGeneration here, whoever sent the object, so that the writer owns
  // it.
  Value annotations = object.EnsureMap(arena, "metadata").EnsureMap(arena, "annotations");
  if (!annotations.Has(kTemplateGeneration)) annotations.Set(arena, kTemplateGeneration, "0");
  core::DefaultPodTemplate(arena, spec, "template");
  Value strategy = spec.EnsureMap(arena, "updateStrategy");
  DefaultText(arena, strategy, "type", "RollingUpdate");
  if (Text(strategy, "type") == "RollingUpdate") {
    Value rolling = strategy.EnsureMap(arena, "rollingUpdate");
    Default(arena, rolling, "maxUnavailable", Value(1));
    Default(arena, rolling, "maxSurge", Value(0));
  }
  Default(arena, spec, "revisionHistoryLimit", Value(10));
}

void PrepareDaemonSet(const Call& call, Value object, Value old) {
  PrepareTemplate(call, object, old);
  if (old.is_null()) {
    Value metadata = object["metadata"];
    metadata.Set(call.arena, "generation", Value(1));
    return SetTemplateGeneration(call.arena, object, std::max<std::int64_t>(TemplateGeneration(object), 1));
  }
  const bool same_template =
      SemanticEqual(object["spec"]["template"], old["spec"]["template"], schema::types::core_v1::kPodTemplateSpec);
  SetTemplateGeneration(call.arena, object, TemplateGeneration(old) + (same_template ? 0 : 1));
  if (!SemanticEqual(object["spec"], old["spec"], schema::types::apps_v1::kDaemonSetSpec))
    SetGeneration(call, object, old);
}

void PrepareDaemonSetStatus(const Call& call, Value object, Value old) {
  SetTemplateGeneration(call.arena, object, TemplateGeneration(old));  // a part of the spec upstream
}

void ValidateDaemonSet(const Call& call, Value object, Value old, FieldErrors& errors) {
  CheckDaemonSetSpec(object, TemplateOptions(call, old), false, errors);
}

void ValidateDaemonSetUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  CheckUnchangedMetadata(object, old, errors);
  core::CheckSelectorUnchanged(object["spec"]["selector"], old["spec"]["selector"], errors);
  CheckDaemonSetSpec(object, TemplateOptions(call, old), !LabelSelectorParses(old["spec"]["selector"]), errors);
}

void WarnDaemonSet(const Call& call, Value object, Value old) {
  if (!old.is_null() && TemplateGeneration(object) == TemplateGeneration(old)) return;
  WarnTemplate(call, object, {});
}

void ValidateDaemonSetStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  const FieldPath path("status");
  CheckUnchangedMetadata(object, old, errors);
  core::CheckStatusCounts(
      object["status"],
      {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
       "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"},
      path, errors);
  core::CheckNotDecremented(object["status"], old["status"], "collisionCount", path, errors);
}

void DaemonSetRow(Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"], status = object["status"], pod_spec = spec["template"]["spec"];
  Row row(arena, cells);
  row.Name(object);
  for (const std::string_view key : {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                                     "updatedNumberScheduled", "numberAvailable"}) {
    row.Add(Int(status, key));
  }
  row.Add(LabelsText(pod_spec["nodeSelector"]))
      .Age(clock, object)
      .Add(ContainerNames(pod_spec))
      .Add(ContainerImages(pod_spec));
  row.Add(LabelSelectorText(spec["selector"]));
}

// --- ControllerRevision ---

namespace {

// Upstream prints a runtime object as its JSON.
std::string RawText(Value data) { return data.is_raw() ? object::ToJSON(data) : "null"; }

}  // namespace

void ValidateControllerRevision(const Call&, Value object, Value old, FieldErrors& errors) {
  CheckNonnegative(object, "revision", FieldPath(), errors);
  if (!old.is_null()) return;
  const FieldPath path("data");
  const std::string_view data = base::Trim(object["data"].as_raw());
  if (data.empty() || data == "null") {
    errors.push_back(Required(path, "data is mandatory"));
  } else if (!data.starts_with('{')) {
    errors.push_back(Required(path, "data must be a valid JSON object"));
  }
}

void ValidateControllerRevisionUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  CheckUnchangedMetadata(object, old, errors);
  validation::ValidateObjectMeta(object["metadata"], true, validation::NameIsDNSSubdomain, FieldPath("metadata"),
                                 errors);
  ValidateControllerRevision(call, object, old, errors);
  // Byte by byte, as upstream: after a patch the data is in compact form, so what was stored with spaces cannot be
  // patched.
  if (object["data"].as_raw() != old["data"].as_raw()) {
    errors.push_back({meta::FieldError::Type::kInvalid, "data", RawText(object["data"]), "field is immutable"});
  }
}

void ControllerRevisionRow(Arena& arena, const base::Clock& clock, Value object, Value cells) {
  std::string controller = "<none>";
  for (const Value owner : object["metadata"]["ownerReferences"].items()) {
    if (!Bool(owner, "controller")) continue;
    const std::string_view version = Text(owner, "apiVersion");
    const std::size_t slash = version.find('/');
    controller = base::ToLower(Text(owner, "kind"));
    if (slash != std::string_view::npos) controller += "." + base::ToLower(version.substr(0, slash));
    controller.append("/").append(Text(owner, "name"));
    break;
  }
  Row(arena, cells).Name(object).Add(controller).Add(Int(object, "revision")).Age(clock, object);
}

}  // namespace keelson::registry::apps
