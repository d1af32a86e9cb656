// One maker per plugin; the table puts them in order.
#pragma once

#include <memory>

#include "admission/plugin_table.h"

namespace keelson::admission {

std::unique_ptr<Plugin> NewAlwaysAdmit(const PluginContext& context);
std::unique_ptr<Plugin> NewAlwaysDeny(const PluginContext& context);
std::unique_ptr<Plugin> NewAlwaysPullImages(const PluginContext& context);
std::unique_ptr<Plugin> NewCertificateApproval(const PluginContext& context);
std::unique_ptr<Plugin> NewCertificateSigning(const PluginContext& context);
std::unique_ptr<Plugin> NewCertificateSubjectRestriction(const PluginContext& context);
std::unique_ptr<Plugin> NewClusterTrustBundleAttest(const PluginContext& context);
std::unique_ptr<Plugin> NewDefaultIngressClass(const PluginContext& context);
std::unique_ptr<Plugin> NewDefaultStorageClass(const PluginContext& context);
std::unique_ptr<Plugin> NewDefaultTolerationSeconds(const PluginContext& context);
std::unique_ptr<Plugin> NewDenyServiceExternalIPs(const PluginContext& context);
std::unique_ptr<Plugin> NewEventRateLimit(const PluginContext& context);
std::unique_ptr<Plugin> NewExtendedResourceToleration(const PluginContext& context);
std::unique_ptr<Plugin> NewImagePolicyWebhook(const PluginContext& context);
std::unique_ptr<Plugin> NewJobValidation(const PluginContext& context);
std::unique_ptr<Plugin> NewLimitPodHardAntiAffinityTopology(const PluginContext& context);
std::unique_ptr<Plugin> NewLimitRanger(const PluginContext& context);
std::unique_ptr<Plugin> NewMutatingAdmissionPolicy(const PluginContext& context);
std::unique_ptr<Plugin> NewMutatingAdmissionWebhook(const PluginContext& context);
std::unique_ptr<Plugin> NewNamespaceAutoProvision(const PluginContext& context);
std::unique_ptr<Plugin> NewNamespaceExists(const PluginContext& context);
std::unique_ptr<Plugin> NewNamespaceLifecycle(const PluginContext& context);
std::unique_ptr<Plugin> NewNodeRestriction(const PluginContext& context);
std::unique_ptr<Plugin> NewOwnerReferencesPermissionEnforcement(const PluginContext& context);
std::unique_ptr<Plugin> NewPersistentVolumeClaimResize(const PluginContext& context);
std::unique_ptr<Plugin> NewPodGroupProtection(const PluginContext& context);
std::unique_ptr<Plugin> NewPodGroupWorkloadExists(const PluginContext& context);
std::unique_ptr<Plugin> NewPodNodeSelector(const PluginContext& context);
std::unique_ptr<Plugin> NewPodSecurity(const PluginContext& context);
std::unique_ptr<Plugin> NewPodTolerationRestriction(const PluginContext& context);
// Not in the table: always the first.
std::unique_ptr<Plugin> NewPolicyWriters(const PluginContext& context);
std::unique_ptr<Plugin> NewPodTopologyLabels(const PluginContext& context);
std::unique_ptr<Plugin> NewPriority(const PluginContext& context);
std::unique_ptr<Plugin> NewResourceQuota(const PluginContext& context);
std::unique_ptr<Plugin> NewRuntimeClass(const PluginContext& context);
std::unique_ptr<Plugin> NewServiceAccount(const PluginContext& context);
std::unique_ptr<Plugin> NewStorageObjectInUseProtection(const PluginContext& context);
std::unique_ptr<Plugin> NewTaintNodesByCondition(const PluginContext& context);
std::unique_ptr<Plugin> NewValidatingAdmissionPolicy(const PluginContext& context);
std::unique_ptr<Plugin> NewValidatingAdmissionWebhook(const PluginContext& context);

// Of policies and their bindings, which policies of the API never match.
bool IsPolicyKind(const Attributes& attributes);
// Why a configuration cannot be used; "" when it can.
std::string CheckEventRateLimit(Value configuration);
std::string CheckImagePolicy(Value configuration);
std::string CheckMutatingPolicy(Value configuration);
std::string CheckPodSecurity(Value configuration);
std::string CheckResourceQuota(Value configuration);
std::string CheckValidatingPolicy(Value configuration);

}  // namespace keelson::admission
