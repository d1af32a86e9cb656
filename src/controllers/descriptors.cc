#include <array>

#include "controllers/cluster_role_aggregation.h"
#include "controllers/controller.h"
#include "controllers/garbage_collector.h"
#include "controllers/legacy_token_cleaner.h"
#include "controllers/names.h"
#include "controllers/namespace_controller.h"
#include "controllers/resource_quota.h"
#include "controllers/root_ca_publisher.h"
#include "controllers/service_accounts.h"
#include "controllers/ttl_after_finished.h"

namespace keelson::controllers {
namespace {

constexpr std::array kDescriptors = {
    ControllerDescriptor{"serviceaccount-controller", "service-account-controller", NewServiceAccountsController},
    ControllerDescriptor{"root-ca-certificate-publisher-controller", "root-ca-cert-publisher", NewRootCAPublisher},
    ControllerDescriptor{"namespace-controller", "namespace-controller", NewNamespaceController},
    ControllerDescriptor{"garbage-collector-controller", "generic-garbage-collector", NewGarbageCollector},
    ControllerDescriptor{"clusterrole-aggregation-controller", "clusterrole-aggregation-controller",
                         NewClusterRoleAggregation},
    ControllerDescriptor{"resourcequota-controller", "resourcequota-controller", NewResourceQuotaController},
    ControllerDescriptor{"legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner",
                         NewLegacyTokenCleaner},
    ControllerDescriptor{"ttl-after-finished-controller", "ttl-after-finished-controller", NewTTLAfterFinished},
};

constexpr bool NamesMatch() {
  if (kDescriptors.size() != kControllerNames.size()) return false;
  for (std::size_t i = 0; i < kDescriptors.size(); ++i) {
    if (kDescriptors[i].name != kControllerNames[i]) return false;
  }
  return true;
}
static_assert(NamesMatch());

}  // namespace

std::span<const ControllerDescriptor> Descriptors() { return kDescriptors; }

}  // namespace keelson::controllers
