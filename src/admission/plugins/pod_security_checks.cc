#include "admission/plugins/pod_security_checks.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"

namespace keelson::admission::podsecurity {
namespace {

using Names = std::vector<std::string>;
using NameSet = std::set<std::string>;
using Found = std::optional<Violation>;

constexpr std::int64_t kNewestCheck = 35;  // policy versions from here on are all the same

// A pod under check: its parts, and the policy version in force.
struct Subject {
  Value metadata;
  Value spec;
  std::int64_t minor;

  bool windows() const { return spec.Get("os", "name").as_string() == "windows"; }
  // With hostUsers=false root in the pod is an unprivileged user on the host.
  bool own_users() const { return spec["hostUsers"].is_bool() && !spec["hostUsers"].as_bool(); }
};

template <class Visit>
void ForEachContainer(const Subject& pod, Visit visit) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : pod.spec[list].items()) visit(container);
  }
}

std::string NameOf(Value named) { return std::string(named["name"].as_string()); }

template <class Texts>
std::string Quoted(const Texts& texts) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty()) out += ", ";
    out += '"' + text + '"';
  }
  return out;
}

std::string Plural(std::string_view word, std::size_t count) { return std::string(word) + (count == 1 ? "" : "s"); }

// container "a"; containers "a", "b"
template <class Texts>
std::string Counted(std::string_view word, const Texts& names) {
  return Plural(word, names.size()) + " " + Quoted(names);
}

std::string_view Use(std::size_t count) { return count == 1 ? " uses " : " use "; }

// Owners of a bad setting: the pod itself, some of its containers.
struct Setters {
  bool pod = false;
  Names containers;
  bool empty() const { return !pod && containers.empty(); }
  std::string ToString() const {
    std::string out = pod ? "pod" : "";
    if (!containers.empty()) out += (pod ? " and " : "") + Counted("container", containers);
    return out;
  }
};

// The pod and the containers whose security context satisfies `is_bad`.
template <class IsBad>
Setters WhoSets(const Subject& pod, IsBad is_bad) {
  Setters setters;
  setters.pod = is_bad(pod.spec["securityContext"]);
  ForEachContainer(pod, [&](Value container) {
    if (is_bad(container["securityContext"])) setters.containers.push_back(NameOf(container));
  });
  return setters;
}

// --- baseline ---

bool IsConfined(std::string_view type) { return type == "RuntimeDefault" || type == "Localhost"; }

Found AppArmorProfile(const Subject& pod) {
  NameSet values;
  const Setters setters = WhoSets(pod, [&](Value security) {
    const Value profile = security["appArmorProfile"];
    if (!profile.is_map() || IsConfined(profile["type"].as_string())) return false;
    values.emplace(profile["type"].as_string());
    return true;
  });
  NameSet annotations;
  for (const auto& annotation : pod.metadata["annotations"].members()) {
    const std::string_view value = annotation.value.as_string();
    if (!annotation.key.starts_with("container.apparmor.security.beta.kubernetes.io/")) continue;
    if (value.empty() || value == "runtime/default" || value.starts_with("localhost/")) continue;
    annotations.insert(std::string(annotation.key) + "=" + base::GoQuote(value));
  }
  if (setters.empty() && annotations.empty()) return std::nullopt;
  std::string who = setters.ToString();
  if (!annotations.empty()) who += (who.empty() ? "" : " and ") + Plural("annotation", annotations.size());
  Names all(values.begin(), values.end());
  all.insert(all.end(), annotations.begin(), annotations.end());
  return Violation{Plural("forbidden AppArmor profile", all.size()),
                   who + " must not set AppArmor profile type to " + Quoted(all)};
}

template <class Allowed>
void CollectAdded(const Subject& pod, Allowed allowed, Names& containers, NameSet& capabilities) {
  ForEachContainer(pod, [&](Value container) {
    bool bad = false;
    for (const Value added : container.Get("securityContext", "capabilities", "add").items()) {
      if (allowed(added.as_string())) continue;
      capabilities.emplace(added.as_string());
      bad = true;
    }
    if (bad) containers.push_back(NameOf(container));
  });
}

