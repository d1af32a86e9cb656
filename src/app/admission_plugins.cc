#include "app/admission_plugins.h"

#include <algorithm>
#include <span>

namespace keelson::app {
namespace {

constexpr std::string_view kNames[] = {"AlwaysAdmit",
                                       "AlwaysDeny",
                                       "AlwaysPullImages",
                                       "CertificateApproval",
                                       "CertificateSigning",
                                       "CertificateSubjectRestriction",
                                       "ClusterTrustBundleAttest",
                                       "DefaultIngressClass",
                                       "DefaultStorageClass",
                                       "DefaultTolerationSeconds",
                                       "DenyServiceExternalIPs",
                                       "EventRateLimit",
                                       "ExtendedResourceToleration",
                                       "ImagePolicyWebhook",
                                       "JobValidation",
                                       "LimitPodHardAntiAffinityTopology",
                                       "LimitRanger",
                                       "MutatingAdmissionPolicy",
                                       "MutatingAdmissionWebhook",
                                       "NamespaceAutoProvision",
                                       "NamespaceExists",
                                       "NamespaceLifecycle",
                                       "NodeDeclaredFeatureValidator",
                                       "NodeRestriction",
                                       "OwnerReferencesPermissionEnforcement",
                                       "PersistentVolumeClaimResize",
                                       "PodGroupProtection",
                                       "PodGroupWorkloadExists",
                                       "PodNodeSelector",
                                       "PodResizeValidator",
                                       "PodSecurity",
                                       "PodTolerationRestriction",
                                       "PodTopologyLabels",
                                       "Priority",
                                       "ResourceQuota",
                                       "RuntimeClass",
                                       "ServiceAccount",
                                       "StorageObjectInUseProtection",
                                       "TaintNodesByCondition",
                                       "ValidatingAdmissionPolicy",
                                       "ValidatingAdmissionWebhook"};

constexpr std::string_view kDefaults[] = {"NamespaceLifecycle",
                                          "LimitRanger",
                                          "ServiceAccount",
                                          "TaintNodesByCondition",
                                          "PodSecurity",
                                          "Priority",
                                          "DefaultTolerationSeconds",
                                          "DefaultStorageClass",
                                          "StorageObjectInUseProtection",
                                          "PodGroupProtection",
                                          "PersistentVolumeClaimResize",
                                          "RuntimeClass",
                                          "CertificateApproval",
                                          "CertificateSigning",
                                          "ClusterTrustBundleAttest",
                                          "CertificateSubjectRestriction",
                                          "DefaultIngressClass",
                                          "PodTopologyLabels",
                                          "PodGroupWorkloadExists",
                                          "NodeDeclaredFeatureValidator",
                                          "JobValidation",
                                          "PodResizeValidator",
                                          "MutatingAdmissionPolicy",
                                          "MutatingAdmissionWebhook",
                                          "ValidatingAdmissionPolicy",
                                          "ValidatingAdmissionWebhook",
                                          "ResourceQuota"};

std::string Listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace

bool IsAdmissionPlugin(std::string_view name) { return std::binary_search(std::begin(kNames), std::end(kNames), name); }
std::string AdmissionPluginsText() { return Listed(kNames); }
std::string DefaultAdmissionPluginsText() { return Listed(kDefaults); }

}  // namespace keelson::app
