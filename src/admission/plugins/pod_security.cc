// PodSecurity: pods must keep to the Pod Security Standard that their namespace's labels name; templates of pods get
// warnings.
#include "admission/plugins/pod_security_checks.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "admission/plugins/plugins.h"
#include "admission/plugins/pod_security_metrics.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

using namespace podsecurity;  // NOLINT: one vocabulary, two files
using Decision = PodSecurityMetrics::Decision;
using Mode = PodSecurityMetrics::Mode;
using Severity = PodSecurityMetrics::Severity;

constexpr std::size_t kPodsToCheck = 3000;
constexpr auto kPodCheckTime = std::chrono::seconds(1);

bool IsIgnoredSubresource(std::string_view subresource) {
  static constexpr std::string_view kIgnored[] = {"attach", "binding",     "eviction", "exec",
                                                  "log",    "portforward", "proxy",    "status"};
  return std::ranges::find(kIgnored, subresource) != std::end(kIgnored);
}

// The pod template of the resource; null if it has none.
Value TemplateOf(const Attributes& attributes) {
  const Value object = attributes.object;
  if (attributes.Is("", "podtemplates")) return object["template"];
  if (attributes.Is("batch", "cronjobs")) return object.Get("spec", "jobTemplate", "spec", "template");
  const bool plain = attributes.Is("", "replicationcontrollers") || attributes.Is("apps", "replicasets") ||
                     attributes.Is("apps", "deployments") || attributes.Is("apps", "statefulsets") ||
                     attributes.Is("apps", "daemonsets") || attributes.Is("batch", "jobs");
  return plain ? object.Get("spec", "template") : Value();
}

bool ImagesDiffer(Value now, Value old) {
  if (now.size() != old.size()) return true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i]["image"].as_string() != old[i]["image"].as_string()) return true;
  }
  return false;
}

// May this update have changed what the checks look at? All else in a pod's spec is immutable.
bool IsSignificant(Value pod, Value old) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (ImagesDiffer(pod["spec"][list], old["spec"][list])) return true;
  }
  const auto before = old.Get("spec", "ephemeralContainers").items();
  return std::ranges::any_of(pod.Get("spec", "ephemeralContainers").items(), [&](Value container) {
    const auto same = std::ranges::find_if(before, [&](Value other) { return other["name"] == container["name"]; });
    return same == before.end() || (*same)["image"].as_string() != container["image"].as_string();
  });
}

