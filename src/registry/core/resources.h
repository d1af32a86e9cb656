// Resource names, resource requirements, and what follows from them: quality of service, sums over containers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "registry/core/pod_options.h"
#include "registry/fields.h"
#include "registry/quantities.h"

namespace keelson::registry::core {

bool IsHugePageResource(std::string_view name);  // hugepages-*
bool IsNativeResource(std::string_view name);    // no domain, or kubernetes.io/
bool IsExtendedResource(std::string_view name);
bool IsOvercommitAllowed(std::string_view name);
bool IsStandardQuotaResource(std::string_view name);
bool IsSupportedPodLevelResource(std::string_view name);

void CheckResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors);
void CheckContainerResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors);
void CheckQuotaResourceName(std::string_view name, const FieldPath& path, FieldErrors& errors);
// Not negative, whole where the resource is counted.
void CheckResourceQuantity(std::string_view name, Value quantity, const FieldPath& path, FieldErrors& errors);
void CheckNonnegativeQuantity(Value quantity, const FieldPath& path, FieldErrors& errors);
void CheckPositiveQuantity(Value quantity, const FieldPath& path, FieldErrors& errors);
// "must be a valid resource quantity" for a negative one.
void CheckBasicResource(Value quantity, const FieldPath& path, FieldErrors& errors);

enum class ResourceScope { kContainer, kPod };
void ValidateResourceRequirements(Value requirements, ResourceScope scope, const NameSet& claims,
                                  const PodOptions& options, const FieldPath& path, FieldErrors& errors);
// Overhead of the container runtime, in a pod or a runtime class: validated as the limits of a container.
void ValidateOverhead(Value resources, const PodOptions& options, const FieldPath& path, FieldErrors& errors);
// The pod's own spec.resources against its containers.
void ValidatePodLevelResources(Value spec, const NameSet& claims, const PodOptions& options, const FieldPath& path,
                               FieldErrors& errors);

using ResourceList = std::map<std::string, Quantity, std::less<>>;
// Sum over all containers, with sidecars and init containers counted as the scheduler does. `key`: requests or
// limits.
ResourceList AggregateContainers(Value pod_spec, std::string_view key);

// Guaranteed, Burstable or BestEffort.
std::string_view ComputePodQOS(Value pod_spec);

// Rounds every quantity up to thousandths, as defaulting does.
void RoundResourceList(base::Arena& arena, Value list);

}  // namespace keelson::registry::core
