#include "base/strings.h"
#include "registry/batch/cron_schedule.h"
#include "registry/batch/jobs.h"
#include "registry/batch/time_zones.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/pod_spec.h"

namespace keelson::registry::batch {
namespace {

constexpr std::size_t kNameBytesMax = 52;  // jobs get eleven characters more
constexpr std::size_t kTimeZonePartBytesMax = 14;

bool IsTimeZonePart(std::string_view part) {
  if (part.empty() || part.size() > kTimeZonePartBytesMax || part == "." || part == ".." || part.starts_with('-'))
    return false;
  for (const char c : part) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!letter && c != '.' && c != '-' && c != '_' && c != '+') return false;
  }
  return true;
}

void CheckTimeZone(Value zone, const FieldPath& path, FieldErrors& errors) {
  if (zone.is_null()) return;
  const std::string name(zone.as_string());
  if (name.empty()) return errors.push_back(Invalid(path, zone, "timeZone must be nil or non-empty string"));
  for (const std::string_view part : base::Split(name, '/')) {
    if (!IsTimeZonePart(part)) return errors.push_back(Invalid(path, zone, "unknown time zone " + name));
  }
  if (base::EqualsIgnoreCase(name, "Local")) {
    errors.push_back(
        Invalid(path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"));
  }
  if (name != "Local" && !IsTimeZone(name)) errors.push_back(Invalid(path, zone, "unknown time zone " + name));
}

void CheckSchedule(Value spec, Value old, const FieldPath& path, FieldErrors& errors) {
  const std::string_view schedule = Text(spec, "schedule");
  if (schedule.empty()) return errors.push_back(Required(path));
  if (const std::string problem = CronScheduleProblem(schedule); !problem.empty())
    errors.push_back(Invalid(path, schedule, problem));
  if (schedule.find("TZ") == std::string_view::npos) return;
  if (Text(old, "schedule").find("TZ") == std::string_view::npos) {
    errors.push_back(Invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
  } else if (IsSet(spec, "timeZone")) {
    errors.push_back(Invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"));
  }
}

// `old` is null on create.
void CheckSpec(const Call& call, Value spec, Value old, FieldErrors& errors) {
  constexpr std::string_view kPolicies[] = {"Allow", "Forbid", "Replace"};
  constexpr std::string_view kNoManual[] = {"nil", "false"};
  const FieldPath path("spec");
  CheckSchedule(spec, old, path.Child("schedule"), errors);
  CheckNonnegative(spec, "startingDeadlineSeconds", path, errors);
  if (old.is_null() || !(spec["timeZone"] == old["timeZone"]))
    CheckTimeZone(spec["timeZone"], path.Child("timeZone"), errors);
  RequireOneOf(spec["concurrencyPolicy"], kPolicies, path.Child("concurrencyPolicy"), errors);
  const Value job = spec["jobTemplate"]["spec"], before = old["jobTemplate"]["spec"]["template"];
  const FieldPath template_path = path.Child("jobTemplate");
  const FieldPath job_path = template_path.Child("spec");
  ValidateJobSpecWithoutSelector(job, core::PodOptionsFor(call, false, before["spec"], before["metadata"]), job_path,
                                 errors);
  if (IsSet(job, "selector")) {
    errors.push_back(InvalidHub(job_path.Child("selector"), core::CoreHubTypes(), job["selector"], "~LabelSelector",
                                "`selector` will be auto-generated"));
  }
  if (Bool(job, "manualSelector"))
    errors.push_back(NotSupported(job_path.Child("manualSelector"), job["manualSelector"], kNoManual));
  for (const std::string_view key : {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"})
    CheckNonnegative(spec, key, path, errors);
}

}  // namespace

void DefaultCronJob(base::Arena& arena, Value object) {
  Value spec = object.EnsureMap(arena, "spec");
  Value job_template = spec.EnsureMap(arena, "jobTemplate");
  DefaultJobTemplate(arena, job_template.EnsureMap(arena, "spec"));
  DefaultText(arena, spec, "concurrencyPolicy", "Allow");
  Default(arena, spec, "suspend", false);
  Default(arena, spec, "successfulJobsHistoryLimit", Value(3));
  Default(arena, spec, "failedJobsHistoryLimit", Value(1));
}

void PrepareCronJob(const Call& call, Value object, Value old) {
  core::DropDisabledPodFields(call, object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
                              old["spec"]["jobTemplate"]["spec"]["template"]["spec"]);
}

void ValidateCronJob(const Call& call, Value object, Value, FieldErrors& errors) {
  CheckSpec(call, object["spec"], {}, errors);
  const std::string_view name = Text(object["metadata"], "name");
  if (name.size() > kNameBytesMax)
    errors.push_back(Invalid(FieldPath("metadata").Child("name"), name, "must be no more than 52 characters"));
}

void ValidateCronJobUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors);
  CheckSpec(call, object["spec"], old["spec"], errors);
}

void WarnCronJob(const Call& call, Value object, Value old) {
  const FieldPath spec("spec");
  const FieldPath job_template = spec.Child("jobTemplate");
  if (old.is_null()) core::WarnName(call, object, "Pod names and hostnames");
  if (old.is_null() || Int(object["metadata"], "generation") != Int(old["metadata"], "generation")) {
    WarnJobSpec(call, object["spec"]["jobTemplate"]["spec"], job_template.Child("spec"));
  }
  if (!old.is_null() && Text(object["spec"], "schedule").find("TZ") != std::string_view::npos) {
    call.warnings.push_back(
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
  }
}

void CronJobRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"], status = object["status"], job = spec["jobTemplate"]["spec"];
  Row(arena, cells)
      .Name(object)
      .Add(Text(spec, "schedule"))
      .Add(IsSet(spec, "timeZone") ? Text(spec, "timeZone") : "<none>")
      .Add(IsSet(spec, "suspend") ? (Bool(spec, "suspend") ? "True" : "False") : "<unset>")
      .Add(static_cast<std::int64_t>(status["active"].size()))
      .Add(IsSet(status, "lastScheduleTime") ? Age(clock, status["lastScheduleTime"]) : "<none>")
      .Age(clock, object)
      .Add(ContainerNames(job["template"]["spec"]))
      .Add(ContainerImages(job["template"]["spec"]))
      .Add(LabelSelectorText(job["selector"]));
}

}  // namespace keelson::registry::batch
