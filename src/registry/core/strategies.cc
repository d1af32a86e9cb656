#include "registry/core/strategies.h"

#include "registry/core/config.h"
#include "registry/core/endpoints.h"
#include "registry/core/node.h"
#include "registry/core/persistent_volume.h"
#include "registry/core/persistent_volume_claim.h"
#include "registry/core/pod.h"
#include "registry/core/pod_template.h"
#include "registry/core/quota.h"
#include "registry/core/service.h"
#include "registry/events/strategies.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kStatus[] = {"status"};
constexpr std::string_view kSpec[] = {"spec"};

constexpr SelectableField kNamespaceFields[] = {{"status.phase", "status.phase"}};
constexpr SelectableField kSecretFields[] = {{"type", "type"}};
constexpr std::string_view kPodStatusReset[] = {"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"};

constexpr SelectableField kPodFields[] = {
    {"spec.nodeName", "spec.nodeName"},
    {"spec.host", "spec.nodeName"},  // old v1 clients
    {"spec.restartPolicy", "spec.restartPolicy"},
    {"spec.schedulerName", "spec.schedulerName"},
    {"spec.serviceAccountName", "spec.serviceAccountName"},
    {"spec.hostNetwork", "spec.hostNetwork"},
    {"status.phase", "status.phase"},
    {"status.podIP", "status.podIP"},
    {"status.podIPs", ""},  // accepted, but upstream never fills it
    {"status.nominatedNodeName", "status.nominatedNodeName"},
};
std::string EventSource(Value event) {
  const std::string_view component = event["source"]["component"].as_string();
  return std::string(component.empty() ? event["reportingComponent"].as_string() : component);
}

// Only the name made from generateName is validated, and its length is reported in bytes.
validation::Messages ReplicationControllerName(std::string_view name, bool prefix) {
  if (prefix) return {};
  validation::Messages wrong = validation::NameIsDNSSubdomain(name, false);
  constexpr std::string_view kCharacters = " characters";
  for (std::string& message : wrong) {
    if (message.starts_with("must be no more than") && message.ends_with(kCharacters))
      message.replace(message.size() - kCharacters.size(), kCharacters.size(), " bytes");
  }
  return wrong;
}

