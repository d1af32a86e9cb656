// Pod specs, of pods and of templates: defaults and rules.
#pragma once

#include "registry/core/pod_options.h"
#include "registry/fields.h"

namespace keelson::registry::core {

// The defaults of a pod spec anywhere; a pod's own are in pod.h. Also keeps serviceAccount and serviceAccountName the
// same.
void DefaultPodSpec(base::Arena& arena, Value spec);
void DefaultPodTemplate(base::Arena& arena, Value holder,
                        std::string_view key);  // holder[key].spec, made where it is missing
void DefaultClaimSpec(base::Arena& arena, Value spec);

// `metadata` is null for templates.
void ValidatePodSpec(Value spec, Value metadata, const PodOptions& options, const FieldPath& path, FieldErrors& errors);
void ValidatePodAnnotations(Value annotations, Value spec, const PodOptions& options, const FieldPath& path,
                            FieldErrors& errors);
void ValidatePodAnnotationUpdates(Value pod, Value old, const PodOptions& options, const FieldPath& path,
                                  FieldErrors& errors);
void ValidatePodTemplateSpec(Value pod_template, const PodOptions& options, const FieldPath& path, FieldErrors& errors);

// Removes fields whose gate is off unless the old spec has them (null on create).
void DropDisabledPodFields(const Call& call, Value spec, Value old_spec);

// Warnings about a pod or template (GetWarningsForPod). `prefix`: path of the template; empty for a pod.
void WarnPodSpec(const Call& call, Value spec, Value metadata, const FieldPath& prefix);
void WarnName(const Call& call, Value object, std::string_view use);  // not a DNS label

}  // namespace keelson::registry::core
