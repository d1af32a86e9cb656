#include "registry/core/pod_template.h"

#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/pod_spec.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::core {

void DefaultPodTemplateObject(base::Arena& arena, Value object) { DefaultPodTemplate(arena, object, "template"); }

void PreparePodTemplate(const Call& call, Value object, Value old) {
  DropDisabledPodFields(call, object["template"]["spec"], old["template"]["spec"]);
  Value metadata = object.EnsureMap(call.arena, "metadata");
  if (old.is_null()) {
    metadata.Set(call.arena, "generation", Value(1));
  } else if (!SemanticEqual(object["template"], old["template"], schema::types::core_v1::kPodTemplateSpec)) {
    metadata.Set(call.arena, "generation", Value(Int(old["metadata"], "generation") + 1));
  }
}

void ValidatePodTemplate(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidatePodTemplateSpec(object["template"], PodOptionsFor(call, false, {}, {}), FieldPath("template"), errors);
}

void ValidatePodTemplateUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  const Value before = old["template"];
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  ValidatePodTemplateSpec(object["template"], PodOptionsFor(call, false, before["spec"], before["metadata"]),
                          FieldPath("template"), errors);
}

void WarnPodTemplate(const Call& call, Value object, Value old) {
  if (!old.is_null() && Int(object["metadata"], "generation") == Int(old["metadata"], "generation")) return;
  WarnPodSpec(call, object["template"]["spec"], object["template"]["metadata"], FieldPath("template"));
}

void PodTemplateRow(base::Arena& arena, const base::Clock&, Value object, Value cells) {
  const Value spec = object["template"]["spec"];
  Row(arena, cells)
      .Name(object)
      .Add(ContainerNames(spec))
      .Add(ContainerImages(spec))
      .Add(LabelsText(object["template"]["metadata"]["labels"]));
}

void CheckTemplateLabels(Value pod_template, bool matches, const FieldPath& path, FieldErrors& errors) {
  if (matches) return;
  errors.push_back(InvalidHub(path.Child("metadata").Child("labels"), CoreHubTypes(),
                              pod_template["metadata"]["labels"], "{}string",
                              "`selector` does not match template `labels`"));
}

void CheckRunsForever(Value pod_template, std::string_view kind, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kAlways[] = {"Always"};
  const FieldPath spec = path.Child("spec");
  CheckOneOf(pod_template["spec"]["restartPolicy"], kAlways, spec.Child("restartPolicy"), errors);
  if (IsSet(pod_template["spec"], "activeDeadlineSeconds")) {
    errors.push_back(Forbidden(spec.Child("activeDeadlineSeconds"),
                               "activeDeadlineSeconds in " + std::string(kind) + " is not Supported"));
  }
}

void CheckWorkloadSelector(Value selector, std::string_view kind, const FieldPath& path, FieldErrors& errors) {
  if (selector.is_null()) return errors.push_back(Required(path));
  validation::ValidateLabelSelector(selector, path, errors);
  if (LabelSelectorEmpty(selector)) {
    errors.push_back(InvalidHub(path, CoreHubTypes(), selector, "~LabelSelector",
                                "empty selector is invalid for " + std::string(kind)));
  }
}

void CheckSelectorUnchanged(Value now, Value old, FieldErrors& errors) {
  if (now.is_null() == old.is_null() && SemanticEqual(now, old, schema::types::meta_v1::kLabelSelector)) return;
  errors.push_back(
      InvalidHub(FieldPath("spec").Child("selector"), CoreHubTypes(), now, "*~LabelSelector", "field is immutable"));
}

void CheckStatusCounts(Value status, std::initializer_list<std::string_view> keys, const FieldPath& path,
                       FieldErrors& errors) {
  for (const std::string_view key : keys) CheckNonnegative(status, key, path, errors);
}

void CheckNotMoreThan(Value status, std::initializer_list<std::string_view> keys, std::string_view total,
                      std::string_view message, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view key : keys) {
    if (Int(status, key) > Int(status, total))
      errors.push_back(Invalid(path.Child(key), Value(Int(status, key)), message));
  }
}

void CheckNotDecremented(Value now, Value old, std::string_view key, const FieldPath& path, FieldErrors& errors) {
  if (!IsSet(old, key) || (IsSet(now, key) && Int(now, key) >= Int(old, key))) return;
  errors.push_back(Invalid(path.Child(key), Value(Int(now, key)), "cannot be decremented"));
}

}  // namespace keelson::registry::core
