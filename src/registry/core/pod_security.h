// Security contexts of pods and containers, their profiles, and the same in annotations of old.
#pragma once

#include "registry/core/pod_options.h"
#include "registry/fields.h"

namespace keelson::registry::core {

void ValidatePodSecurityContext(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors);
void ValidateContainerSecurityContext(Value context, bool host_users, const PodOptions& options, const FieldPath& path,
                                      FieldErrors& errors);
void ValidateAppArmorProfile(Value profile, const FieldPath& path, FieldErrors& errors);
void ValidateWindowsHostProcess(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors);
void ValidateHostUsers(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors);
void ValidateOS(Value spec, const FieldPath& path, FieldErrors& errors);  // fields that the pod's os forbids
// The sysctl may not be set in a pod that shares the host's namespace; "" when it may.
std::string_view HostSysctlProblem(std::string_view sysctl, Value spec);

// Annotations. `annotations` may be null.
void ValidateProfileAnnotations(Value annotations, Value spec, const FieldPath& path, FieldErrors& errors);
// On create and in templates: an annotation and the field must say the same.
void ValidateProfilesAgree(Value annotations, Value spec, const FieldPath& path, FieldErrors& errors);
// {type, localhostProfile} of an AppArmor annotation; null where it says nothing valid.
Value AppArmorFieldForAnnotation(base::Arena& arena, std::string_view annotation);

inline constexpr std::string_view kAppArmorAnnotationPrefix = "container.apparmor.security.beta.kubernetes.io/";
inline constexpr std::string_view kSeccompPodAnnotation = "seccomp.security.alpha.kubernetes.io/pod";
inline constexpr std::string_view kSeccompContainerAnnotationPrefix = "container.seccomp.security.alpha.kubernetes.io/";

// Calls with every container and its path: init containers, containers, ephemeral containers.
template <class Function>
void VisitContainers(Value spec, const FieldPath& path, Function&& function) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const FieldPath at = path.Child(list);
    std::int64_t index = 0;
    for (const Value container : spec[list].items()) function(container, at.Index(index++));
  }
}

}  // namespace keelson::registry::core
