#include "object/time.h"
#include "registry/batch/jobs.h"

#include <chrono>
#include <limits>

#include "base/strings.h"
#include "object/age.h"
#include "registry/cells.h"
#include "registry/core/hub.h"
#include "registry/core/pod_spec.h"
#include "registry/core/pod_template.h"
#include "registry/semantic.h"
#include "schema/types.h"

namespace keelson::registry::batch {
namespace {

using base::Arena;
using core::CoreHubTypes;
using core::PodOptions;

constexpr std::int64_t kParallelismMax = 100'000;
constexpr std::int64_t kFailedIndexesMax = 100'000;
constexpr std::int64_t kManyCompletions = 100'000;  // from here on indexes are many
constexpr std::int64_t kParallelismOfManyMax = 10'000;
constexpr std::int64_t kFailedIndexesOfManyMax = 10'000;
constexpr std::size_t kRulesMax = 20;
constexpr std::size_t kExitCodesMax = 255;
constexpr std::size_t kManagedByBytesMax = 63;
constexpr std::size_t kSucceededIndexesBytesMax = 64 * 1024;
constexpr std::string_view kControllerUID = "batch.kubernetes.io/controller-uid";
constexpr std::string_view kJobName = "batch.kubernetes.io/job-name";
constexpr std::string_view kLegacyControllerUID = "controller-uid";
constexpr std::string_view kLegacyJobName = "job-name";

void CheckMost(Value spec, std::string_view key, std::int64_t most, std::string_view when, const FieldPath& path,
               FieldErrors& errors) {
  if (!IsSet(spec, key) || Int(spec, key) <= most) return;
  errors.push_back(
      Invalid(path.Child(key), spec[key], "must be less than or equal to " + std::to_string(most) + std::string(when)));
}

void CheckIndexed(Value spec, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kOfMany = " when completions are above 100000 and used with backoff limit per index";
  if (!IsSet(spec, "completions"))
    errors.push_back(Required(path.Child("completions"), "when completion mode is Indexed"));
  CheckMost(spec, "parallelism", kParallelismMax, " when completion mode is Indexed", path, errors);
  if (IsSet(spec, "completions") && Int(spec, "maxFailedIndexes") > Int(spec, "completions")) {
    errors.push_back(
        Invalid(path.Child("maxFailedIndexes"), spec["maxFailedIndexes"], "must be less than or equal to completions"));
  }
  CheckMost(spec, "maxFailedIndexes", kFailedIndexesMax, "", path, errors);
  if (Int(spec, "completions") <= kManyCompletions || !IsSet(spec, "backoffLimitPerIndex")) return;
  if (!IsSet(spec, "maxFailedIndexes")) {
    errors.push_back(Required(path.Child("maxFailedIndexes"), "must be specified when completions is above 100000"));
  }
  CheckMost(spec, "parallelism", kParallelismOfManyMax, kOfMany, path, errors);
  CheckMost(spec, "maxFailedIndexes", kFailedIndexesOfManyMax, kOfMany, path, errors);
}

std::string ValidValues(Names names) {
  std::string text = "valid values: [";
  for (const std::string_view name : names) text.append(text.ends_with('[') ? "" : " ").append(base::GoQuote(name));
  return text + "]";
}

// Required, with what is possible in the message, or not supported.
void RequireListed(Value value, Names names, const FieldPath& path, FieldErrors& errors) {
  if (value.as_string().empty()) {
    errors.push_back(Required(path, ValidValues(names)));
  } else {
    CheckOneOf(value, names, path, errors);
  }
}

void CheckExitCodes(Value codes, const NameSet& containers, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kOperators[] = {"In", "NotIn"};
  RequireListed(codes["operator"], kOperators, path.Child("operator"), errors);
  if (IsSet(codes, "containerName") && !containers.contains(Text(codes, "containerName"))) {
    errors.push_back(Invalid(path.Child("containerName"), Text(codes, "containerName"),
                             "must be one of the container or initContainer names in the pod template"));
  }
  const Value values = codes["values"];
  const FieldPath list = path.Child("values");
  if (values.empty()) {
    errors.push_back(Invalid(list, values, "at least one value is required"));
  } else if (values.size() > kExitCodesMax) {
    errors.push_back(validation::TooMany(list, static_cast<std::int64_t>(values.size()), kExitCodesMax));
  }
  std::set<std::int64_t> seen;
  bool ordered = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const FieldPath at = list.Index(static_cast<std::int64_t>(i));
    const std::int64_t code = values[i].as_int();
    if (Text(codes, "operator") == "In" && code == 0)
      errors.push_back(Invalid(at, Value(code), "must not be 0 for the In operator"));
    if (!seen.insert(code).second) errors.push_back(Duplicate(at, Value(code)));
    ordered &= i == 0 || values[i - 1].as_int() <= code;
  }
  if (!ordered) errors.push_back(Invalid(list, values, "must be ordered"));
}

void CheckPodConditions(Value patterns, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kStatuses[] = {"False", "True", "Unknown"};
  if (patterns.size() > kRulesMax)
    errors.push_back(validation::TooMany(path, static_cast<std::int64_t>(patterns.size()), kRulesMax));
  std::int64_t index = 0;
  for (const Value pattern : patterns.items()) {
    const FieldPath at = path.Index(index++);
    CheckQualifiedName(Text(pattern, "type"), at.Child("type"), errors);
    RequireListed(pattern["status"], kStatuses, at.Child("status"), errors);
  }
}

void CheckFailurePolicy(Value spec, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kActions[] = {"Count", "FailIndex", "FailJob", "Ignore"};
  const Value rules = spec["podFailurePolicy"]["rules"];
  const FieldPath list = path.Child("rules");
  if (rules.size() > kRulesMax)
    errors.push_back(validation::TooMany(list, static_cast<std::int64_t>(rules.size()), kRulesMax));
  NameSet containers;
  for (const std::string_view key : {"containers", "initContainers"}) {
    for (const Value container : spec["template"]["spec"][key].items()) containers.emplace(Text(container, "name"));
  }
  std::int64_t index = 0;
  for (const Value rule : rules.items()) {
    const FieldPath at = list.Index(index++);
    if (Text(rule, "action") == "FailIndex") {
      if (!IsSet(spec, "backoffLimitPerIndex")) {
        errors.push_back(Invalid(at.Child("action"), "FailIndex", "requires the backoffLimitPerIndex to be set"));
      }
    } else {
      RequireListed(rule["action"], kActions, at.Child("action"), errors);
    }
    const bool codes = IsSet(rule, "onExitCodes"), conditions = !rule["onPodConditions"].empty();
    if (codes) CheckExitCodes(rule["onExitCodes"], containers, at.Child("onExitCodes"), errors);
    if (conditions) CheckPodConditions(rule["onPodConditions"], at.Child("onPodConditions"), errors);
    if (codes && conditions)
      errors.push_back(InvalidOmitted(at, "specifying both OnExitCodes and OnPodConditions is not supported"));
    if (!codes && !conditions)
      errors.push_back(InvalidOmitted(at, "specifying one of OnExitCodes and OnPodConditions is required"));
  }
}

void CheckSuccessPolicy(Value spec, const FieldPath& path, FieldErrors& errors) {
  const Value rules = spec["successPolicy"]["rules"];
  const FieldPath list = path.Child("rules");
  const std::int64_t completions = Int(spec, "completions");
  if (rules.empty())
    errors.push_back(Required(list, "at least one rules must be specified when the successPolicy is specified"));
  if (rules.size() > kRulesMax)
    errors.push_back(validation::TooMany(list, static_cast<std::int64_t>(rules.size()), kRulesMax));
  std::int64_t index = 0;
  for (const Value rule : rules.items()) {
    const FieldPath at = list.Index(index++);
    const Value indexes = rule["succeededIndexes"], count = rule["succeededCount"];
    if (indexes.is_null() && count.is_null()) {
      errors.push_back(Required(at, "at least one of succeededCount or succeededIndexes must be specified"));
    }
    std::int64_t total = 0;
    if (!indexes.is_null()) {
      const FieldPath indexes_path = at.Child("succeededIndexes");
      if (indexes.as_string().size() > kSucceededIndexesBytesMax)
        errors.push_back(validation::TooLong(indexes_path, kSucceededIndexesBytesMax));
      std::string problem;
      total = CountIndexes(indexes.as_string(), completions, problem);
      if (!problem.empty())
        errors.push_back(Invalid(indexes_path, indexes.as_string(), "error parsing succeededIndexes: " + problem));
    }
    if (count.is_null()) continue;
    const FieldPath count_path = at.Child("succeededCount");
    validation::ValidateNonnegative(count.as_int(), count_path, errors);
    const auto at_most = [&](std::int64_t most, std::string_view what) {
      if (count.as_int() <= most) return;
      errors.push_back(Invalid(
          count_path, count,
          "must be less than or equal to " + std::to_string(most) + " (the number of " + std::string(what) + ")"));
    };
    at_most(completions, "specified completions");
    if (!indexes.is_null()) at_most(total, "indexes in the specified succeededIndexes field");
  }
}

void CheckRestartPolicy(Value spec, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kPolicies[] = {"OnFailure", "Never"};
  const std::string_view policy = Text(spec["template"]["spec"], "restartPolicy");
  if (policy == "Always" || policy.empty()) {
    errors.push_back(Required(path, "valid values: \"OnFailure\", \"Never\""));
  } else if (!Contains(kPolicies, policy)) {
    errors.push_back(NotSupported(path, Value(policy), kPolicies));
  } else if (IsSet(spec, "podFailurePolicy") && policy != "Never") {
    errors.push_back(Invalid(path, policy, "only \"Never\" is supported when podFailurePolicy is specified"));
  }
}

void CheckHasLabel(Value pod_template, std::string_view key, std::string_view wanted, FieldErrors& errors) {
  const FieldPath spec("spec");
  const FieldPath template_path = spec.Child("template");
  const FieldPath metadata = template_path.Child("metadata");
  const FieldPath labels_path = metadata.Child("labels");
  const Value labels = pod_template["metadata"]["labels"];
  const std::string message = "must be '" + std::string(wanted) + "'";
  if (!labels.Has(key)) {
    errors.push_back(Required(labels_path.Key(key), message));
  } else if (Text(labels, key) != wanted) {
    errors.push_back(InvalidHub(labels_path.Key(key), CoreHubTypes(), labels, "{}string", message));
  }
}

void CheckGeneratedSelector(const Call& call, Value job, bool prefixed, FieldErrors& errors) {
  const Value spec = job["spec"], selector = spec["selector"];
  if (Bool(spec, "manualSelector") || selector.is_null()) return;
  const std::string_view uid = Text(job["metadata"], "uid"), name = Text(job["metadata"], "name");
  if (uid.empty()) errors.push_back(Required(FieldPath("metadata").Child("uid")));
  Value wanted = Value::Map(call.arena, 4);
  wanted.Set(call.arena, kLegacyControllerUID, Value(uid));
  wanted.Set(call.arena, kLegacyJobName, Value(name));
  if (prefixed) {
    wanted.Set(call.arena, kControllerUID, Value(uid));
    wanted.Set(call.arena, kJobName, Value(name));
  }
  for (const object::Member& label : wanted.members())
    CheckHasLabel(spec["template"], label.key, label.value.as_string(), errors);
  if (LabelSelectorParses(selector) && !LabelSelectorMatches(selector, wanted)) {
    errors.push_back(InvalidHub(FieldPath("spec").Child("selector"), CoreHubTypes(), selector, "~LabelSelector",
                                "`selector` not auto-generated"));
  }
}

struct JobOptions {
  PodOptions pod;
  bool prefixed_labels = true;
  bool mutable_template = false;  // scheduling directives and resources of a job that does not run
};

JobOptions OptionsFor(const Call& call, Value old) {
  const Value before = old["spec"]["template"];
  JobOptions options{.pod = core::PodOptionsFor(call, false, before["spec"], before["metadata"])};
  if (old.is_null()) return options;
  options.pod.allow_invalid_label_value_in_selector |= !LabelSelectorParses(old["spec"]["selector"]);
  options.mutable_template = Bool(old["spec"], "suspend") && Int(old["status"], "active") == 0 &&
                             (!IsSet(old["status"], "startTime") || JobConditionTrue(old, "Suspended"));
  options.prefixed_labels =
      before["metadata"]["labels"].Has(kJobName) && before["metadata"]["labels"].Has(kControllerUID);
  return options;
}

void CheckSpec(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  ValidateJobSpecWithoutSelector(spec, options, path, errors);
  const Value selector = spec["selector"];
  if (selector.is_null()) {
    errors.push_back(Required(path.Child("selector")));
  } else {
    validation::ValidateLabelSelector(selector, path.Child("selector"), errors,
                                      options.allow_invalid_label_value_in_selector);
  }
  if (selector.is_null() || LabelSelectorParses(selector)) {
    core::CheckTemplateLabels(spec["template"], LabelSelectorMatches(selector, spec["template"]["metadata"]["labels"]),
                              path.Child("template"), errors);
  }
}

void CheckJob(const Call& call, Value job, const JobOptions& options, FieldErrors& errors) {
  const Value spec = job["spec"];
  CheckGeneratedSelector(call, job, options.prefixed_labels, errors);
  CheckSpec(spec, options.pod, FieldPath("spec"), errors);
  if (Text(spec, "completionMode") != "Indexed" || Int(spec, "completions") <= 0) return;
  const std::string name(Text(job["metadata"], "name"));
  const std::string hostname = name + "-" + std::to_string(Int(spec, "completions") - 1);
  if (!validation::IsDNS1123Label(hostname).empty()) {
    errors.push_back(Invalid(FieldPath("metadata").Child("name"), name,
                             "will not able to create pod with invalid DNS label: " + hostname));
  }
}

void CheckUnchanged(Value now, Value old, std::string_view key, const schema::Struct* type, const FieldPath& path,
                    FieldErrors& errors) {
  const Value after = now[key], before = old[key];
  const bool same =
      type == nullptr ? after == before : after.is_null() == before.is_null() && SemanticEqual(after, before, *type);
  if (same) return;
  if (type == nullptr) {
    errors.push_back(Invalid(path.Child(key), after, "field is immutable"));
  } else {
    errors.push_back(
        InvalidHub(path.Child(key), CoreHubTypes(), after, "*" + std::string(type->name), "field is immutable"));
  }
}

void CheckCompletionsUpdate(Value now, Value old, const FieldPath& path, FieldErrors& errors) {
  if (Text(now, "completionMode") != "Indexed") return CheckUnchanged(now, old, "completions", nullptr, path, errors);
  if (now["completions"] == old["completions"] || !IsSet(now, "completions")) return;
  if (Int(now, "completions") != Int(now, "parallelism")) {
    errors.push_back(
        Invalid(path.Child("completions"), now["completions"], "can only be modified in tandem with spec.parallelism"));
  }
}

void CheckTemplateUpdate(Arena& arena, Value now, Value old, const JobOptions& options, const FieldPath& path,
                         FieldErrors& errors) {
  const Value pod_template = now["template"];
  Value was = old["template"].Clone(arena);
  if (options.mutable_template) {
    Value spec = was["spec"], metadata = was.EnsureMap(arena, "metadata");
    const Value new_affinity = pod_template["spec"]["affinity"];
    if (new_affinity.is_null()) {
      spec["affinity"].Erase("nodeAffinity");
      if (spec["affinity"].empty()) spec.Erase("affinity");
    } else {
      CopyMember(arena, spec.EnsureMap(arena, "affinity"), new_affinity, "nodeAffinity");
    }
    for (const std::string_view key : {"nodeSelector", "tolerations", "schedulingGates"})
      CopyMember(arena, spec, pod_template["spec"], key);
    for (const std::string_view key : {"annotations", "labels"})
      CopyMember(arena, metadata, pod_template["metadata"], key);
    for (const std::string_view list : {"containers", "initContainers"}) {
      const Value containers = pod_template["spec"][list];
      if (containers.size() != spec[list].size()) continue;
      for (std::size_t i = 0; i < containers.size(); ++i) {
        if (Text(containers[i], "name") == Text(spec[list][i], "name"))
          CopyMember(arena, spec[list][i], containers[i], "resources");
      }
    }
    if (SemanticEqual(pod_template["spec"], spec, schema::types::core_v1::kPodSpec)) return;
    errors.push_back(
        InvalidHub(path.Child("template.spec"), CoreHubTypes(), pod_template["spec"], "PodSpec", "field is immutable"));
    return;
  }
  if (SemanticEqual(pod_template, was, schema::types::core_v1::kPodTemplateSpec)) return;
  errors.push_back(
      InvalidHub(path.Child("template"), CoreHubTypes(), pod_template, "PodTemplateSpec", "field is immutable"));
}

}  // namespace

