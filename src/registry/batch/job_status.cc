// Validation of a job's status. Most rules apply only to changed fields.
#include "base/strings.h"
#include "object/time.h"
#include "registry/batch/jobs.h"
#include "registry/cells.h"

namespace keelson::registry::batch {
namespace {

struct Interval {
  std::int64_t first = 0, last = 0;
  std::string problem;
};

Interval ParseInterval(std::string_view text, std::int64_t completions) {
  const auto limits = base::Split(text, '-');
  Interval interval;
  if (limits.size() > 2) {
    interval.problem = "the fragment " + base::GoQuote(text) +
                       " violates the requirement that an index interval can have at most two parts separated by '-'";
    return interval;
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto number = base::ParseInt64(limits[i]);
    if (!number) {
      interval.problem = "cannot convert string to integer for index: " + base::GoQuote(limits[i]);
    } else if (*number >= completions) {
      interval.problem = "too large index: " + base::GoQuote(limits[i]);
    }
    if (!interval.problem.empty()) return interval;
    if (i == 0) interval.first = *number;
    interval.last = *number;
  }
  if (limits.size() == 2 && interval.first >= interval.last) {
    interval.problem = "non-increasing order, previous: " + std::to_string(interval.first) +
                       ", current: " + std::to_string(interval.last);
  }
  return interval;
}

bool ConditionFalse(Value job, std::string_view type) {
  for (const Value condition : job["status"]["conditions"].items()) {
    if (Text(condition, "type") == type && Text(condition, "status") == "False") return true;
  }
  return false;
}

bool Finished(Value job) { return JobConditionTrue(job, "Complete") || JobConditionTrue(job, "Failed"); }
bool Same(Value now, Value old, std::string_view key) { return validation::SemanticEqual(now[key], old[key]); }

void CheckUncounted(Value pods, const FieldPath& path, FieldErrors& errors) {
  NameSet seen;
  for (const std::string_view key : {"succeeded", "failed"}) {
    const FieldPath list = path.Child(key);
    std::int64_t index = 0;
    for (const Value uid : pods[key].items()) {
      const FieldPath at = list.Index(index++);
      if (uid.as_string().empty()) {
        errors.push_back(Invalid(at, uid, "must not be empty"));
      } else if (!seen.emplace(uid.as_string()).second) {
        errors.push_back(Duplicate(at, uid));
      }
    }
  }
}

// The state of a job before and after, and which of its parts change.
class StatusUpdate {
 public:
  StatusUpdate(Value job, Value old, FieldErrors& errors)
      : job_(job), old_(old), spec_(job["spec"]), now_(job["status"]), was_(old["status"]), errors_(errors) {}

  void Check() {
    Counts();
    CompletionTimes();
    Finishing();
    Indexes();
    SuccessCriteria();
    Transitions();
  }

 private:
  bool Is(std::string_view type) const { return JobConditionTrue(job_, type); }
  bool Was(std::string_view type) const { return JobConditionTrue(old_, type); }
  bool Turned(std::string_view type) const { return Is(type) != Was(type); }
  bool Changed(std::string_view key) const { return !Same(now_, was_, key); }
  void Conditions(std::string_view detail) { errors_.push_back(InvalidOmitted(path_.Child("conditions"), detail)); }

  void Counts() {
    for (const std::string_view key : {"active", "succeeded", "failed", "ready", "terminating"})
      CheckNonnegative(now_, key, path_, errors_);
    CheckUncounted(now_["uncountedTerminatedPods"], path_.Child("uncountedTerminatedPods"), errors_);
  }

