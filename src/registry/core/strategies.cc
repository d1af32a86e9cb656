#include "registry/core/strategies.h"

#include "registry/core/config.h"
#include "registry/core/persistent_volume_claim.h"
#include "registry/core/pod.h"
#include "registry/core/pod_template.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kStatus[] = {"status"};
constexpr std::string_view kSpec[] = {"spec"};

constexpr SelectableField kNamespaceFields[] = {{"status.phase", "status.phase"}};
constexpr SelectableField kSecretFields[] = {{"type", "type"}};
constexpr std::string_view kPodStatusReset[] = {"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"};
constexpr std::string_view kEphemeralOnly[] = {"spec.ephemeralContainers"};
constexpr std::string_view kResizeOnly[] = {"spec.containers.*.resources", "spec.containers.*.resizePolicy", "spec.initContainers.*.resources",
                                            "spec.initContainers.*.resizePolicy"};

std::string HostNetwork(Value pod) { return pod["spec"]["hostNetwork"].as_bool() ? "true" : "false"; }
std::string FirstPodIP(Value pod) { return std::string(pod["status"]["podIPs"][std::size_t{0}]["ip"].as_string()); }
std::string Nothing(Value) { return {}; }

constexpr SelectableField kPodFields[] = {
    {"spec.nodeName", "spec.nodeName"},
    {"spec.restartPolicy", "spec.restartPolicy"},
    {"spec.schedulerName", "spec.schedulerName"},
    {"spec.serviceAccountName", "spec.serviceAccountName"},
    {"spec.hostNetwork", "", HostNetwork},
    {"status.phase", "status.phase"},
    {"status.podIP", "", FirstPodIP},
    {"status.podIPs", "", Nothing},  // accepted, but upstream never fills it
    {"status.nominatedNodeName", "status.nominatedNodeName"},
};
constexpr Subresource kPodSubresources[] = {
    {"ephemeralcontainers",
     {.prepare_for_update = PreparePodForEphemeralContainers, .validate_update = ValidatePodEphemeralContainersUpdate, .only_fields = kEphemeralOnly}},
    {"resize", {.prepare_for_update = PreparePodForResize, .validate_update = ValidatePodResize, .only_fields = kResizeOnly}},
};
constexpr Subresource kNamespaceSubresources[] = {
    {"finalize",
     {.prepare_for_update = PrepareNamespaceForFinalize, .validate_update = ValidateNamespaceFinalizeUpdate, .reset_fields = kStatus}}};

constexpr Strategy kStrategies[] = {
    {.group = "",
     .kind = "ConfigMap",
     .validate = ValidateConfigMap,
     .update = {.validate_update = ValidateConfigMapUpdate},
     .table_row = ConfigMapRow},
    {.group = "",
     .kind = "Secret",
     .defaults = DefaultSecret,
     .validate = ValidateSecret,
     .warnings_on_create = WarnSecret,
     .update = {.prepare_for_update = PrepareSecretForUpdate, .validate_update = ValidateSecretUpdate, .warnings_on_update = WarnSecret},
     .selectable_fields = kSecretFields,
     .table_row = SecretRow},
    {.group = "",
     .kind = "ServiceAccount",
     .return_deleted_object = true,
     .prepare_for_create = PrepareServiceAccount,
     .warnings_on_create = WarnServiceAccount,
     .update = {.prepare_for_update = PrepareServiceAccount,
                .validate_update = ValidateServiceAccountUpdate,
                .warnings_on_update = WarnServiceAccount},
     .table_row = ServiceAccountRow},
    {.group = "",
     .kind = "Namespace",
     .name_rule = validation::NameIsDNSLabel,
     .return_deleted_object = true,
     .has_status = true,
     .defaults = DefaultNamespace,
     .prepare_for_create = PrepareNamespaceForCreate,
     .validate = ValidateNamespace,
     .canonicalize = CanonicalizeNamespace,
     .update = {.prepare_for_update = PrepareNamespaceForUpdate, .validate_update = ValidateNamespaceUpdate, .reset_fields = kStatus},
     .status = {.validate_update = ValidateNamespaceStatusUpdate, .reset_fields = kSpec},
     .subresources = kNamespaceSubresources,
     .selectable_fields = kNamespaceFields,
     .selects_namespace = false,
     .table_row = NamespaceRow},
    {.group = "",
     .kind = "Pod",
     .return_deleted_object = true,
     .graceful_deletion = true,
     .generation = Generation::kCustom,
     .has_status = true,
     .defaults = DefaultPod,
     .prepare_for_create = PreparePodForCreate,
     .validate = ValidatePod,
     .warnings_on_create = WarnPodOnCreate,
     .canonicalize = CanonicalizePod,
     .update = {.prepare_for_update = PreparePodForUpdate, .validate_update = ValidatePodUpdate, .reset_fields = kStatus},
     .status = {.prepare_for_update = PreparePodForStatusUpdate,
                .validate_update = ValidatePodStatusUpdate,
                .warnings_on_update = WarnPodOnStatusUpdate,
                .reset_fields = kPodStatusReset},
     .subresources = kPodSubresources,
     .selectable_fields = kPodFields,
     .table_row = PodRow,
     .row_conditions = PodRowConditions},
    {.group = "",
     .kind = "PodTemplate",
     .return_deleted_object = true,
     .generation = Generation::kCustom,
     .defaults = DefaultPodTemplateObject,
     .prepare_for_create = PreparePodTemplate,
     .validate = ValidatePodTemplate,
     .warnings_on_create = WarnPodTemplate,
     .update = {.prepare_for_update = PreparePodTemplate, .validate_update = ValidatePodTemplateUpdate, .warnings_on_update = WarnPodTemplate},
     .table_row = PodTemplateRow},
    {.group = "",
     .kind = "PersistentVolumeClaim",
     .return_deleted_object = true,
     .has_status = true,
     .defaults = DefaultClaim,
     .prepare_for_create = PrepareClaimForCreate,
     .validate = ValidateClaim,
     .warnings_on_create = WarnClaim,
     .update = {.prepare_for_update = PrepareClaimForUpdate,
                .validate_update = ValidateClaimUpdate,
                .warnings_on_update = WarnClaim,
                .reset_fields = kStatus},
     .status = {.validate_update = ValidateClaimStatusUpdate, .reset_fields = kSpec},
     .table_row = ClaimRow},
};

}  // namespace

std::span<const Strategy> CoreStrategies() { return kStrategies; }

}  // namespace keelson::registry::core