constexpr SelectableField kNodeFields[] = {{"spec.unschedulable", "spec.unschedulable"}};
constexpr SelectableField kReplicaFields[] = {{"status.replicas", "status.replicas"}};
constexpr SelectableField kServiceFields[] = {{"spec.clusterIP", "spec.clusterIP"}, {"spec.type", "spec.type"}};
constexpr SelectableField kEventFields[] = {
    {"involvedObject.kind", "involvedObject.kind"},
    {"involvedObject.namespace", "involvedObject.namespace"},
    {"involvedObject.name", "involvedObject.name"},
    {"involvedObject.uid", "involvedObject.uid"},
    {"involvedObject.apiVersion", "involvedObject.apiVersion"},
    {"involvedObject.resourceVersion", "involvedObject.resourceVersion"},
    {"involvedObject.fieldPath", "involvedObject.fieldPath"},
    {"reason", "reason"},
    {"reportingComponent", "reportingComponent"},
    {"source", "", EventSource},
    {"type", "type"},
};
// No reset_fields: upstream defines GetResetFields for these subresources but never installs it, so managedFields also
// list fields that the endpoint ignores.
constexpr Subresource kPodSubresources[] = {
    {"ephemeralcontainers",
     {.prepare_for_update = PreparePodForEphemeralContainers, .validate_update = ValidatePodEphemeralContainersUpdate}},
    {"resize", {.prepare_for_update = PreparePodForResize, .validate_update = ValidatePodResize}},
};
constexpr Subresource kNamespaceSubresources[] = {{"finalize",
                                                   {.prepare_for_update = PrepareNamespaceForFinalize,
                                                    .validate_update = ValidateNamespaceFinalizeUpdate,
                                                    .reset_fields = kStatus}}};

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
     .update = {.prepare_for_update = PrepareSecretForUpdate,
                .validate_update = ValidateSecretUpdate,
                .warnings_on_update = WarnSecret},
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
     .update = {.prepare_for_update = PrepareNamespaceForUpdate,
                .validate_update = ValidateNamespaceUpdate,
                .reset_fields = kStatus},
     .status = {.validate_update = ValidateNamespaceStatusUpdate, .reset_fields = kSpec},
     .subresources = kNamespaceSubresources,
     .selectable_fields = kNamespaceFields,
     .selects_namespace = false,
     .table_row = NamespaceRow},
    {.group = "",
     .kind = "Pod",
     .return_deleted_object = true,
     .grace_period = PodGracePeriod,
     .generation = Generation::kCustom,
     .has_status = true,
     .defaults = DefaultPod,
     .prepare_for_create = PreparePodForCreate,
     .validate = ValidatePod,
     .warnings_on_create = WarnPodOnCreate,
     .canonicalize = CanonicalizePod,
     .update = {.prepare_for_update = PreparePodForUpdate,
                .validate_update = ValidatePodUpdate,
                .reset_fields = kStatus},
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
     .update = {.prepare_for_update = PreparePodTemplate,
                .validate_update = ValidatePodTemplateUpdate,
                .warnings_on_update = WarnPodTemplate},
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
    {.group = "",
     .kind = "PersistentVolume",
     .return_deleted_object = true,
     .has_status = true,
     .defaults = DefaultPersistentVolume,
     .prepare_for_create = PreparePersistentVolumeForCreate,
     .validate = ValidatePersistentVolume,
     .warnings_on_create = WarnPersistentVolume,
     .update = {.validate_update = ValidatePersistentVolumeUpdate,
                .warnings_on_update = WarnPersistentVolume,
                .reset_fields = kStatus},
     .status = {.prepare_for_update = PreparePersistentVolumeForStatusUpdate,
                .validate_update = ValidatePersistentVolumeStatusUpdate,
                .reset_fields = kSpec},
     .table_row = PersistentVolumeRow},
    {.group = "",
     .kind = "Node",
     .has_status = true,
     .keeps_status_on_create = true,
     .defaults = DefaultNode,
     .prepare_for_create = PrepareNode,
     .validate = ValidateNode,
     .warnings_on_create = WarnNode,
     .update = {.prepare_for_update = PrepareNode,
                .validate_update = ValidateNodeUpdate,
                .warnings_on_update = WarnNode,
                .reset_fields = kStatus},
     .status = {.prepare_for_update = PrepareNodeForStatusUpdate,
                .validate_update = ValidateNodeStatusUpdate,
                .reset_fields = kSpec},
     .selectable_fields = kNodeFields,
     .selects_namespace = false,
     .table_row = NodeRow},
    {.group = "",
     .kind = "Service",
     .name_rule = validation::NameIsDNSLabel,
     .allow_create_on_update = true,
     .return_deleted_object = true,
     .has_status = true,
     .defaults = DefaultService,
     .validate = ValidateService,
     .warnings_on_create = WarnService,
     .canonicalize = CanonicalizeService,
     .update = {.prepare_for_update = PrepareServiceForUpdate,
                .validate_update = ValidateServiceUpdate,
                .warnings_on_update = WarnService,
                .reset_fields = kStatus},
     .status = {.validate_update = ValidateServiceStatusUpdate,
                .warnings_on_update = WarnServiceOnStatusUpdate,
                .reset_fields = kSpec},
     .selectable_fields = kServiceFields,
     .table_row = ServiceRow},
    {.group = "",
     .kind = "Endpoints",
     .allow_create_on_update = true,
     .defaults = DefaultEndpoints,
     .validate = ValidateEndpoints,
     .warnings_on_create = WarnEndpoints,
     .update = {.validate_update = ValidateEndpointsUpdate, .warnings_on_update = WarnEndpoints},
     .table_row = EndpointsRow},
    {.group = "",
     .kind = "ReplicationController",
     .name_rule = ReplicationControllerName,
     .garbage_collection = GarbageCollection::kOrphan,
     .generation = Generation::kCustom,
     .has_status = true,
     .defaults = DefaultReplicationController,
     .prepare_for_create = PrepareReplicationController,
     .validate = ValidateReplicationController,
     .warnings_on_create = WarnReplicationController,
     .update = {.prepare_for_update = PrepareReplicationController,
                .validate_update = ValidateReplicationControllerUpdate,
                .warnings_on_update = WarnReplicationController,
                .reset_fields = kStatus},
     .status = {.validate_update = ValidateReplicationControllerStatusUpdate, .reset_fields = kSpec},
     .selectable_fields = kReplicaFields,
     .table_row = ReplicationControllerRow},
    {.group = "",
     .kind = "ResourceQuota",
     .return_deleted_object = true,
     .has_status = true,
     .defaults = DefaultResourceQuota,
     .validate = ValidateResourceQuota,
     .warnings_on_create = WarnResourceQuota,
     .update = {.validate_update = ValidateResourceQuotaUpdate, .reset_fields = kStatus},
     .status = {.validate_update = ValidateResourceQuotaStatusUpdate, .reset_fields = kSpec},
     .table_row = ResourceQuotaRow},
    {.group = "",
     .kind = "LimitRange",
     .allow_create_on_update = true,
     .defaults = DefaultLimitRange,
     .prepare_for_create = PrepareLimitRangeForCreate,
     .validate = ValidateLimitRange,
     .update = {.validate_update = ValidateLimitRangeUpdate}},
    {.group = "",
     .kind = "Event",
     .allow_create_on_update = true,
     .garbage_collection = GarbageCollection::kUnsupported,
     .validate = ValidateEventCreate,
     .validates_metadata = true,
     .update = {.validate_update = ValidateEventUpdate},
     .selectable_fields = kEventFields,
     .table_row = EventRow},
    {.group = "",
     .kind = "ComponentStatus",
     .selects_namespace = false,
     .table_row = ComponentStatusRow},  // nothing is stored
    {.group = "", .kind = "Binding"},   // created, never stored
};

}  // namespace

std::span<const Strategy> CoreStrategies() { return kStrategies; }

}  // namespace keelson::registry::core