  void CompletionTimes() {
    const Value completed = now_["completionTime"];
    const FieldPath at = path_.Child("completionTime");
    if ((Turned("Complete") || Turned("Failed")) && Is("Complete") && Is("Failed"))
      Conditions("cannot set Complete=True and Failed=true conditions");
    if ((Turned("Complete") || Turned("FailureTarget")) && Is("Complete") && Is("FailureTarget")) {
      Conditions("cannot set Complete=True and FailureTarget=true conditions");
    }
    if (Turned("Complete") || Changed("completionTime")) {
      if (!completed.is_null() && !Is("Complete")) {
        errors_.push_back(Invalid(at, completed, "cannot set completionTime when there is no Complete=True condition"));
      }
      if (completed.is_null() && Is("Complete"))
        errors_.push_back(Required(at, "completionTime is required for Complete jobs"));
    }
    if ((Changed("startTime") || Changed("completionTime")) && !completed.is_null() && IsSet(now_, "startTime")) {
      const auto ended = object::ParseTime(completed.as_string());
      const auto started = object::ParseTime(Text(now_, "startTime"));
      if (ended.ok() && started.ok() && ended->seconds < started->seconds) {
        errors_.push_back(Invalid(at, completed, "must be equal to or after `startTime`"));
      }
    }
    if ((Turned("Failed") || Changed("failedIndexes")) && Is("Failed") && !Is("FailureTarget")) {
      Conditions("cannot set Failed=True condition without the FailureTarget=true condition");
    }
    if ((Turned("Complete") || Turned("SuccessCriteriaMet")) && Is("Complete") && !Is("SuccessCriteriaMet")) {
      Conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
  }

  void Finishing() {
    const bool finished = Finished(job_), turned = finished != Finished(old_);
    if (!finished) return;
    if ((turned || Changed("active")) && Int(now_, "active") > 0) {
      errors_.push_back(Invalid(path_.Child("active"), now_["active"], "active>0 is invalid for finished job"));
    }
    const bool suspended_for_nothing =
        Bool(spec_, "suspend") && IsSet(spec_, "completions") && Int(spec_, "completions") == 0;
    if ((turned || Changed("startTime")) && !suspended_for_nothing && !IsSet(now_, "startTime")) {
      errors_.push_back(Required(path_.Child("startTime"), "startTime is required for finished job"));
    }
    const Value uncounted = now_["uncountedTerminatedPods"];
    if ((turned || Changed("uncountedTerminatedPods")) &&
        (!uncounted["failed"].empty() || !uncounted["succeeded"].empty())) {
      errors_.push_back({meta::FieldError::Type::kInvalid, path_.Child("uncountedTerminatedPods").ToString(),
                         UncountedText(uncounted), "must be empty for finished job"});
    }
  }

  // The hub form of UncountedTerminatedPods.
  static std::string UncountedText(Value pods) {
    const auto list = [](Value uids) { return uids.is_null() ? std::string("null") : validation::RenderValue(uids); };
    return "{\"Succeeded\":" + list(pods["succeeded"]) + ",\"Failed\":" + list(pods["failed"]) + "}";
  }

  void Indexes() {
    const std::string_view completed = Text(now_, "completedIndexes"), failed = Text(now_, "failedIndexes");
    const bool has_completions = IsSet(spec_, "completions"), per_index = IsSet(spec_, "backoffLimitPerIndex");
    const std::int64_t completions = Int(spec_, "completions");
    const FieldPath completed_path = path_.Child("completedIndexes"), failed_path = path_.Child("failedIndexes");
    const bool completed_changed = completed != Text(was_, "completedIndexes");
    const bool failed_changed = !(now_["failedIndexes"] == was_["failedIndexes"]);
    std::string problem;
    if (completed_changed && has_completions) {
      CountIndexes(completed, completions, problem);
      if (!problem.empty())
        errors_.push_back(Invalid(completed_path, completed, "error parsing completedIndexes: " + problem));
    }
    if (failed_changed && has_completions && per_index && IsSet(now_, "failedIndexes")) {
      problem.clear();
      CountIndexes(failed, completions, problem);
      if (!problem.empty()) errors_.push_back(Invalid(failed_path, failed, "error parsing failedIndexes: " + problem));
    }
    if (completed_changed && !completed.empty() && Text(spec_, "completionMode") != "Indexed") {
      errors_.push_back(
          Invalid(completed_path, completed, "cannot set non-empty completedIndexes when non-indexed completion mode"));
    }
    if (failed_changed && !per_index && IsSet(now_, "failedIndexes")) {
      errors_.push_back(
          Invalid(failed_path, failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null"));
    }
    if ((failed_changed || completed_changed) && has_completions && IsSet(now_, "failedIndexes")) {
      problem = OverlapProblem(completed, failed, completions);
      if (!problem.empty()) errors_.push_back(Invalid(failed_path, failed, problem));
    }
    const bool finished = Finished(job_);
    if ((finished != Finished(old_) || Changed("terminating")) && finished && Int(now_, "terminating") > 0) {
      errors_.push_back(
          Invalid(path_.Child("terminating"), now_["terminating"], "terminating>0 is invalid for finished job"));
    }
    if ((Changed("ready") || Changed("active")) && IsSet(now_, "ready") && Int(now_, "ready") > Int(now_, "active")) {
      errors_.push_back(Invalid(path_.Child("ready"), now_["ready"], "cannot set more ready pods than active"));
    }
  }

  void SuccessCriteria() {
    const bool met = Is("SuccessCriteriaMet");
    if (met && Is("Failed")) Conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    if (met && Is("FailureTarget")) Conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    if (IsSet(spec_, "successPolicy") && !met && Is("Complete")) {
      Conditions("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
    }
  }

  void Transitions() {
    for (const std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
      if (Was(type) && !Is(type)) Conditions("cannot disable the terminal " + std::string(type) + "=True condition");
    }
    if (Int(now_, "failed") < Int(was_, "failed")) {
      errors_.push_back(
          Invalid(path_.Child("failed"), Value(Int(now_, "failed")), "cannot decrease the failed counter"));
    }
    const bool elastic = Text(spec_, "completionMode") == "Indexed" && spec_["completions"] == spec_["parallelism"];
    if (!elastic && Int(now_, "succeeded") < Int(was_, "succeeded")) {
      errors_.push_back(
          Invalid(path_.Child("succeeded"), Value(Int(now_, "succeeded")), "cannot decrease the succeeded counter"));
    }
    if (IsSet(now_, "completionTime") && IsSet(was_, "completionTime") && Changed("completionTime")) {
      errors_.push_back(Invalid(path_.Child("completionTime"), now_["completionTime"], "field is immutable"));
    }
    const bool resuming = Was("Suspended") && ConditionFalse(job_, "Suspended");
    if (Changed("startTime") && !resuming && IsSet(was_, "startTime") && !Bool(spec_, "suspend")) {
      errors_.push_back(
          Invalid(path_.Child("startTime"), now_["startTime"], "field is immutable for unsuspended job once set"));
    }
    if (Was("SuccessCriteriaMet") && !Is("SuccessCriteriaMet"))
      Conditions("cannot disable the SuccessCriteriaMet=True condition");
    if (Was("Complete") && !Was("SuccessCriteriaMet") && Is("SuccessCriteriaMet")) {
      Conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
    }
  }

  const Value job_, old_, spec_, now_, was_;
  FieldErrors& errors_;
  const FieldPath path_{"status"};
};

}  // namespace

std::int64_t CountIndexes(std::string_view text, std::int64_t completions, std::string& problem) {
  if (text.empty()) return 0;
  std::int64_t total = 0, last = -1;
  bool first = true;
  for (const std::string_view part : base::Split(text, ',')) {
    const Interval interval = ParseInterval(part, completions);
    if (!interval.problem.empty()) {
      problem = interval.problem;
      return 0;
    }
    if (!first && last >= interval.first) {
      problem =
          "non-increasing order, previous: " + std::to_string(last) + ", current: " + std::to_string(interval.first);
      return 0;
    }
    first = false;
    last = interval.last;
    total += interval.last - interval.first + 1;
  }
  return total;
}

std::string OverlapProblem(std::string_view completed, std::string_view failed, std::int64_t completions) {
  if (completed.empty() || failed.empty()) return {};
  const auto completed_parts = base::Split(completed, ','), failed_parts = base::Split(failed, ',');
  for (std::size_t i = 0, j = 0; i < completed_parts.size() && j < failed_parts.size();) {
    const Interval c = ParseInterval(completed_parts[i], completions), f = ParseInterval(failed_parts[j], completions);
    if (!c.problem.empty()) {
      ++i;  // told elsewhere
    } else if (!f.problem.empty()) {
      ++j;
    } else if (c.first <= f.last && f.first <= c.last) {
      return "failedIndexes and completedIndexes overlap at index: " + std::to_string(std::max(c.first, f.first));
    } else if (c.first <= f.first) {
      ++i;
    } else {
      ++j;
    }
  }
  return {};
}

void ValidateJobStatusUpdate(const Call&, Value job, Value old, FieldErrors& errors) {
  validation::ValidateObjectMetaUpdate(job["metadata"], old["metadata"], FieldPath("metadata"), errors);
  StatusUpdate(job, old, errors).Check();
}

}  // namespace keelson::registry::batch
