// admissionregistration.k8s.io: webhook configurations, admission policies and their bindings.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {

std::span<const Strategy> AdmissionregistrationStrategies();

// The parts, one file each.
extern const Strategy kValidatingWebhookConfigurationStrategy;
extern const Strategy kMutatingWebhookConfigurationStrategy;
extern const Strategy kValidatingAdmissionPolicyStrategy;
extern const Strategy kMutatingAdmissionPolicyStrategy;
extern const Strategy kValidatingAdmissionPolicyBindingStrategy;
extern const Strategy kMutatingAdmissionPolicyBindingStrategy;

}  // namespace keelson::registry
