// One maker per plugin; the table puts them in order.
#pragma once

#include <memory>

#include "admission/plugin_table.h"

namespace keelson::admission {

std::unique_ptr<Plugin> NewAlwaysAdmit(const PluginOptions& options);
std::unique_ptr<Plugin> NewAlwaysDeny(const PluginOptions& options);
std::unique_ptr<Plugin> NewCertificateApproval(const PluginOptions& options);
std::unique_ptr<Plugin> NewCertificateSigning(const PluginOptions& options);
std::unique_ptr<Plugin> NewCertificateSubjectRestriction(const PluginOptions& options);
std::unique_ptr<Plugin> NewDefaultIngressClass(const PluginOptions& options);
std::unique_ptr<Plugin> NewDefaultStorageClass(const PluginOptions& options);
std::unique_ptr<Plugin> NewDefaultTolerationSeconds(const PluginOptions& options);
std::unique_ptr<Plugin> NewDenyServiceExternalIPs(const PluginOptions& options);
std::unique_ptr<Plugin> NewLimitRanger(const PluginOptions& options);
std::unique_ptr<Plugin> NewNamespaceExists(const PluginOptions& options);
std::unique_ptr<Plugin> NewNamespaceLifecycle(const PluginOptions& options);
std::unique_ptr<Plugin> NewPersistentVolumeClaimResize(const PluginOptions& options);
std::unique_ptr<Plugin> NewPodSecurity(const PluginOptions& options);
std::unique_ptr<Plugin> NewPodTopologyLabels(const PluginOptions& options);
std::unique_ptr<Plugin> NewPriority(const PluginOptions& options);
std::unique_ptr<Plugin> NewResourceQuota(const PluginOptions& options);
std::unique_ptr<Plugin> NewRuntimeClass(const PluginOptions& options);
std::unique_ptr<Plugin> NewServiceAccount(const PluginOptions& options);
std::unique_ptr<Plugin> NewStorageObjectInUseProtection(const PluginOptions& options);
std::unique_ptr<Plugin> NewTaintNodesByCondition(const PluginOptions& options);

}  // namespace keelson::admission
