// Containers of a pod: regular, init and ephemeral ones.
#pragma once

#include <map>
#include <string>

#include "registry/core/pod_options.h"
#include "registry/fields.h"

namespace keelson::registry::core {

// Facts of the pod that validation of one container needs.
struct PodFacts {
  const PodOptions& options;
  std::map<std::string, Value, std::less<>> volumes;  // those without errors
  NameSet claims;                                     // spec.resourceClaims
  Value grace_period;                                 // terminationGracePeriodSeconds
  std::string_view restart_policy;
  std::string_view os;
  bool host_users = true;
};

void ValidateContainers(Value spec, const PodFacts& facts, const FieldPath& path, FieldErrors& errors);
void ValidateInitContainers(Value spec, const PodFacts& facts, const FieldPath& path, FieldErrors& errors);
void ValidateEphemeralContainers(Value spec, const PodFacts& facts, const FieldPath& path, FieldErrors& errors);
// Pods only, not templates: the image has no white space around it.
void CheckImagePadding(Value container, const FieldPath& path, FieldErrors& errors);

// probes.cc
void ValidateProbes(Value container, const PodFacts& facts, const FieldPath& path, FieldErrors& errors);
void ValidateLifecycle(Value lifecycle, const PodFacts& facts, const FieldPath& path, FieldErrors& errors);
// environment.cc
void ValidateEnvironment(Value container, const FieldPath& path, FieldErrors& errors);
void ValidateFileKeyVolumes(Value spec, const FieldPath& path, FieldErrors& errors);
// mounts.cc
void ValidateMounts(Value container, const PodFacts& facts, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::core
