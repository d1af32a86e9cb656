#include <array>

#include "controllers/controller.h"
#include "controllers/garbage_collector.h"
#include "controllers/names.h"
#include "controllers/namespace_controller.h"
#include "controllers/root_ca_publisher.h"
#include "controllers/service_accounts.h"

namespace keelson::controllers {
namespace {

constexpr std::array kDescriptors = {
    ControllerDescriptor{"serviceaccount-controller", "service-account-controller", NewServiceAccountsController},
    ControllerDescriptor{"root-ca-certificate-publisher-controller", "root-ca-cert-publisher", NewRootCAPublisher},
    ControllerDescriptor{"namespace-controller", "namespace-controller", NewNamespaceController},
    ControllerDescriptor{"garbage-collector-controller", "generic-garbage-collector", NewGarbageCollector},
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
