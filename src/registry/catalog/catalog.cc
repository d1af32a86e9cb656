// FindStrategy and FindConversion over all groups: the one place where a group is registered.
#include <span>

#include "registry/admissionregistration/strategies.h"
#include "registry/apiextensions/strategies.h"
#include "registry/apiregistration/strategies.h"
#include "registry/apps/strategies.h"
#include "registry/authentication/strategies.h"
#include "registry/authorization/strategies.h"
#include "registry/autoscaling/conversion.h"
#include "registry/autoscaling/strategies.h"
#include "registry/batch/strategies.h"
#include "registry/catalog/conversion.h"
#include "registry/certificates/strategies.h"
#include "registry/coordination/strategies.h"
#include "registry/core/strategies.h"
#include "registry/discovery/strategies.h"
#include "registry/events/conversion.h"
#include "registry/events/strategies.h"
#include "registry/flowcontrol/strategies.h"
#include "registry/networking/strategies.h"
#include "registry/node/strategies.h"
#include "registry/policy/strategies.h"
#include "registry/rbac/strategies.h"
#include "registry/resource/conversion.h"
#include "registry/resource/strategies.h"
#include "registry/scheduling/strategies.h"
#include "registry/storage_k8s_io/strategies.h"
#include "registry/storagemigration/strategies.h"
#include "registry/strategy.h"

namespace keelson::registry {
namespace {

struct Group {
  std::string_view name;
  std::span<const Strategy> (*strategies)();
};
constexpr Group kGroups[] = {
    {"", core::CoreStrategies},
    {"admissionregistration.k8s.io", AdmissionregistrationStrategies},
    {"apiextensions.k8s.io", ApiextensionsStrategies},
    {"apiregistration.k8s.io", ApiregistrationStrategies},
    {"apps", apps::AppsStrategies},
    {"authentication.k8s.io", AuthenticationStrategies},
    {"authorization.k8s.io", AuthorizationStrategies},
    {"autoscaling", AutoscalingStrategies},
    {"batch", batch::BatchStrategies},
    {"certificates.k8s.io", CertificatesStrategies},
    {"coordination.k8s.io", CoordinationStrategies},
    {"discovery.k8s.io", DiscoveryStrategies},
    {"events.k8s.io", EventsStrategies},
    {"flowcontrol.apiserver.k8s.io", FlowcontrolStrategies},
    {"networking.k8s.io", NetworkingStrategies},
    {"node.k8s.io", NodeStrategies},
    {"policy", PolicyStrategies},
    {"rbac.authorization.k8s.io", RBACStrategies},
    {"resource.k8s.io", ResourceStrategies},
    {"scheduling.k8s.io", SchedulingStrategies},
    {"storage.k8s.io", StorageStrategies},
    {"storagemigration.k8s.io", StoragemigrationStrategies},
};

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
  for (const Group& registered : kGroups) {
    if (registered.name != group) continue;
    for (const Strategy& strategy : registered.strategies()) {
      if (strategy.kind == kind) return &strategy;
    }
  }
  return nullptr;
}

}  // namespace keelson::registry