// Pods without a controller and the first of each controller go first: the others are most likely alike.
std::vector<Value> Prioritize(const std::vector<Value>& pods) {
  std::vector<Value> first, rest;
  std::set<std::string_view> controllers;
  for (const Value pod : pods) {
    const auto owners = pod.Get("metadata", "ownerReferences").items();
    const auto controller = std::ranges::find_if(owners, [](Value owner) { return owner["controller"].as_bool(); });
    const bool seen = controller != owners.end() && !controllers.insert((*controller)["uid"].as_string()).second;
    (seen ? rest : first).push_back(pod);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

bool IsFullyPrivileged(const Policy& policy) {
  return policy.enforce.level == Level::kPrivileged && policy.audit.level == Level::kPrivileged &&
         policy.warn.level == Level::kPrivileged;
}

class PodSecurityPlugin final : public Plugin {
 public:
  explicit PodSecurityPlugin(const PluginContext& options)
      : reader_(*options.reader), clock_(*options.clock), metrics_(options.pod_security_metrics) {
    const Value configuration = options.ConfigurationOf("PodSecurity");
    const Value defaults = configuration["defaults"];
    const auto read = [&](std::string_view mode, LevelVersion& into) {
      into.level = ParseLevel(defaults[mode].as_string()).value_or(Level::kPrivileged);
      into.version = ParseVersion(defaults[std::string(mode) + "-version"].as_string()).value_or(Version());
    };
    read("enforce", defaults_.enforce);
    read("audit", defaults_.audit);
    read("warn", defaults_.warn);
    const auto names = [&](std::string_view key, std::set<std::string, std::less<>>& into) {
      for (const Value name : configuration["exemptions"][key].items()) into.emplace(name.as_string());
    };
    names("namespaces", exempt_namespaces_);
    names("usernames", exempt_users_);
    names("runtimeClasses", exempt_classes_);
  }
  std::string_view name() const override { return "PodSecurity"; }
  bool Handles(Operation operation) const override {
    return operation == Operation::kCreate || operation == Operation::kUpdate;
  }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (attributes.Is("", "namespaces")) co_return co_await CheckNamespace(context, attributes);
    if (attributes.Is("", "pods")) co_return co_await CheckPod(context, attributes);
    if (attributes.subresource.empty()) {
      if (const Value pod_template = TemplateOf(attributes); pod_template.is_map()) {
        co_await CheckTemplate(context, attributes, pod_template);
      }
    }
    co_return meta::Result<void>();
  }

 private:
  Task<void> CheckNamespace(request::Context& context, const Attributes& attributes) {
    if (!attributes.subresource.empty()) co_return meta::Result<void>();
    meta::FieldErrors errors, old_errors;
    const Policy policy = PolicyFromLabels(attributes.object.Get("metadata", "labels"), defaults_, errors);
    const Policy old = PolicyFromLabels(attributes.old_object.Get("metadata", "labels"), defaults_, old_errors);
    const std::string name(attributes.object.Get("metadata", "name").as_string());
    const bool create = attributes.operation == Operation::kCreate;
    if (!errors.empty() && (create || meta::AggregateMessage(errors) != meta::AggregateMessage(old_errors))) {
      co_return meta::NewInvalid({"", "Namespace"}, name, errors);
    }
    if (exempt_namespaces_.contains(name)) co_return meta::Result<void>();
    if (create || policy.enforce == old.enforce || policy.enforce.level == Level::kPrivileged)
      co_return meta::Result<void>();
    if (policy.enforce.version == old.enforce.version && policy.enforce.level <= old.enforce.level)
      co_return meta::Result<void>();
    co_await WarnOfPods(context, name, policy.enforce);
    co_return meta::Result<void>();
  }

  Awaitable<void> WarnOfPods(request::Context& context, std::string name_space, LevelVersion enforce) {
    auto end = clock_.Monotonic() + kPodCheckTime;
    if (context.deadline) end = std::min(end, clock_.Monotonic() + (*context.deadline - clock_.Monotonic()) / 2);
    auto listed = co_await reader_.List(context.arena, "", "pods", name_space);
    if (!listed.ok()) {
      context.warnings.Add("failed to list pods while checking new PodSecurity enforce level");
      co_return;
    }
    std::erase_if(*listed, [&](Value pod) { return ExemptClass(pod["spec"]); });
    const std::vector<Value> pods = Prioritize(*listed);
    struct Group {
      std::string first;
      std::size_t count = 0;
    };
    std::map<std::string, Group> groups;  // by what is wrong
    std::size_t checked = 0;
    while (checked < std::min(pods.size(), kPodsToCheck)) {
      const Value pod = pods[checked++];
      if (const auto violations = Evaluate(enforce, pod["metadata"], pod["spec"]); !violations.empty()) {
        Group& group = groups[Reasons(violations)];
        const std::string_view name = pod.Get("metadata", "name").as_string();
        if (group.count++ == 0 || name < group.first) group.first = name;
      }
      if (clock_.Monotonic() > end) break;
    }
    if (checked < pods.size()) {
      context.warnings.Add("new PodSecurity enforce level only checked against the first " + std::to_string(checked) +
                           " of " + std::to_string(pods.size()) + " existing pods");
    }
    if (groups.empty()) co_return;
    context.warnings.Add("existing pods in namespace " + base::GoQuote(name_space) +
                         " violate the new PodSecurity enforce level " + base::GoQuote(enforce.ToString()));
    std::set<std::string> lines;
    for (const auto& [reasons, group] : groups) {
      std::string who = group.first;
      if (group.count == 2) who += " (and 1 other pod)";
      if (group.count > 2) who += " (and " + std::to_string(group.count - 1) + " other pods)";
      lines.insert(who + ": " + reasons);
    }
    for (const std::string& line : lines) context.warnings.Add(line);
  }

  Task<void> CheckPod(request::Context& context, const Attributes& attributes) {
    if (IsIgnoredSubresource(attributes.subresource)) co_return meta::Result<void>();
    if (IsExempt(context, attributes)) co_return meta::Result<void>();
    auto found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
    if (!found.ok()) found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, true);
    if (!found.ok()) {
      if (metrics_) metrics_->RecordError(Severity::kFatal, attributes);
      co_return meta::NewInternalError("failed to lookup namespace " + base::GoQuote(attributes.name_space));
    }
    meta::FieldErrors errors;
    const Policy policy = PolicyFromLabels(found->Get("metadata", "labels"), defaults_, errors);
    if (errors.empty() && IsFullyPrivileged(policy)) {
      context.audit_annotations.Add("pod-security.kubernetes.io/enforce-policy", LevelVersion().ToString());
      Evaluated(Decision::kAllow, policy.enforce, Mode::kEnforce, attributes);
      co_return meta::Result<void>();
    }
    if (attributes.operation == Operation::kUpdate && !IsSignificant(attributes.object, attributes.old_object)) {
      co_return meta::Result<void>();
    }
    if (IsExemptClass(context, attributes, attributes.object["spec"])) co_return meta::Result<void>();
    ReportErrors(context, errors, attributes);
    context.audit_annotations.Add("pod-security.kubernetes.io/enforce-policy", policy.enforce.ToString());
    const auto violations = Evaluate(policy.enforce, attributes.object["metadata"], attributes.object["spec"]);
    Evaluated(violations.empty() ? Decision::kAllow : Decision::kDeny, policy.enforce, Mode::kEnforce, attributes);
    Audit(context, policy, attributes, attributes.object);
    if (!violations.empty()) {
      co_return NewForbidden(
          attributes, "violates PodSecurity " + base::GoQuote(policy.enforce.ToString()) + ": " + Details(violations));
    }
    Warn(context, policy, attributes, attributes.object);
    co_return meta::Result<void>();
  }

  Awaitable<void> CheckTemplate(request::Context& context, const Attributes& attributes, Value pod_template) {
    if (IsExempt(context, attributes)) co_return;
    auto found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
    if (!found.ok()) found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, true);
    if (!found.ok()) {  // nothing is refused here: the pods themselves will be
      if (metrics_) metrics_->RecordError(Severity::kFatal, attributes);
      context.audit_annotations.Add("pod-security.kubernetes.io/error",
                                    "failed to lookup namespace " + base::GoQuote(attributes.name_space) + ": " +
                                        std::string(found.error().message()));
      co_return;
    }
    meta::FieldErrors errors;
    const Policy policy = PolicyFromLabels(found->Get("metadata", "labels"), defaults_, errors);
    if (errors.empty() && policy.warn.level == Level::kPrivileged && policy.audit.level == Level::kPrivileged)
      co_return;
    if (IsExemptClass(context, attributes, pod_template["spec"])) co_return;
    ReportErrors(context, errors, attributes);
    Audit(context, policy, attributes, pod_template);
    Warn(context, policy, attributes, pod_template);
  }

  void Evaluated(Decision decision, const LevelVersion& policy, Mode mode, const Attributes& attributes) const {
    if (metrics_) metrics_->RecordEvaluation(decision, policy, mode, attributes);
  }

  // Pod security labels of the namespace that cannot be parsed: the stricter policy used instead is reported.
  void ReportErrors(request::Context& context, const meta::FieldErrors& errors, const Attributes& attributes) const {
    if (errors.empty()) return;
    context.audit_annotations.Add("pod-security.kubernetes.io/error",
                                  "Failed to parse policy: " + meta::AggregateMessage(errors));
    if (metrics_) metrics_->RecordError(Severity::kNonFatal, attributes);
  }

  bool ExemptClass(Value spec) const { return exempt_classes_.contains(spec["runtimeClassName"].as_string()); }

  // By namespace or user; the audit event says which.
  bool IsExempt(request::Context& context, const Attributes& attributes) const {
    std::string_view why;
    if (exempt_namespaces_.contains(attributes.name_space)) {
      why = "namespace";
    } else if (context.user && exempt_users_.contains(context.user->name)) {
      why = "user";
    }
    if (why.empty()) return false;
    context.audit_annotations.Add("pod-security.kubernetes.io/exempt", why);
    if (metrics_) metrics_->RecordExemption(attributes);
    return true;
  }

  bool IsExemptClass(request::Context& context, const Attributes& attributes, Value spec) const {
    if (!ExemptClass(spec)) return false;
    context.audit_annotations.Add("pod-security.kubernetes.io/exempt", "runtimeClass");
    if (metrics_) metrics_->RecordExemption(attributes);
    return true;
  }

  void Audit(request::Context& context, const Policy& policy, const Attributes& attributes, Value pod) const {
    const auto violations = Evaluate(policy.audit, pod["metadata"], pod["spec"]);
    if (violations.empty()) return;
    Evaluated(Decision::kDeny, policy.audit, Mode::kAudit, attributes);
    context.audit_annotations.Add(
        "pod-security.kubernetes.io/audit-violations",
        "would violate PodSecurity " + base::GoQuote(policy.audit.ToString()) + ": " + Details(violations));
  }

  void Warn(request::Context& context, const Policy& policy, const Attributes& attributes, Value pod) const {
    const auto violations = Evaluate(policy.warn, pod["metadata"], pod["spec"]);
    if (violations.empty()) return;
    Evaluated(Decision::kDeny, policy.warn, Mode::kWarn, attributes);
    context.warnings.Add("would violate PodSecurity " + base::GoQuote(policy.warn.ToString()) + ": " +
                         Details(violations));
  }

  ObjectReader& reader_;
  const base::Clock& clock_;
  PodSecurityMetrics* const metrics_;  // may be null
  Policy defaults_;
  std::set<std::string, std::less<>> exempt_namespaces_, exempt_users_, exempt_classes_;
};

}  // namespace