validation::FieldError InvalidOmitted(const FieldPath& path, std::string_view detail) {
  return {meta::FieldError::Type::kInvalid, path.ToString(), "", std::string(detail)};
}

bool JobConditionTrue(Value job, std::string_view type) {
  for (const Value condition : job["status"]["conditions"].items()) {
    if (Text(condition, "type") == type && Text(condition, "status") == "True") return true;
  }
  return false;
}

void DefaultJobTemplate(Arena& arena, Value spec) {
  core::DefaultPodTemplate(arena, spec, "template");
  for (const Value rule : spec["podFailurePolicy"]["rules"].items()) {
    for (const Value pattern : rule["onPodConditions"].items()) DefaultText(arena, pattern, "status", "True");
  }
}

void DefaultJob(Arena& arena, Value job) {
  Value spec = job.EnsureMap(arena, "spec");
  DefaultJobTemplate(arena, spec);
  if (!IsSet(spec, "completions") && !IsSet(spec, "parallelism")) spec.Set(arena, "completions", Value(1));
  Default(arena, spec, "parallelism", Value(1));
  if (!IsSet(spec, "backoffLimit")) {
    spec.Set(arena, "backoffLimit",
             Value(IsSet(spec, "backoffLimitPerIndex") ? std::int64_t{std::numeric_limits<std::int32_t>::max()} : 6));
  }
  Value metadata = job.EnsureMap(arena, "metadata");
  const Value labels = spec["template"]["metadata"]["labels"];
  // The same map, not a copy, as upstream: the labels that are generated for the template show up in both.
  if (!labels.empty() && metadata["labels"].empty()) metadata.Set(arena, "labels", labels);
  Default(arena, spec, "completionMode", "NonIndexed");
  Default(arena, spec, "suspend", false);
  Default(arena, spec, "podReplacementPolicy", IsSet(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
  Default(arena, spec, "manualSelector", false);
}

void PrepareJob(const Call& call, Value job, Value old) {
  Arena& arena = call.arena;
  Value spec = job["spec"], metadata = job["metadata"];
  if (!old.is_null()) {
    core::DropDisabledPodFields(call, spec["template"]["spec"], old["spec"]["template"]["spec"]);
    if (!SemanticEqual(spec, old["spec"], schema::types::batch_v1::kJobSpec)) {
      metadata.Set(arena, "generation", Value(Int(old["metadata"], "generation") + 1));
    }
    return;
  }
  metadata.Set(arena, "generation", Value(1));
  core::DropDisabledPodFields(call, spec["template"]["spec"], {});
  if (Bool(spec, "manualSelector")) return;
  Value pod_template = spec.EnsureMap(arena, "template");
  Value template_metadata = pod_template.EnsureMap(arena, "metadata");
  Value labels = template_metadata.EnsureMap(arena, "labels");
  for (const std::string_view key : {kLegacyJobName, kJobName}) Default(arena, labels, key, metadata["name"]);
  for (const std::string_view key : {kLegacyControllerUID, kControllerUID})
    Default(arena, labels, key, metadata["uid"]);
  Value selector = spec.EnsureMap(arena, "selector");
  Default(arena, selector.EnsureMap(arena, "matchLabels"), kControllerUID, metadata["uid"]);
}

void ValidateJobSpecWithoutSelector(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kModes[] = {"NonIndexed", "Indexed"};
  constexpr std::string_view kFailed[] = {"Failed"};
  constexpr std::string_view kReplacement[] = {"Failed", "TerminatingOrFailed"};
  for (const std::string_view key : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                                     "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    CheckNonnegative(spec, key, path, errors);
  }
  if (IsSet(spec, "maxFailedIndexes") && !IsSet(spec, "backoffLimitPerIndex")) {
    errors.push_back(Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
  }
  if (IsSet(spec, "managedBy")) {
    validation::ValidateDomainPrefixedPath(Text(spec, "managedBy"), path.Child("managedBy"), errors);
    if (Text(spec, "managedBy").size() > kManagedByBytesMax)
      errors.push_back(validation::TooLong(path.Child("managedBy"), kManagedByBytesMax));
  }
  const std::string_view mode = Text(spec, "completionMode");
  if (IsSet(spec, "completionMode")) {
    CheckOneOf(spec["completionMode"], kModes, path.Child("completionMode"), errors);
    if (mode == "Indexed") CheckIndexed(spec, path, errors);
  }
  if (!IsSet(spec, "completionMode") || mode == "NonIndexed") {
    for (const std::string_view key : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (IsSet(spec, key)) errors.push_back(Invalid(path.Child(key), spec[key], "requires indexed completion mode"));
    }
  }
  if (IsSet(spec, "podFailurePolicy")) CheckFailurePolicy(spec, path.Child("podFailurePolicy"), errors);
  if (IsSet(spec, "successPolicy")) {
    if (mode != "Indexed") {
      errors.push_back(InvalidHub(path.Child("successPolicy"), CoreHubTypes(), spec["successPolicy"], "SuccessPolicy",
                                  "requires indexed completion mode"));
    } else {
      CheckSuccessPolicy(spec, path.Child("successPolicy"), errors);
    }
  }
  if (IsSet(spec, "podReplacementPolicy")) {
    const bool only_failed = IsSet(spec, "podFailurePolicy");
    CheckOneOf(spec["podReplacementPolicy"], only_failed ? Names(kFailed) : Names(kReplacement),
               path.Child("podReplacementPolicy"), errors);
  }
  const FieldPath template_path = path.Child("template");
  core::ValidatePodTemplateSpec(spec["template"], options, template_path, errors);
  CheckRestartPolicy(spec, template_path.Child("spec").Child("restartPolicy"), errors);
}

void ValidateJob(const Call& call, Value job, Value old, FieldErrors& errors) {
  CheckJob(call, job, OptionsFor(call, old), errors);
}

void ValidateJobUpdate(const Call& call, Value job, Value old, FieldErrors& errors) {
  const JobOptions options = OptionsFor(call, old);
  const FieldPath metadata("metadata"), path("spec");
  const Value now = job["spec"], before = old["spec"];
  validation::ValidateObjectMeta(job["metadata"], true, validation::NameIsDNSSubdomain, metadata, errors);
  CheckJob(call, job, options, errors);
  validation::ValidateObjectMetaUpdate(job["metadata"], old["metadata"], metadata, errors);
  CheckSpec(now, options.pod, path, errors);  // a second time, as upstream
  CheckCompletionsUpdate(now, before, path, errors);
  core::CheckSelectorUnchanged(now["selector"], before["selector"], errors);
  CheckTemplateUpdate(call.arena, now, before, options, path, errors);
  CheckUnchanged(now, before, "completionMode", nullptr, path, errors);
  CheckUnchanged(now, before, "podFailurePolicy", &schema::types::batch_v1::kPodFailurePolicy, path, errors);
  CheckUnchanged(now, before, "backoffLimitPerIndex", nullptr, path, errors);
  CheckUnchanged(now, before, "managedBy", nullptr, path, errors);
  CheckUnchanged(now, before, "successPolicy", &schema::types::batch_v1::kSuccessPolicy, path, errors);
}

void WarnJobSpec(const Call& call, Value spec, const FieldPath& path) {
  if (Text(spec, "completionMode") == "Indexed" && Int(spec, "completions") > kManyCompletions &&
      Int(spec, "parallelism") > kParallelismOfManyMax) {
    Warning(call, path,
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
            "Kubernetes might not be able to "
            "track completedIndexes when a big number of indexes fail");
  }
  core::WarnPodSpec(call, spec["template"]["spec"], spec["template"]["metadata"], path.Child("template"));
}

void WarnJob(const Call& call, Value job, Value old) {
  if (old.is_null()) {
    core::WarnName(call, job, "Pod names and hostnames");
  } else if (Int(job["metadata"], "generation") == Int(old["metadata"], "generation")) {
    return;
  }
  WarnJobSpec(call, job["spec"], FieldPath("spec"));
}

void JobRow(Arena& arena, const base::Clock& clock, Value job, Value cells) {
  const Value spec = job["spec"], status = job["status"];
  const std::string succeeded = std::to_string(Int(status, "succeeded"));
  std::string completions;
  if (IsSet(spec, "completions")) {
    completions = succeeded + "/" + std::to_string(Int(spec, "completions"));
  } else {
    completions =
        succeeded + "/1" + (Int(spec, "parallelism") > 1 ? " of " + std::to_string(Int(spec, "parallelism")) : "");
  }
  std::string duration;
  if (const auto started = object::ParseTime(Text(status, "startTime")); started.ok()) {
    const auto finished = object::ParseTime(Text(status, "completionTime"));
    duration = finished.ok() ? object::HumanDuration(std::chrono::seconds(finished->seconds - started->seconds))
                             : Age(clock, status["startTime"]);
  }
  std::string_view state = "Running";
  for (const std::string_view type : {"SuccessCriteriaMet", "FailureTarget", "Suspended"}) {
    if (JobConditionTrue(job, type)) state = type;
  }
  if (IsSet(job["metadata"], "deletionTimestamp")) state = "Terminating";
  if (JobConditionTrue(job, "Failed")) state = "Failed";
  if (JobConditionTrue(job, "Complete")) state = "Complete";
  Row(arena, cells)
      .Name(job)
      .Add(state)
      .Add(completions)
      .Add(duration)
      .Age(clock, job)
      .Add(ContainerNames(spec["template"]["spec"]))
      .Add(ContainerImages(spec["template"]["spec"]))
      .Add(LabelSelectorText(spec["selector"]));
}

}  // namespace keelson::registry::batch
