#include "registry/apps/strategies.h"

#include "registry/apps/workloads.h"

namespace keelson::registry::apps {
namespace {

constexpr std::string_view kStatus[] = {"status"};
constexpr std::string_view kSpec[] = {"spec"};
constexpr std::string_view kSpecAndLabels[] = {"spec", "metadata.labels"};

constexpr Strategy kStrategies[] = {
    {.group = "apps",
     .kind = "Deployment",
     .generation = Generation::kCustom,
     .has_status = true,
     .defaults = DefaultDeployment,
     .prepare_for_create = PrepareDeployment,
     .validate = ValidateDeployment,
     .warnings_on_create = WarnTemplateAndName,
     .update = {.prepare_for_update = PrepareDeployment,
                .validate_update = ValidateDeploymentUpdate,
                .warnings_on_update = WarnTemplate,
                .reset_fields = kStatus},
     .status = {.prepare_for_update = PrepareDeploymentStatus,
                .validate_update = ValidateDeploymentStatusUpdate,
                .reset_fields = kSpecAndLabels},
     .table_row = DeploymentRow},
    {.group = "apps",
     .kind = "ReplicaSet",
     .generation = Generation::kSpec,
     .has_status = true,
     .defaults = DefaultReplicaSet,
     .prepare_for_create = PrepareTemplate,
     .validate = ValidateReplicaSet,
     .warnings_on_create = WarnTemplateAndName,
     .update = {.prepare_for_update = PrepareTemplate,
                .validate_update = ValidateReplicaSetUpdate,
                .warnings_on_update = WarnTemplate,
                .reset_fields = kStatus},
     .status = {.validate_update = ValidateReplicaSetStatusUpdate, .reset_fields = kSpec},
     .table_row = ReplicaSetRow},
    {.group = "apps",
     .kind = "StatefulSet",
     .name_rule = validation::NameIsDNSLabel,
     .generation = Generation::kCustom,
     .has_status = true,
     .defaults = DefaultStatefulSet,
     .prepare_for_create = PrepareStatefulSet,
     .validate = ValidateStatefulSet,
     .warnings_on_create = WarnStatefulSet,
     .update = {.prepare_for_update = PrepareStatefulSet,
                .validate_update = ValidateStatefulSetUpdate,
                .warnings_on_update = WarnStatefulSet,
                .reset_fields = kStatus},
     .status = {.validate_update = ValidateStatefulSetStatusUpdate, .reset_fields = kSpec},
     .table_row = StatefulSetRow},
    {.group = "apps",
     .kind = "DaemonSet",
     .generation = Generation::kCustom,
     .has_status = true,
     .defaults = DefaultDaemonSet,
     .prepare_for_create = PrepareDaemonSet,
     .validate = ValidateDaemonSet,
     .warnings_on_create = WarnDaemonSet,
     .update = {.prepare_for_update = PrepareDaemonSet,
                .validate_update = ValidateDaemonSetUpdate,
                .warnings_on_update = WarnDaemonSet,
                .reset_fields = kStatus},
     .status = {.prepare_for_update = PrepareDaemonSetStatus,
                .validate_update = ValidateDaemonSetStatusUpdate,
                .reset_fields = kSpec},
     .table_row = DaemonSetRow},
    {.group = "apps",
     .kind = "ControllerRevision",
     .validate = ValidateControllerRevision,
     .update = {.validate_update = ValidateControllerRevisionUpdate},
     .table_row = ControllerRevisionRow},
};

}  // namespace

std::span<const Strategy> AppsStrategies() { return kStrategies; }

}  // namespace keelson::registry::apps
