#include "registry/core/containers.h"

#include "base/strings.h"
#include "registry/core/pod_security.h"
#include "registry/core/resources.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kTerminationPolicies[] = {"File", "FallbackToLogsOnError"};
constexpr std::string_view kPullPolicies[] = {"Always", "IfNotPresent", "Never"};
constexpr std::string_view kProtocols[] = {"SCTP", "TCP", "UDP"};
constexpr std::string_view kResizeResources[] = {"cpu", "memory"};
constexpr std::string_view kResizePolicies[] = {"NotRequired", "RestartContainer"};
constexpr std::string_view kRestartPolicies[] = {"Always", "Never", "OnFailure"};
constexpr std::string_view kRestartActions[] = {"Restart", "RestartAllContainers"};
constexpr std::string_view kRestartOperators[] = {"In", "NotIn"};
constexpr std::size_t kRestartRulesMax = 20;
constexpr std::size_t kRestartExitCodesMax = 255;
constexpr std::string_view kNotInInit = "may not be set for init containers without restartPolicy=Always";
constexpr std::string_view kNotInEphemeral = "cannot be set for an Ephemeral Container";

void CheckPorts(Value container, const FieldPath& path, FieldErrors& errors) {
  NameSet names;
  std::int64_t index = 0;
  for (const Value port : container["ports"].items()) {
    const FieldPath at = path.Index(index++);
    if (const std::string_view name = Text(port, "name"); !name.empty()) {
      const Messages messages = validation::IsValidPortName(name);
      AddInvalid(at.Child("name"), name, messages, errors);
      if (messages.empty() && !names.emplace(name).second) errors.push_back(Duplicate(at.Child("name"), Value(name)));
    }
    if (Int(port, "containerPort") == 0) {
      errors.push_back(Required(at.Child("containerPort")));
    } else {
      CheckPortNumOrName(Value(Int(port, "containerPort")), at.Child("containerPort"), errors);
    }
    if (Int(port, "hostPort") != 0) CheckPortNumOrName(Value(Int(port, "hostPort")), at.Child("hostPort"), errors);
    RequireOneOf(port["protocol"], kProtocols, at.Child("protocol"), errors);
  }
}

void CheckResizePolicy(Value container, std::string_view pod_restart_policy, const FieldPath& path,
                       FieldErrors& errors) {
  NameSet seen;
  std::int64_t index = 0;
  for (const Value policy : container["resizePolicy"].items()) {
    const FieldPath at = path.Index(index++);
    if (!seen.emplace(Text(policy, "resourceName")).second) errors.push_back(Duplicate(at, policy["resourceName"]));
    RequireOneOf(policy["resourceName"], kResizeResources, path, errors);
    RequireOneOf(policy["restartPolicy"], kResizePolicies, path, errors);
    if (pod_restart_policy == "Never" && Text(policy, "restartPolicy") != "NotRequired") {
      errors.push_back(
          Invalid(path, Text(policy, "restartPolicy"), "must be 'NotRequired' when pod `restartPolicy` is 'Never'"));
    }
  }
}

void CheckRestartPolicy(Value container, bool init, const FieldPath& path, FieldErrors& errors) {
  const Value rules = container["restartPolicyRules"];
  if (!IsSet(container, "restartPolicy")) {
    if (rules.empty()) return;
    errors.push_back(Required(path.Child("restartPolicy"), "must specify restartPolicy when restart rules are used"));
    if (init) return;
  } else {
    CheckOneOf(container["restartPolicy"], kRestartPolicies, path.Child("restartPolicy"), errors);
  }
  const FieldPath rules_path = path.Child("restartPolicyRules");
  if (rules.size() > kRestartRulesMax)
    errors.push_back(validation::TooMany(rules_path, static_cast<std::int64_t>(rules.size()), kRestartRulesMax));
  std::int64_t index = 0;
  for (const Value rule : rules.items()) {
    const FieldPath at = rules_path.Index(index++);
    CheckOneOf(rule["action"], kRestartActions, at.Child("action"), errors);
    const FieldPath codes_path = at.Child("exitCodes");
    const Value codes = rule["exitCodes"];
    if (codes.is_null()) {
      errors.push_back(Required(codes_path, "must be specified"));
      continue;
    }
    CheckOneOf(codes["operator"], kRestartOperators, codes_path.Child("operator"), errors);
    if (codes["values"].size() > kRestartExitCodesMax) {
      errors.push_back(validation::TooMany(codes_path.Child("values"),
                                           static_cast<std::int64_t>(codes["values"].size()), kRestartExitCodesMax));
    }
  }
}

void CheckCommon(Value container, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  if (RequireText(container, "name", path, errors)) CheckDNSLabel(Text(container, "name"), path.Child("name"), errors);
  RequireText(container, "image", path, errors);
  RequireOneOf(container["terminationMessagePolicy"], kTerminationPolicies, path.Child("terminationMessagePolicy"),
               errors);
  CheckPorts(container, path.Child("ports"), errors);
  ValidateEnvironment(container, path, errors);
  ValidateMounts(container, facts, path, errors);
  RequireOneOf(container["imagePullPolicy"], kPullPolicies, path.Child("imagePullPolicy"), errors);
  ValidateResourceRequirements(container["resources"], ResourceScope::kContainer, facts.claims, facts.options,
                               path.Child("resources"), errors);
  CheckResizePolicy(container, facts.restart_policy, path.Child("resizePolicy"), errors);
  ValidateContainerSecurityContext(container["securityContext"], facts.host_users, facts.options,
                                   path.Child("securityContext"), errors);
}

