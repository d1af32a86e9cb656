// Job and CronJob.
#pragma once

#include "registry/core/pod_options.h"
#include "registry/fields.h"
#include "registry/strategy.h"

namespace keelson::registry::batch {

void DefaultJob(base::Arena& arena, Value job);
void PrepareJob(const Call& call, Value job, Value old);
void ValidateJob(const Call& call, Value job, Value old, FieldErrors& errors);
void ValidateJobUpdate(const Call& call, Value job, Value old, FieldErrors& errors);
void ValidateJobStatusUpdate(const Call& call, Value job, Value old, FieldErrors& errors);
void WarnJob(const Call& call, Value job, Value old);
void JobRow(base::Arena& arena, const base::Clock& clock, Value job, Value cells);

void DefaultCronJob(base::Arena& arena, Value object);
void PrepareCronJob(const Call& call, Value object, Value old);
void ValidateCronJob(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateCronJobUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnCronJob(const Call& call, Value object, Value old);
void CronJobRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

// Shared: a job's spec without its selector, and what is remarked about it.
void ValidateJobSpecWithoutSelector(Value spec, const core::PodOptions& options, const FieldPath& path,
                                    FieldErrors& errors);
void WarnJobSpec(const Call& call, Value spec, const FieldPath& path);
void DefaultJobTemplate(base::Arena& arena, Value spec);
bool JobConditionTrue(Value job, std::string_view type);
// "1,3-5": how many indexes below `completions`; the problem where it is none.
std::int64_t CountIndexes(std::string_view text, std::int64_t completions, std::string& problem);
std::string OverlapProblem(std::string_view completed, std::string_view failed, std::int64_t completions);
// An error that shows no value.
validation::FieldError InvalidOmitted(const FieldPath& path, std::string_view detail);

}  // namespace keelson::registry::batch
