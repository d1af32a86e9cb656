// StatefulSet.
#include "registry/apps/workloads.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/persistent_volume_claim.h"
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

constexpr std::string_view kMutable[] = {"replicas",
                                         "template",
                                         "updateStrategy",
                                         "minReadySeconds",
                                         "ordinals",
                                         "revisionHistoryLimit",
                                         "persistentVolumeClaimRetentionPolicy"};

struct SetOptions {
  bool skip_service_name = false;     // immutable, so tolerated on update
  bool skip_claim_templates = false;  // likewise
  bool skip_template = false;         // the old object already breaks the rules
};

void CheckUpdateStrategy(Value strategy, const FieldPath& path, FieldErrors& errors) {
  const std::string_view type = Text(strategy, "type");
  const Value rolling = strategy["rollingUpdate"];
  const FieldPath at = path.Child("rollingUpdate");
  if (type.empty()) {
    errors.push_back(Required(path));
  } else if (type == "OnDelete") {
    if (!rolling.is_null()) {
      errors.push_back(InvalidHub(at, CoreHubTypes(), rolling, "RollingUpdateStatefulSetStrategy",
                                  "only allowed for updateStrategy 'RollingUpdate'"));
    }
  } else if (type != "RollingUpdate") {
    errors.push_back(InvalidHub(path, CoreHubTypes(), strategy, "StatefulSetUpdateStrategy",
                                "must be 'RollingUpdate' or 'OnDelete'"));
  } else if (!rolling.is_null()) {
    CheckNonnegative(rolling, "partition", at, errors);
    const Value most = rolling["maxUnavailable"];
    if (most.is_null()) return;
    const FieldPath most_path = at.Child("maxUnavailable");
    rules::ValidatePositiveIntOrPercent(most, most_path, errors);
    if (most.as_int() == 0 && (!most.is_string() || most.as_string() == "0%"))
      errors.push_back(Invalid(most_path, most, "cannot be 0"));
    rules::IsNotMoreThan100Percent(most, most_path, errors);
  }
}

// The template as pods will be made of it: hostname and subdomain are the controller's, claims become volumes.
Value EffectiveTemplate(Arena& arena, Value spec) {
  Value pod_template = spec["template"].Clone(arena);
  Value pod = pod_template["spec"];
  if (pod.is_null()) return pod_template;
  pod.Erase("subdomain");
  pod.Erase("hostname");
  if (spec["volumeClaimTemplates"].empty()) return pod_template;
  Value volumes = Value::List(arena);
  NameSet claimed;
  for (const Value claim : spec["volumeClaimTemplates"].items()) {
    const std::string_view name = Text(claim["metadata"], "name");
    if (!claimed.emplace(name).second) continue;
    Value source = Value::Map(arena, 1);
    source.Set(arena, "claimName", Value(name));
    Value volume = Value::Map(arena, 2);
    volume.Set(arena, "name", Value(name));
    volume.Set(arena, "persistentVolumeClaim", source);
    volumes.Append(arena, volume);
  }
  for (const Value volume : pod["volumes"].items()) {
    if (!claimed.contains(Text(volume, "name"))) volumes.Append(arena, volume);
  }
  pod.Set(arena, "volumes", volumes);
  return pod_template;
}

void CheckTemplate(Arena& arena, Value spec, const PodOptions& options, const SetOptions& set, const FieldPath& path,
                   FieldErrors& errors) {
  const Value selector = spec["selector"];
  const Value pod_template = EffectiveTemplate(arena, spec), metadata = pod_template["metadata"];
  const bool matches =
      selector.is_null() ? false : LabelSelectorEmpty(selector) || LabelSelectorMatches(selector, metadata["labels"]);
  core::CheckTemplateLabels(pod_template, matches, path, errors);
  if (!set.skip_template) core::ValidatePodTemplateSpec(pod_template, options, path, errors);
  validation::ValidateLabels(metadata["labels"], path.Child("labels"), errors);  // again, as upstream
  validation::ValidateAnnotations(metadata["annotations"], path.Child("annotations"), errors);
  core::ValidatePodAnnotations(metadata["annotations"], pod_template["spec"], options, path.Child("annotations"),
                               errors);
}