std::string CheckPodSecurity(Value configuration) {
  constexpr ConfigurationKind kKinds[] = {
      {"pod-security.admission.config.k8s.io", "v1", "PodSecurityConfiguration"},
      {"pod-security.admission.config.k8s.io", "v1beta1", "PodSecurityConfiguration"},
      {"pod-security.admission.config.k8s.io", "v1alpha1", "PodSecurityConfiguration"}};
  if (configuration.is_null()) return "";
  if (std::string error = CheckConfigurationKind(configuration, kKinds); !error.empty()) return error;
  meta::FieldErrors errors;
  const auto invalid = [&](std::string path, std::string_view value, std::string_view why) {
    errors.push_back({meta::FieldError::Type::kInvalid, std::move(path), base::GoQuote(value), std::string(why)});
  };
  const Value defaults = configuration["defaults"];
  for (const std::string mode : {"enforce", "warn", "audit"}) {
    const std::string_view level = defaults[mode].as_string(), version = defaults[mode + "-version"].as_string();
    if (!level.empty() && !ParseLevel(level))
      invalid("defaults." + mode, level, "must be one of privileged, baseline, restricted");
    if (!version.empty() && !ParseVersion(version))
      invalid("defaults." + mode + "-version", version, R"(must be "latest" or "v1.x")");
  }
  for (const std::string key : {"namespaces", "runtimeClasses", "usernames"}) {
    std::set<std::string_view> seen;
    std::size_t index = 0;
    for (const Value name : configuration["exemptions"][key].items()) {
      const std::string path = "exemptions." + key + "[" + std::to_string(index++) + "]";
      if (name.as_string().empty()) invalid(path, "", "username must not be empty");
      if (!seen.insert(name.as_string()).second)
        errors.push_back({meta::FieldError::Type::kDuplicate, path, base::GoQuote(name.as_string()), ""});
    }
  }
  return errors.empty() ? "" : meta::AggregateMessage(errors);
}

std::unique_ptr<Plugin> NewPodSecurity(const PluginContext& options) {
  return std::make_unique<PodSecurityPlugin>(options);
}

}  // namespace keelson::admission
