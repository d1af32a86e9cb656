#include "registry/batch/strategies.h"

#include "registry/batch/jobs.h"

namespace keelson::registry::batch {
namespace {

constexpr std::string_view kStatus[] = {"status"};
constexpr std::string_view kSpec[] = {"spec"};

constexpr SelectableField kJobFields[] = {{"status.successful", "status.succeeded"}};

constexpr Strategy kStrategies[] = {
    {.group = "batch",
     .kind = "Job",
     .garbage_collection = GarbageCollection::kOrphan,
     .generation = Generation::kCustom,
     .has_status = true,
     .defaults = DefaultJob,
     .prepare_for_create = PrepareJob,
     .validate = ValidateJob,
     .warnings_on_create = WarnJob,
     .update = {.prepare_for_update = PrepareJob,
                .validate_update = ValidateJobUpdate,
                .warnings_on_update = WarnJob,
                .reset_fields = kStatus},
     .status = {.validate_update = ValidateJobStatusUpdate, .reset_fields = kSpec},
     .selectable_fields = kJobFields,
     .table_row = JobRow},
    {.group = "batch",
     .kind = "CronJob",
     .generation = Generation::kSpec,
     .has_status = true,
     .defaults = DefaultCronJob,
     .prepare_for_create = PrepareCronJob,
     .validate = ValidateCronJob,
     .warnings_on_create = WarnCronJob,
     .update = {.prepare_for_update = PrepareCronJob,
                .validate_update = ValidateCronJobUpdate,
                .warnings_on_update = WarnCronJob,
                .reset_fields = kStatus},
     .status = {.reset_fields = kSpec},
     .table_row = CronJobRow},
};

}  // namespace

std::span<const Strategy> BatchStrategies() { return kStrategies; }

}  // namespace keelson::registry::batch