void CheckSpec(Arena& arena, Value spec, const PodOptions& options, const SetOptions& set, FieldErrors& errors) {
  constexpr std::string_view kRetention[] = {"Retain", "Delete"};
  const FieldPath path("spec");
  const std::string_view policy = Text(spec, "podManagementPolicy");
  if (policy.empty()) {
    errors.push_back(Required(path.Child("podManagementPolicy")));
  } else if (policy != "OrderedReady" && policy != "Parallel") {
    errors.push_back(Invalid(path.Child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'"));
  }
  CheckUpdateStrategy(spec["updateStrategy"], path.Child("updateStrategy"), errors);
  if (const Value retention = spec["persistentVolumeClaimRetentionPolicy"]; !retention.is_null()) {
    const FieldPath at = path.Child("persistentVolumeClaimRetentionPolicy");
    for (const std::string_view key : {"whenDeleted", "whenScaled"})
      CheckOneOf(retention[key], kRetention, at.Child(key), errors);
  }
  if (!set.skip_claim_templates) {
    const FieldPath claims = path.Child("volumeClaimTemplates");
    std::int64_t index = 0;
    for (const Value claim : spec["volumeClaimTemplates"].items()) {
      const FieldPath at = claims.Index(index++);
      core::ValidateClaimSpec(claim["spec"], {}, at.Child("spec"), errors);
    }
  }
  for (const std::string_view key : {"replicas", "minReadySeconds"}) CheckNonnegative(spec, key, path, errors);
  if (IsSet(spec, "ordinals"))
    validation::ValidateNonnegative(Int(spec["ordinals"], "start"), path.Child("ordinals.start"), errors);
  if (!set.skip_service_name && !Text(spec, "serviceName").empty())
    CheckDNSLabel(Text(spec, "serviceName"), path.Child("serviceName"), errors);
  const Value selector = spec["selector"];
  const FieldPath template_path = path.Child("template");
  core::CheckWorkloadSelector(selector, "statefulset", path.Child("selector"), errors);
  if (!selector.is_null() && !LabelSelectorParses(selector)) {
    errors.push_back(InvalidHub(path.Child("selector"), CoreHubTypes(), selector, "~LabelSelector", ""));
  } else {
    CheckTemplate(arena, spec, options, set, template_path, errors);
  }
  core::CheckRunsForever(spec["template"], "StatefulSet", template_path, errors);
}

PodOptions TemplateOptions(const Call& call, Value old) {
  const Value before = old["spec"]["template"];
  return core::PodOptionsFor(call, false, before["spec"], before["metadata"]);
}

}  // namespace

void DefaultStatefulSet(Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  core::DefaultPodTemplate(arena, spec, "template");
  for (Value claim : spec["volumeClaimTemplates"].items()) {
    claim.Set(arena, "apiVersion", "v1");  // conversion says what they are
    claim.Set(arena, "kind", "PersistentVolumeClaim");
    core::DefaultClaim(arena, claim);
  }
  DefaultText(arena, spec, "podManagementPolicy", "OrderedReady");
  Value strategy = spec.EnsureMap(arena, "updateStrategy");
  if (Text(strategy, "type").empty()) {
    strategy.Set(arena, "type", "RollingUpdate");
    strategy.EnsureMap(arena, "rollingUpdate");
  }
  if (Text(strategy, "type") == "RollingUpdate" && IsSet(strategy, "rollingUpdate")) {
    Default(arena, strategy["rollingUpdate"], "partition", Value(0));
  }
  Value retention = spec.EnsureMap(arena, "persistentVolumeClaimRetentionPolicy");
  DefaultText(arena, retention, "whenDeleted", "Retain");
  DefaultText(arena, retention, "whenScaled", "Retain");
  Default(arena, spec, "replicas", Value(1));
  Default(arena, spec, "revisionHistoryLimit", Value(10));
}

void PrepareStatefulSet(const Call& call, Value object, Value old) {
  PrepareTemplate(call, object, old);
  const bool used = IsSet(old["spec"]["updateStrategy"]["rollingUpdate"], "maxUnavailable");
  if (!used && !FeatureEnabled(call, "MaxUnavailableStatefulSet"))
    object["spec"]["updateStrategy"]["rollingUpdate"].Erase("maxUnavailable");
  Value metadata = object["metadata"];
  if (old.is_null()) {
    metadata.Set(call.arena, "generation", Value(1));
  } else if (!SemanticEqual(object["spec"], old["spec"], schema::types::apps_v1::kStatefulSetSpec)) {
    metadata.Set(call.arena, "generation", Value(Int(old["metadata"], "generation") + 1));
  }
}

void ValidateStatefulSet(const Call& call, Value object, Value, FieldErrors& errors) {
  CheckSpec(call.arena, object["spec"], TemplateOptions(call, {}), {}, errors);
}

void ValidateStatefulSetUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  const PodOptions options = TemplateOptions(call, old);
  SetOptions set{.skip_service_name = true, .skip_claim_templates = true};
  FieldErrors of_old;
  CheckSpec(call.arena, old["spec"], options, set, of_old);
  set.skip_template = !of_old.empty();
  CheckSpec(call.arena, object["spec"], options, set, errors);
  Value masked = object["spec"].Clone(call.arena);
  for (const std::string_view key : kMutable) CopyMember(call.arena, masked, old["spec"], key);
  if (!SemanticEqual(masked, old["spec"], schema::types::apps_v1::kStatefulSetSpec)) {
    errors.push_back(Forbidden(
        FieldPath("spec"),
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"));
  }
}

void ValidateStatefulSetStatusUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  const FieldPath path("status");
  const Value status = object["status"];
  core::CheckStatusCounts(status,
                          {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
                           "observedGeneration", "collisionCount"},
                          path, errors);
  core::CheckNotMoreThan(status, {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
                         "replicas", "cannot be greater than status.replicas", path, errors);
  core::CheckNotMoreThan(status, {"availableReplicas"}, "readyReplicas", "cannot be greater than status.readyReplicas",
                         path, errors);
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  core::CheckNotDecremented(status, old["status"], "collisionCount", path, errors);
}

void WarnStatefulSet(const Call& call, Value object, Value old) {
  WarnTemplate(call, object, old);
  const FieldPath spec("spec");
  const FieldPath claims = spec.Child("volumeClaimTemplates");
  std::int64_t index = 0;
  for (const Value claim : object["spec"]["volumeClaimTemplates"].items()) {
    const FieldPath at = claims.Index(index++);
    core::WarnClaimSpec(call, claim["spec"], old.is_null() ? at : at.Child("Spec"));
  }
  if (Int(object["spec"], "revisionHistoryLimit") < 0) {
    Warning(call, spec.Child("revisionHistoryLimit"),
            "a negative value retains all historical revisions; a value >= 0 is recommended");
  }
}

void StatefulSetRow(Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  Row(arena, cells)
      .Name(object)
      .Add(std::to_string(Int(object["status"], "readyReplicas")) + "/" + std::to_string(Int(spec, "replicas")))
      .Age(clock, object)
      .Add(ContainerNames(spec["template"]["spec"]))
      .Add(ContainerImages(spec["template"]["spec"]));
}

}  // namespace keelson::registry::apps
