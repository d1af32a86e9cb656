// FindStrategy and FindConversion over all groups.
#include "registry/autoscaling/conversion.h"
#include "registry/catalog/conversion.h"
#include "registry/catalog/groups.h"
#include "registry/events/conversion.h"
#include "registry/resource/conversion.h"
#include "registry/strategy.h"

namespace keelson::registry {
namespace {

void DefaultHorizontalPodAutoscalerV1(base::Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  if (spec["minReplicas"].is_null()) spec.Set(arena, "minReplicas", 1);
}

constexpr Conversion kConversions[] = {
    {"autoscaling", "v1", "HorizontalPodAutoscaler", "autoscaling", "v2", HorizontalPodAutoscalerToHub,
     HorizontalPodAutoscalerFromHub, DefaultHorizontalPodAutoscalerV1},
    {"events.k8s.io", "v1", "Event", "", "v1", EventToHub, EventFromHub},
    {"resource.k8s.io", "v1beta1", "ResourceClaim", "resource.k8s.io", "v1", ResourceClaimToHub, ResourceClaimFromHub},
    {"resource.k8s.io", "v1beta1", "ResourceClaimTemplate", "resource.k8s.io", "v1", ResourceClaimTemplateToHub,
     ResourceClaimTemplateFromHub},
    {"resource.k8s.io", "v1beta1", "ResourceSlice", "resource.k8s.io", "v1", ResourceSliceToHub, ResourceSliceFromHub},
};

}  // namespace

const Conversion* FindConversion(std::string_view group, std::string_view version, std::string_view kind) {
  for (const Conversion& conversion : kConversions) {
    if (conversion.group == group && conversion.version == version && conversion.kind == kind) return &conversion;
  }
  return nullptr;
}

const Strategy* FindStrategy(std::string_view group, std::string_view kind) {
  for (const StrategiesOfGroup strategies : RegisteredGroups()) {
    for (const Strategy& strategy : strategies()) {
      if (strategy.group == group && strategy.kind == kind) return &strategy;
    }
  }
  return nullptr;
}

}  // namespace keelson::registry
