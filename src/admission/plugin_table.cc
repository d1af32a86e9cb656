#include "admission/plugin_table.h"

#include <algorithm>

#include "admission/plugins/plugins.h"
#include "admission/plugins/pod_toleration_restriction.h"
#include "admission/plugins/pod_updates.h"
#include "admission/webhook/client.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

constexpr PluginRow kPlugins[] = {
    {"AlwaysAdmit", false, Phase::kBoth, NewAlwaysAdmit},
    {"NamespaceAutoProvision", false, Phase::kMutating, NewNamespaceAutoProvision},
    {"NamespaceLifecycle", true, Phase::kMutating, NewNamespaceLifecycle},
    {"NamespaceExists", false, Phase::kValidating, NewNamespaceExists},
    {"LimitPodHardAntiAffinityTopology", false, Phase::kValidating, NewLimitPodHardAntiAffinityTopology},
    {"LimitRanger", true, Phase::kBoth, NewLimitRanger},
    {"ServiceAccount", true, Phase::kBoth, NewServiceAccount},
    {"NodeRestriction", false, Phase::kMutating, NewNodeRestriction},
    {"TaintNodesByCondition", true, Phase::kMutating, NewTaintNodesByCondition},
    {"AlwaysPullImages", false, Phase::kBoth, NewAlwaysPullImages},
    {"ImagePolicyWebhook", false, Phase::kValidating, NewImagePolicyWebhook, CheckImagePolicy},
    {"PodSecurity", true, Phase::kValidating, NewPodSecurity, CheckPodSecurity},
    {"PodNodeSelector", false, Phase::kBoth, NewPodNodeSelector},
    {"Priority", true, Phase::kBoth, NewPriority},
    {"DefaultTolerationSeconds", true, Phase::kMutating, NewDefaultTolerationSeconds},
    {"PodTolerationRestriction", false, Phase::kBoth, NewPodTolerationRestriction, CheckPodTolerationRestriction},
    {"EventRateLimit", false, Phase::kValidating, NewEventRateLimit, CheckEventRateLimit},
    {"ExtendedResourceToleration", false, Phase::kMutating, NewExtendedResourceToleration},
    {"DefaultStorageClass", true, Phase::kMutating, NewDefaultStorageClass},
    {"StorageObjectInUseProtection", true, Phase::kMutating, NewStorageObjectInUseProtection},
    {"PodGroupProtection", true, Phase::kMutating, NewPodGroupProtection},
    {"OwnerReferencesPermissionEnforcement", false, Phase::kValidating, NewOwnerReferencesPermissionEnforcement},
    {"PersistentVolumeClaimResize", true, Phase::kValidating, NewPersistentVolumeClaimResize},
    {"RuntimeClass", true, Phase::kBoth, NewRuntimeClass},
    {"CertificateApproval", true, Phase::kValidating, NewCertificateApproval},
    {"CertificateSigning", true, Phase::kValidating, NewCertificateSigning},
    {"ClusterTrustBundleAttest", true, Phase::kValidating, NewClusterTrustBundleAttest},
    {"CertificateSubjectRestriction", true, Phase::kValidating, NewCertificateSubjectRestriction},
    {"DefaultIngressClass", true, Phase::kMutating, NewDefaultIngressClass},
    {"DenyServiceExternalIPs", false, Phase::kValidating, NewDenyServiceExternalIPs},
    {"PodTopologyLabels", true, Phase::kMutating, NewPodTopologyLabels},
    {"PodGroupWorkloadExists", true, Phase::kValidating, NewPodGroupWorkloadExists},
    {"NodeDeclaredFeatureValidator", true, Phase::kValidating, NewNodeDeclaredFeatureValidator},
    {"JobValidation", true, Phase::kValidating, NewJobValidation},
    {"PodResizeValidator", true, Phase::kValidating, NewPodResizeValidator},
    {"MutatingAdmissionPolicy", true, Phase::kMutating, NewMutatingAdmissionPolicy, CheckMutatingPolicy, true},
    {"MutatingAdmissionWebhook", true, Phase::kMutating, NewMutatingAdmissionWebhook, CheckWebhookConfiguration, true},
    {"ValidatingAdmissionPolicy", true, Phase::kValidating, NewValidatingAdmissionPolicy, CheckValidatingPolicy, true},
    {"ValidatingAdmissionWebhook", true, Phase::kValidating, NewValidatingAdmissionWebhook, CheckWebhookConfiguration,
     true},
    {"ResourceQuota", true, Phase::kValidating, NewResourceQuota, CheckResourceQuota},
    {"AlwaysDeny", false, Phase::kBoth, NewAlwaysDeny},
};

}  // namespace

std::span<const PluginRow> PluginTable() { return kPlugins; }

bool IsPlugin(std::string_view name) {
  return std::ranges::any_of(kPlugins, [&](const PluginRow& row) { return row.name == name; });
}

std::string PluginNamesText() {
  std::vector<std::string> names;
  for (const PluginRow& row : kPlugins) names.emplace_back(row.name);
  std::ranges::sort(names);
  return base::Join(names, ", ");
}

std::string DefaultPluginNamesText() {
  std::vector<std::string> names;
  for (const PluginRow& row : kPlugins) {
    if (row.on_by_default) names.emplace_back(row.name);
  }
  return base::Join(names, ", ");
}

std::shared_ptr<const Chain> NewChain(const PluginContext& options, const std::set<std::string>& enable,
                                      const std::set<std::string>& disable) {
  std::vector<std::unique_ptr<Plugin>> plugins;
  plugins.push_back(NewPolicyWriters(options));
  for (const PluginRow& row : kPlugins) {
    const std::string name(row.name);
    const bool on = (row.on_by_default && !disable.contains(name)) || enable.contains(name);
    if (on) plugins.push_back(row.make(options));
  }
  return std::make_shared<const Chain>(std::move(plugins), options.observer);
}

}  // namespace keelson::admission
