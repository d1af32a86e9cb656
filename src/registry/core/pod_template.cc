#include "registry/core/pod_template.h"

#include "registry/cells.h"
#include "registry/core/pod_spec.h"
#include "registry/semantic.h"

namespace keelson::registry::core {

void DefaultPodTemplateObject(base::Arena& arena, Value object) { DefaultPodTemplate(arena, object, "template"); }

void PreparePodTemplate(const Call& call, Value object, Value old) {
  DropDisabledPodFields(call, object["template"]["spec"], old["template"]["spec"]);
  Value metadata = object.EnsureMap(call.arena, "metadata");
  if (old.is_null()) {
    metadata.Set(call.arena, "generation", Value(1));
  } else if (!SemanticEqual(object["template"], old["template"], "core/v1", "PodTemplateSpec")) {
    metadata.Set(call.arena, "generation", Value(Int(old["metadata"], "generation") + 1));
  }
}

void ValidatePodTemplate(const Call& call, Value object, Value, FieldErrors& errors) {
  ValidatePodTemplateSpec(object["template"], PodOptionsFor(call, false, {}, {}), FieldPath("template"), errors);
}

void ValidatePodTemplateUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  const Value before = old["template"];
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  ValidatePodTemplateSpec(object["template"], PodOptionsFor(call, false, before["spec"], before["metadata"]), FieldPath("template"), errors);
}

void WarnPodTemplate(const Call& call, Value object, Value) {
  WarnPodSpec(call, object["template"]["spec"], object["template"]["metadata"], FieldPath("template"));
}

void PodTemplateRow(base::Arena& arena, const base::Clock&, Value object, Value cells) {
  const Value spec = object["template"]["spec"];
  Row(arena, cells).Name(object).Add(ContainerNames(spec)).Add(ContainerImages(spec)).Add(LabelsText(object["template"]["metadata"]["labels"]));
}

}  // namespace keelson::registry::core