// No two containers on the same port of the host. `taken` goes from one to the next.
void CheckHostPorts(Value container, NameSet& taken, const FieldPath& path, FieldErrors& errors) {
  const FieldPath ports = path.Child("ports");
  std::int64_t index = 0;
  for (const Value port : container["ports"].items()) {
    const FieldPath at = ports.Index(index++);
    if (Int(port, "hostPort") == 0) continue;
    std::string key(Text(port, "protocol"));
    key.append("/").append(Text(port, "hostIP")).append("/").append(std::to_string(Int(port, "hostPort")));
    if (!taken.insert(key).second) errors.push_back(Duplicate(at.Child("hostPort"), Value(key.c_str())));
  }
}

}  // namespace

void CheckImagePadding(Value container, const FieldPath& path, FieldErrors& errors) {
  const std::string_view image = Text(container, "image");
  if (base::Trim(image).size() != image.size()) {
    errors.push_back(Invalid(path.Child("image"), image, "must not have leading or trailing whitespace"));
  }
}

void ValidateContainers(Value spec, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  if (spec["containers"].empty()) return errors.push_back(Required(path));
  NameSet names;
  std::int64_t index = 0;
  for (const Value container : spec["containers"].items()) {
    const FieldPath at = path.Index(index++);
    CheckCommon(container, facts, at, errors);
    if (!names.emplace(Text(container, "name")).second)
      errors.push_back(Duplicate(at.Child("name"), Value(Text(container, "name"))));
    if (IsSet(container, "lifecycle")) ValidateLifecycle(container["lifecycle"], facts, at.Child("lifecycle"), errors);
    ValidateProbes(container, facts, at, errors);
    CheckRestartPolicy(container, false, at, errors);
  }
  NameSet host_ports;
  index = 0;
  for (const Value container : spec["containers"].items())
    CheckHostPorts(container, host_ports, path.Index(index++), errors);
}

void ValidateInitContainers(Value spec, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  NameSet names;
  for (const Value container : spec["containers"].items()) names.emplace(Text(container, "name"));
  std::int64_t index = 0;
  for (const Value container : spec["initContainers"].items()) {
    const FieldPath at = path.Index(index++);
    const bool sidecar = Text(container, "restartPolicy") == "Always";
    const std::string_view name = Text(container, "name");
    CheckCommon(container, facts, at, errors);
    CheckRestartPolicy(container, true, at, errors);
    if (names.contains(name)) {
      errors.push_back(Duplicate(at.Child("name"), Value(name)));
    } else if (!name.empty()) {
      names.emplace(name);
    }
    NameSet host_ports;  // init containers run one after the other
    CheckHostPorts(container, host_ports, path.Index(0), errors);
    if (sidecar) {
      if (IsSet(container, "lifecycle"))
        ValidateLifecycle(container["lifecycle"], facts, at.Child("lifecycle"), errors);
      ValidateProbes(container, facts, at, errors);
      continue;
    }
    for (const std::string_view key : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (IsSet(container, key)) errors.push_back(Forbidden(at.Child(key), kNotInInit));
    }
    if (facts.options.allow_restart_container_in_init) continue;
    const FieldPath resize = at.Child("resizePolicy");
    std::int64_t j = 0;
    for (const Value policy : container["resizePolicy"].items()) {
      const FieldPath one = resize.Index(j++);
      if (Text(policy, "restartPolicy") != "RestartContainer") continue;
      errors.push_back(Invalid(one.Child("restartPolicy"), "RestartContainer",
                               "must not be set to 'RestartContainer' for non-sidecar initContainers"));
    }
  }
}

void ValidateEphemeralContainers(Value spec, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  if (spec["ephemeralContainers"].empty()) return;
  NameSet others;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value container : spec[list].items()) others.emplace(Text(container, "name"));
  }
  NameSet names = others;
  std::int64_t index = 0;
  for (const Value container : spec["ephemeralContainers"].items()) {
    const FieldPath at = path.Index(index++);
    CheckCommon(container, facts, at, errors);
    CheckImagePadding(container, at, errors);
    if (!names.emplace(Text(container, "name")).second)
      errors.push_back(Duplicate(at.Child("name"), Value(Text(container, "name"))));
    if (const std::string_view target = Text(container, "targetContainerName");
        !target.empty() && !others.contains(target)) {
      errors.push_back(NotFound(at.Child("targetContainerName"), Value(target)));
    }
    for (const std::string_view key : {"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
                                       "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
      const Value value = container[key];
      if (value.is_null() || (key == "resources" && value.empty())) continue;
      errors.push_back(Forbidden(at.Child(key), kNotInEphemeral));
    }
    const FieldPath mounts = at.Child("volumeMounts");
    std::int64_t j = 0;
    for (const Value mount : container["volumeMounts"].items()) {
      const FieldPath one = mounts.Index(j++);
      for (const std::string_view key : {"subPath", "subPathExpr"}) {
        if (!Text(mount, key).empty()) errors.push_back(Forbidden(one.Child(key), kNotInEphemeral));
      }
    }
  }
}

}  // namespace keelson::registry::core
