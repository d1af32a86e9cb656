// PodSecurity: pods must keep to the Pod Security Standard that their namespace's labels name; templates of pods get
// warnings.
#include "admission/plugins/pod_security_checks.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "admission/plugins/plugins.h"
#include "base/strings.h"

namespace keelson::admission {
namespace {

using namespace podsecurity;  // NOLINT: one vocabulary, two files

constexpr std::size_t kPodsToCheck = 3000;
constexpr auto kPodCheckTime = std::chrono::seconds(1);

bool IsIgnoredSubresource(std::string_view subresource) {
  static constexpr std::string_view kIgnored[] = {"attach", "binding",     "eviction", "exec",
                                                  "log",    "portforward", "proxy",    "status"};
  return std::ranges::find(kIgnored, subresource) != std::end(kIgnored);
}

// Where the resource keeps its pod template; null where it has none.
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

class PodSecurityPlugin final : public Plugin {
 public:
  explicit PodSecurityPlugin(const PluginOptions& options) : reader_(*options.reader), clock_(*options.clock) {}
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
    const Policy policy = PolicyFromLabels(attributes.object.Get("metadata", "labels"), errors);
    const Policy old = PolicyFromLabels(attributes.old_object.Get("metadata", "labels"), old_errors);
    const std::string name(attributes.object.Get("metadata", "name").as_string());
    const bool create = attributes.operation == Operation::kCreate;
    if (!errors.empty() && (create || meta::AggregateMessage(errors) != meta::AggregateMessage(old_errors))) {
      co_return meta::NewInvalid({"", "Namespace"}, name, errors);
    }
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
    auto found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
    if (!found.ok()) found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, true);
    if (!found.ok())
      co_return meta::NewInternalError("failed to lookup namespace " + base::GoQuote(attributes.name_space));
    if (attributes.operation == Operation::kUpdate && !IsSignificant(attributes.object, attributes.old_object)) {
      co_return meta::Result<void>();
    }
    meta::FieldErrors errors;  // told when the namespace was written; here only the policy counts
    const Policy policy = PolicyFromLabels(found->Get("metadata", "labels"), errors);
    const auto violations = Evaluate(policy.enforce, attributes.object["metadata"], attributes.object["spec"]);
    if (!violations.empty()) {
      co_return NewForbidden(
          attributes, "violates PodSecurity " + base::GoQuote(policy.enforce.ToString()) + ": " + Details(violations));
    }
    Warn(context, policy, attributes.object);
    co_return meta::Result<void>();
  }

  Awaitable<void> CheckTemplate(request::Context& context, const Attributes& attributes, Value pod_template) {
    auto found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, false);
    if (!found.ok()) found = co_await reader_.Get(context.arena, "", "namespaces", "", attributes.name_space, true);
    if (!found.ok()) co_return;  // nothing is refused here: the pods themselves will be
    meta::FieldErrors errors;
    Warn(context, PolicyFromLabels(found->Get("metadata", "labels"), errors), pod_template);
  }

  static void Warn(request::Context& context, const Policy& policy, Value pod) {
    const auto violations = Evaluate(policy.warn, pod["metadata"], pod["spec"]);
    if (violations.empty()) return;
    context.warnings.Add("would violate PodSecurity " + base::GoQuote(policy.warn.ToString()) + ": " +
                         Details(violations));
  }

  ObjectReader& reader_;
  const base::Clock& clock_;
};

}  // namespace

std::unique_ptr<Plugin> NewPodSecurity(const PluginOptions& options) {
  return std::make_unique<PodSecurityPlugin>(options);
}

}  // namespace keelson::admission