std::string MustNotAdd(const Names& containers, const NameSet& capabilities) {
  return Counted("container", containers) + " must not include " + Quoted(capabilities) +
         " in securityContext.capabilities.add";
}

Found CapabilitiesBaseline(const Subject& pod) {
  static constexpr std::array<std::string_view, 13> kDefault = {
      "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
      "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
  Names containers;
  NameSet capabilities;
  CollectAdded(
      pod, [](std::string_view name) { return std::ranges::find(kDefault, name) != kDefault.end(); }, containers,
      capabilities);
  if (containers.empty()) return std::nullopt;
  return Violation{"non-default capabilities", MustNotAdd(containers, capabilities)};
}

Found HostNamespaces(const Subject& pod) {
  Names set;
  for (const std::string_view key : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (pod.spec[key].as_bool()) set.push_back(std::string(key) + "=true");
  }
  if (set.empty()) return std::nullopt;
  return Violation{"host namespaces", base::Join(set, ", ")};
}

Found HostPathVolumes(const Subject& pod) {
  Names volumes;
  for (const Value volume : pod.spec["volumes"].items()) {
    if (volume["hostPath"].is_map()) volumes.push_back(NameOf(volume));
  }
  if (volumes.empty()) return std::nullopt;
  return Violation{"hostPath volumes", Counted("volume", volumes)};
}

Found HostPorts(const Subject& pod) {
  Names containers;
  NameSet ports;  // as texts, and so in the order of texts
  ForEachContainer(pod, [&](Value container) {
    bool bad = false;
    for (const Value port : container["ports"].items()) {
      if (port["hostPort"].as_int() == 0) continue;
      ports.insert(std::to_string(port["hostPort"].as_int()));
      bad = true;
    }
    if (bad) containers.push_back(NameOf(container));
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"hostPort", Counted("container", containers) + std::string(Use(containers.size())) +
                                   Plural("hostPort", ports.size()) + " " +
                                   base::Join(Names(ports.begin(), ports.end()), ", ")};
}

Found HostProbes(const Subject& pod) {
  NameSet containers, hosts;
  ForEachContainer(pod, [&](Value container) {
    const Value handlers[] = {container["livenessProbe"], container["readinessProbe"], container["startupProbe"],
                              container.Get("lifecycle", "postStart"), container.Get("lifecycle", "preStop")};
    for (const Value handler : handlers) {
      for (const std::string_view action : {"httpGet", "tcpSocket"}) {
        const std::string_view host = handler[action]["host"].as_string();
        if (host.empty()) continue;
        containers.insert(NameOf(container));
        hosts.emplace(host);
      }
    }
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"probe or lifecycle host", Counted("container", containers) + std::string(Use(containers.size())) +
                                                  Counted("probe or lifecycle host", hosts)};
}

Found Privileged(const Subject& pod) {
  Names containers;
  ForEachContainer(pod, [&](Value container) {
    if (container.Get("securityContext", "privileged").as_bool()) containers.push_back(NameOf(container));
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"privileged", Counted("container", containers) + " must not set securityContext.privileged=true"};
}

Found ProcMountAnyUsers(const Subject& pod) {
  Names containers;
  NameSet types;
  ForEachContainer(pod, [&](Value container) {
    const Value type = container.Get("securityContext", "procMount");
    if (!type.is_string() || type.as_string() == "Default") return;
    containers.push_back(NameOf(container));
    types.emplace(type.as_string());
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"procMount",
                   Counted("container", containers) + " must not set securityContext.procMount to " + Quoted(types)};
}

Found ProcMount(const Subject& pod) {
  if (pod.minor >= 35 && pod.own_users()) return std::nullopt;
  return ProcMountAnyUsers(pod);
}

Found SELinuxOptions(const Subject& pod) {
  NameSet types;
  bool user = false, role = false;
  const Setters setters = WhoSets(pod, [&](Value security) {
    const Value options = security["seLinuxOptions"];
    if (!options.is_map()) return false;
    const std::string_view type = options["type"].as_string();
    const bool type_ok = type.empty() || type == "container_t" || type == "container_init_t" ||
                         type == "container_kvm_t" || (pod.minor >= 31 && type == "container_engine_t");
    const bool sets_user = !options["user"].as_string().empty();
    const bool sets_role = !options["role"].as_string().empty();
    if (!type_ok) types.emplace(type);
    user |= sets_user;
    role |= sets_role;
    return !type_ok || sets_user || sets_role;
  });
  if (setters.empty()) return std::nullopt;
  Names what;
  if (!types.empty()) what.push_back(Counted("type", types));
  if (user) what.emplace_back("user may not be set");
  if (role) what.emplace_back("role may not be set");
  return Violation{"seLinuxOptions",
                   setters.ToString() + " set forbidden securityContext.seLinuxOptions: " + base::Join(what, "; ")};
}

Found SeccompAnnotations(const Subject& pod) {
  NameSet bad;
  const auto check = [&](const std::string& key) {
    const Value found = pod.metadata["annotations"][key];
    if (!found.is_string()) return;
    const std::string_view value = found.as_string();
    if (value == "runtime/default" || value == "docker/default" || value.starts_with("localhost/")) return;
    bad.insert(key + "=" + base::GoQuote(value));
  };
  check("seccomp.security.alpha.kubernetes.io/pod");
  ForEachContainer(
      pod, [&](Value container) { check("container.seccomp.security.alpha.kubernetes.io/" + NameOf(container)); });
  if (bad.empty()) return std::nullopt;
  return Violation{"seccompProfile", "forbidden " + Plural("annotation", bad.size()) + " " +
                                         base::Join(Names(bad.begin(), bad.end()), ", ")};
}

Found SeccompFields(const Subject& pod) {
  NameSet values;
  const Setters setters = WhoSets(pod, [&](Value security) {
    const Value profile = security["seccompProfile"];
    if (!profile.is_map() || IsConfined(profile["type"].as_string())) return false;
    values.emplace(profile["type"].as_string());
    return true;
  });
  if (setters.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   setters.ToString() + " must not set securityContext.seccompProfile.type to " + Quoted(values)};
}

Found SeccompBaseline(const Subject& pod) { return pod.minor < 19 ? SeccompAnnotations(pod) : SeccompFields(pod); }

Found Sysctls(const Subject& pod) {
  struct Safe {
    std::string_view name;
    std::int64_t since;
  };
  static constexpr Safe kSafe[] = {
      {"kernel.shm_rmid_forced", 0},
      {"net.ipv4.ip_local_port_range", 0},
      {"net.ipv4.tcp_syncookies", 0},
      {"net.ipv4.ping_group_range", 0},
      {"net.ipv4.ip_unprivileged_port_start", 0},
      {"net.ipv4.ip_local_reserved_ports", 27},
      {"net.ipv4.tcp_keepalive_time", 29},
      {"net.ipv4.tcp_fin_timeout", 29},
      {"net.ipv4.tcp_keepalive_intvl", 29},
      {"net.ipv4.tcp_keepalive_probes", 29},
      {"net.ipv4.tcp_rmem", 32},
      {"net.ipv4.tcp_wmem", 32},
  };
  Names bad;
  for (const Value sysctl : pod.spec.Get("securityContext", "sysctls").items()) {
    const std::string name = NameOf(sysctl);
    if (std::ranges::none_of(kSafe, [&](const Safe& safe) { return safe.name == name && safe.since <= pod.minor; }))
      bad.push_back(name);
  }
  if (bad.empty()) return std::nullopt;
  return Violation{"forbidden sysctls", base::Join(bad, ", ")};
}

Found WindowsHostProcess(const Subject& pod) {
  const Setters setters =
      WhoSets(pod, [](Value security) { return security.Get("windowsOptions", "hostProcess").as_bool(); });
  if (setters.empty()) return std::nullopt;
  return Violation{"hostProcess", setters.ToString() + " must not set securityContext.windowsOptions.hostProcess=true"};
}

// --- restricted ---

Found AllowPrivilegeEscalation(const Subject& pod) {
  if (pod.minor >= 25 && pod.windows()) return std::nullopt;
  Names containers;
  ForEachContainer(pod, [&](Value container) {
    if (container.Get("securityContext", "allowPrivilegeEscalation").as_bool(true))
      containers.push_back(NameOf(container));
  });
  if (containers.empty()) return std::nullopt;
  return Violation{"allowPrivilegeEscalation != false",
                   Counted("container", containers) + " must set securityContext.allowPrivilegeEscalation=false"};
}

Found CapabilitiesRestricted(const Subject& pod) {
  if (pod.minor >= 25 && pod.windows()) return std::nullopt;
  Names keeping;
  ForEachContainer(pod, [&](Value container) {
    const auto dropped = container.Get("securityContext", "capabilities", "drop").items();
    if (std::ranges::none_of(dropped, [](Value name) { return name.as_string() == "ALL"; }))
      keeping.push_back(NameOf(container));
  });
  Names adding;
  NameSet capabilities;
  CollectAdded(pod, [](std::string_view name) { return name == "NET_BIND_SERVICE"; }, adding, capabilities);
  Names details;
  if (!keeping.empty())
    details.push_back(Counted("container", keeping) + R"( must set securityContext.capabilities.drop=["ALL"])");
  if (!adding.empty()) details.push_back(MustNotAdd(adding, capabilities));
  if (details.empty()) return std::nullopt;
  return Violation{"unrestricted capabilities", base::Join(details, "; ")};
}

Found RestrictedVolumes(const Subject& pod) {
  static constexpr std::string_view kAllowed[] = {"configMap", "csi",   "downwardAPI",           "emptyDir",
                                                  "ephemeral", "image", "persistentVolumeClaim", "projected",
                                                  "secret"};
  static constexpr std::string_view kRestricted[] = {"hostPath",
                                                     "gcePersistentDisk",
                                                     "awsElasticBlockStore",
                                                     "gitRepo",
                                                     "nfs",
                                                     "iscsi",
                                                     "glusterfs",
                                                     "rbd",
                                                     "flexVolume",
                                                     "cinder",
                                                     "cephfs",
                                                     "flocker",
                                                     "fc",
                                                     "azureFile",
                                                     "vsphereVolume",
                                                     "quobyte",
                                                     "azureDisk",
                                                     "photonPersistentDisk",
                                                     "portworxVolume",
                                                     "scaleIO",
                                                     "storageos"};
  Names volumes;
  NameSet types;
  for (const Value volume : pod.spec["volumes"].items()) {
    const auto has = [&](std::string_view type) { return volume[type].is_map(); };
    if (std::ranges::any_of(kAllowed, has)) continue;
    volumes.push_back(NameOf(volume));
    const auto type = std::ranges::find_if(kRestricted, has);
    types.emplace(type == std::end(kRestricted) ? "unknown" : *type);
  }
  if (volumes.empty()) return std::nullopt;
  return Violation{"restricted volume types", Counted("volume", volumes) + std::string(Use(volumes.size())) +
                                                  Counted("restricted volume type", types)};
}

Found RunAsNonRoot(const Subject& pod) {
  if (pod.minor >= 35 && pod.own_users()) return std::nullopt;
  const auto says_no = [](Value security) {
    return security["runAsNonRoot"].is_bool() && !security["runAsNonRoot"].as_bool();
  };
  if (const Setters setters = WhoSets(pod, says_no); !setters.empty()) {
    return Violation{"runAsNonRoot != true", setters.ToString() + " must not set securityContext.runAsNonRoot=false"};
  }
  if (pod.spec.Get("securityContext", "runAsNonRoot").as_bool()) return std::nullopt;
  Names silent;
  ForEachContainer(pod, [&](Value container) {
    if (!container.Get("securityContext", "runAsNonRoot").is_bool()) silent.push_back(NameOf(container));
  });
  if (silent.empty()) return std::nullopt;
  return Violation{"runAsNonRoot != true",
                   "pod or " + Counted("container", silent) + " must set securityContext.runAsNonRoot=true"};
}

Found RunAsUser(const Subject& pod) {
  if (pod.minor >= 35 && pod.own_users()) return std::nullopt;
  const Setters setters = WhoSets(
      pod, [](Value security) { return security["runAsUser"].is_int() && security["runAsUser"].as_int() == 0; });
  if (setters.empty()) return std::nullopt;
  return Violation{"runAsUser=0", setters.ToString() + " must not set runAsUser=0"};
}

Found SeccompRestricted(const Subject& pod) {
  if (pod.minor >= 25 && pod.windows()) return std::nullopt;
  if (Found explicitly = SeccompFields(pod)) return explicitly;
  if (pod.spec.Get("securityContext", "seccompProfile").is_map()) return std::nullopt;
  Names silent;
  ForEachContainer(pod, [&](Value container) {
    if (!container.Get("securityContext", "seccompProfile").is_map()) silent.push_back(NameOf(container));
  });
  if (silent.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   "pod or " + Counted("container", silent) +
                       R"( must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"};
}

// The checks in the order in which violations are reported: by level, then by name (capital letters first).
struct Check {
  std::string_view id;
  Level level;
  std::int64_t since;
  Found (*check)(const Subject& pod);
  std::string_view overrides;  // the baseline check that this one replaces in messages
};

constexpr Check kChecks[] = {
    {"appArmorProfile", Level::kBaseline, 0, AppArmorProfile, ""},
    {"capabilities_baseline", Level::kBaseline, 0, CapabilitiesBaseline, ""},
    {"hostNamespaces", Level::kBaseline, 0, HostNamespaces, ""},
    {"hostPathVolumes", Level::kBaseline, 0, HostPathVolumes, ""},
    {"hostPorts", Level::kBaseline, 0, HostPorts, ""},
    {"hostProbesAndHostLifecycle", Level::kBaseline, 34, HostProbes, ""},
    {"privileged", Level::kBaseline, 0, Privileged, ""},
    {"procMount", Level::kBaseline, 0, ProcMount, ""},
    {"seLinuxOptions", Level::kBaseline, 0, SELinuxOptions, ""},
    {"seccompProfile_baseline", Level::kBaseline, 0, SeccompBaseline, ""},
    {"sysctls", Level::kBaseline, 0, Sysctls, ""},
    {"windowsHostProcess", Level::kBaseline, 0, WindowsHostProcess, ""},
    {"allowPrivilegeEscalation", Level::kRestricted, 8, AllowPrivilegeEscalation, ""},
    {"capabilities_restricted", Level::kRestricted, 22, CapabilitiesRestricted, "capabilities_baseline"},
    {"procMount_restricted", Level::kRestricted, 35, ProcMountAnyUsers, "procMount"},
    {"restrictedVolumes", Level::kRestricted, 0, RestrictedVolumes, "hostPathVolumes"},
    {"runAsNonRoot", Level::kRestricted, 0, RunAsNonRoot, ""},
    {"runAsUser", Level::kRestricted, 23, RunAsUser, ""},
    {"seccompProfile_restricted", Level::kRestricted, 19, SeccompRestricted, "seccompProfile_baseline"},
};

// --- labels ---

constexpr std::string_view kLabelPrefix = "pod-security.kubernetes.io/";

class LabelReader {
 public:
  LabelReader(Value labels, meta::FieldErrors& errors) : labels_(labels), errors_(errors) {}

  // False if the label is absent. An unknown level is reported and becomes `otherwise`, with `valid` false.
  bool ReadLevel(std::string_view mode, Level otherwise, Level& level, bool* valid = nullptr) {
    const std::string key = std::string(kLabelPrefix) + std::string(mode);
    const Value label = labels_[key];
    if (!label.is_string()) return false;
    const auto parsed = ParseLevel(label.as_string());
    if (!parsed) Tell(key, label.as_string(), "must be one of privileged, baseline, restricted");
    if (valid != nullptr) *valid = parsed.has_value();
    level = parsed.value_or(otherwise);
    return true;
  }
  bool ReadVersion(std::string_view mode, Version& version) {
    const std::string key = std::string(kLabelPrefix) + std::string(mode) + "-version";
    const Value label = labels_[key];
    if (!label.is_string()) return false;
    const auto parsed = ParseVersion(label.as_string());
    if (!parsed) Tell(key, label.as_string(), R"(must be "latest" or "v1.x")");
    version = parsed.value_or(Version{});
    return true;
  }

 private:
  void Tell(const std::string& key, std::string_view value, std::string_view detail) {
    errors_.push_back(
        {meta::FieldError::Type::kInvalid, "metadata.labels[" + key + "]", base::GoQuote(value), std::string(detail)});
  }

  Value labels_;
  meta::FieldErrors& errors_;
};

}  // namespace

std::string_view ToString(Level level) {
  switch (level) {
    case Level::kPrivileged:
      return "privileged";
    case Level::kBaseline:
      return "baseline";
    case Level::kRestricted:
      return "restricted";
  }
  return "";
}

std::string LevelVersion::ToString() const {
  const std::string text = version == Version{} ? "latest" : "v1." + std::to_string(version.minor);
  return std::string(podsecurity::ToString(level)) + ":" + text;
}

std::optional<Level> ParseLevel(std::string_view text) {
  for (const Level level : {Level::kPrivileged, Level::kBaseline, Level::kRestricted}) {
    if (text == ToString(level)) return level;
  }
  return std::nullopt;
}

std::optional<Version> ParseVersion(std::string_view text) {
  if (text == "latest") return Version{};
  if (!text.starts_with("v1.")) return std::nullopt;
  text.remove_prefix(3);
  if (text.empty() || text[0] == '+' || text[0] == '-' || (text[0] == '0' && text.size() > 1)) return std::nullopt;
  const auto minor = base::ParseInt64(text);
  if (!minor || *minor == Version::kLatest) return std::nullopt;
  return Version{*minor};
}

Policy PolicyFromLabels(Value labels, const Policy& defaults, meta::FieldErrors& errors) {
  Policy policy = defaults;
  // Most namespaces have none of the labels.
  if (std::ranges::none_of(labels.members(), [](const auto& label) { return label.key.starts_with(kLabelPrefix); }))
    return policy;
  LabelReader reader(labels, errors);
  bool enforce_valid = false;
  reader.ReadLevel("enforce", Level::kRestricted, policy.enforce.level, &enforce_valid);
  reader.ReadVersion("enforce", policy.enforce.version);
  reader.ReadLevel("audit", Level::kPrivileged, policy.audit.level);
  reader.ReadVersion("audit", policy.audit.version);
  const bool has_warn = reader.ReadLevel("warn", Level::kPrivileged, policy.warn.level);
  const bool has_warn_version = reader.ReadVersion("warn", policy.warn.version);
  // Enforcing a level implies warnings about workloads that violate it.
  if (!has_warn && enforce_valid && policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!has_warn_version) policy.warn.version = policy.enforce.version;
  }
  return policy;
}

std::vector<Violation> Evaluate(const LevelVersion& policy, Value metadata, Value spec) {
  const Subject pod{metadata, spec, std::min(policy.version.minor, kNewestCheck)};
  const auto applies = [&](const Check& check) { return check.level <= policy.level && check.since <= pod.minor; };
  std::vector<Violation> violations;
  for (const Check& check : kChecks) {
    if (!applies(check)) continue;
    if (std::ranges::any_of(kChecks, [&](const Check& other) { return applies(other) && other.overrides == check.id; }))
      continue;
    if (Found found = check.check(pod)) violations.push_back(std::move(*found));
  }
  return violations;
}

std::string Details(const std::vector<Violation>& violations) {
  std::string out;
  for (const Violation& violation : violations) {
    if (!out.empty()) out += ", ";
    out += violation.reason;
    if (!violation.detail.empty()) out += " (" + violation.detail + ")";
  }
  return out;
}

std::string Reasons(const std::vector<Violation>& violations) {
  std::string out;
  for (const Violation& violation : violations) {
    if (!out.empty()) out += ", ";
    out += violation.reason;
  }
  return out;
}

}  // namespace keelson::admission::podsecurity
