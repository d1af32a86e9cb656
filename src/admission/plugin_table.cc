#include "admission/plugin_table.h"

#include "admission/plugins/plugins.h"
#include "admission/plugins/pod_updates.h"

namespace keelson::admission {
namespace {

constexpr PluginRow kPlugins[] = {
    {"AlwaysAdmit", false, NewAlwaysAdmit},
    {"NamespaceAutoProvision", false, nullptr},
    {"NamespaceLifecycle", true, NewNamespaceLifecycle},
    {"NamespaceExists", false, NewNamespaceExists},
    {"LimitPodHardAntiAffinityTopology", false, nullptr},
    {"LimitRanger", true, NewLimitRanger},
    {"ServiceAccount", true, NewServiceAccount},
    {"NodeRestriction", false, nullptr},
    {"TaintNodesByCondition", true, NewTaintNodesByCondition},
    {"AlwaysPullImages", false, nullptr},
    {"ImagePolicyWebhook", false, nullptr},
    {"PodSecurity", true, NewPodSecurity},
    {"PodNodeSelector", false, nullptr},
    {"Priority", true, NewPriority},
    {"DefaultTolerationSeconds", true, NewDefaultTolerationSeconds},
    {"PodTolerationRestriction", false, nullptr},
    {"EventRateLimit", false, nullptr},
    {"ExtendedResourceToleration", false, nullptr},
    {"DefaultStorageClass", true, NewDefaultStorageClass},
    {"StorageObjectInUseProtection", true, NewStorageObjectInUseProtection},
    {"PodGroupProtection", true, nullptr},
    {"OwnerReferencesPermissionEnforcement", false, nullptr},
    {"PersistentVolumeClaimResize", true, NewPersistentVolumeClaimResize},
    {"RuntimeClass", true, NewRuntimeClass},
    {"CertificateApproval", true, NewCertificateApproval},
    {"CertificateSigning", true, NewCertificateSigning},
    {"ClusterTrustBundleAttest", true, nullptr},
    {"CertificateSubjectRestriction", true, NewCertificateSubjectRestriction},
    {"DefaultIngressClass", true, NewDefaultIngressClass},
    {"DenyServiceExternalIPs", false, NewDenyServiceExternalIPs},
    {"PodTopologyLabels", true, NewPodTopologyLabels},
    {"PodGroupWorkloadExists", true, nullptr},
    {"NodeDeclaredFeatureValidator", true, NewNodeDeclaredFeatureValidator},
    {"JobValidation", true, nullptr},
    {"PodResizeValidator", true, NewPodResizeValidator},
    {"MutatingAdmissionPolicy", true, nullptr},
    {"MutatingAdmissionWebhook", true, nullptr},
    {"ValidatingAdmissionPolicy", true, nullptr},
    {"ValidatingAdmissionWebhook", true, nullptr},
    {"ResourceQuota", true, NewResourceQuota},
    {"AlwaysDeny", false, NewAlwaysDeny},
};

}  // namespace

std::span<const PluginRow> PluginTable() { return kPlugins; }

std::shared_ptr<const Chain> NewChain(const PluginOptions& options, const std::set<std::string>& enable,
                                      const std::set<std::string>& disable) {
  std::vector<std::unique_ptr<Plugin>> plugins;
  for (const PluginRow& row : kPlugins) {
    const std::string name(row.name);
    const bool on = (row.on_by_default && !disable.contains(name)) || enable.contains(name);
    if (on && row.make != nullptr) plugins.push_back(row.make(options));
  }
  return std::make_shared<const Chain>(std::move(plugins), options.observer);
}

}  // namespace keelson::admission
