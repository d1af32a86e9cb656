#include "registry/core/pod_security.h"

#include <algorithm>

#include "base/strings.h"
#include "re2/re2.h"
#include "registry/core/hub.h"
#include "registry/core/paths.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kProfileTypes[] = {"Localhost", "RuntimeDefault", "Unconfined"};
constexpr std::string_view kProcMounts[] = {"Default", "Unmasked"};
constexpr std::string_view kFSGroupChange[] = {"Always", "OnRootMismatch"};
constexpr std::string_view kSupplementalGroups[] = {"Merge", "Strict"};
constexpr std::string_view kSELinuxChange[] = {"MountOption", "Recursive"};
constexpr std::string_view kSELinuxChangeWithoutMount[] = {"Recursive"};  // the gate SELinuxMount is off
constexpr std::string_view kLocalhostPrefix = "localhost/";
constexpr std::string_view kWindows = "cannot be set for a windows pod";
constexpr std::size_t kAppArmorProfileBytesMax = 4095;  // PATH_MAX - 1
constexpr std::size_t kCredentialSpecBytesMax = 64 * 1024;
constexpr std::size_t kDomainBytesMax = 256;
constexpr std::size_t kUserBytesMax = 104;
constexpr std::size_t kSysctlBytesMax = 253;
constexpr std::string_view kSysctlPattern = R"(^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$)";

bool Matches(std::string_view text, const re2::RE2& pattern) {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

void CheckID(Value id, const FieldPath& path, FieldErrors& errors) {
  if (id.is_null()) return;
  for (const std::string& message : validation::IsValidUserID(id.as_int()))
    errors.push_back(Invalid(path, id, message));
}

void CheckSeccompProfile(Value profile, const FieldPath& path, FieldErrors& errors) {
  if (profile.is_null()) return;
  const std::string_view type = Text(profile, "type");
  if (type.empty()) {
    errors.push_back(Required(path.Child("type"), "type is required when seccompProfile is set"));
  } else {
    CheckOneOf(profile["type"], kProfileTypes, path.Child("type"), errors);
  }
  const bool named = IsSet(profile, "localhostProfile");
  const FieldPath at = path.Child("localhostProfile");
  if (type != "Localhost") {
    if (named)
      errors.push_back(
          InvalidHub(at, CoreHubTypes(), profile, "SeccompProfile", "can only be set when seccomp type is Localhost"));
  } else if (!named) {
    errors.push_back(Required(at, "must be set when seccomp type is Localhost"));
  } else {
    CheckLocalDescendingPath(Text(profile, "localhostProfile"), at, errors);
  }
}

// DOMAIN\user or user, of Windows.
void CheckRunAsUserName(Value value, const FieldPath& path, FieldErrors& errors) {
  static const re2::RE2 kControl(R"([[:cntrl:]]+)");
  static const re2::RE2 kNetBios(R"(^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$)");
  static const re2::RE2 kDomain(
      R"(^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$)");
  static const re2::RE2 kUserCharacters(R"(["/\\:;|=,\+\*\?<>@\[\]])");
  static const re2::RE2 kDotsAndSpaces(R"(^[\. ]+$)");
  const std::string_view name = value.as_string();
  const auto invalid = [&](std::string_view detail) { errors.push_back(Invalid(path, value, detail)); };
  if (name.empty()) return invalid("runAsUserName cannot be an empty string");
  if (Matches(name, kControl)) return invalid("runAsUserName cannot contain control characters");
  const auto parts = base::Split(name, '\\');
  if (parts.size() > 2) return invalid("runAsUserName cannot contain more than one backslash");
  const std::string_view user = parts.back();
  if (parts.size() == 2) {
    if (parts[0].size() >= kDomainBytesMax) invalid("runAsUserName's Domain length must be under 256 characters");
    if (!Matches(parts[0], kNetBios) && !Matches(parts[0], kDomain)) {
      invalid("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
  }
  if (user.empty()) {
    invalid("runAsUserName's User cannot be empty");
  } else if (user.size() > kUserBytesMax) {
    invalid("runAsUserName's User length must not be longer than 104 characters");
  }
  if (Matches(user, kDotsAndSpaces)) invalid("runAsUserName's User cannot contain only periods or spaces");
  if (Matches(user, kUserCharacters))
    invalid(R"(runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[])");
}

void CheckWindowsOptions(Value options, const FieldPath& path, FieldErrors& errors) {
  if (options.is_null()) return;
  if (const Value name = options["gmsaCredentialSpecName"]; !name.is_null()) {
    CheckDNSSubdomain(name.as_string(), path.Child("gmsaCredentialSpecName"), errors);
  }
  if (const Value spec = options["gmsaCredentialSpec"]; !spec.is_null()) {
    const FieldPath at = path.Child("gmsaCredentialSpec");
    if (spec.as_string().empty()) {
      errors.push_back(Invalid(at, spec, "gmsaCredentialSpec cannot be an empty string"));
    } else if (spec.as_string().size() > kCredentialSpecBytesMax) {
      errors.push_back(Invalid(at, spec, "gmsaCredentialSpec size must be under 64 KiB"));
    }
  }
  if (IsSet(options, "runAsUserName"))
    CheckRunAsUserName(options["runAsUserName"], path.Child("runAsUserName"), errors);
}

void CheckSysctls(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  static const re2::RE2 kName{re2::StringPiece(kSysctlPattern.data(), kSysctlPattern.size())};
  NameSet seen;
  std::int64_t index = 0;
  for (const Value sysctl : spec["securityContext"]["sysctls"].items()) {
    const FieldPath item = path.Index(index++);
    const FieldPath at = item.Child("name");
    const std::string_view name = Text(sysctl, "name");
    if (name.empty()) {
      errors.push_back(Required(at));
    } else if (name.size() > kSysctlBytesMax || !Matches(name, kName)) {
      errors.push_back(
          Invalid(at, name, "must have at most 253 characters and match regex " + std::string(kSysctlPattern)));
    } else if (seen.contains(name)) {
      errors.push_back(Duplicate(at, Value(name)));
    }
    if (!options.allow_host_sysctls) {
      if (const std::string_view problem = HostSysctlProblem(name, spec); !problem.empty())
        errors.push_back(Invalid(at, name, problem));
    }
    seen.emplace(name);
  }
}

void CheckSeccompAnnotation(std::string_view profile, const FieldPath& path, FieldErrors& errors) {
  if (profile == "runtime/default" || profile == "docker/default" || profile == "unconfined") return;
  if (profile.starts_with(kLocalhostPrefix))
    return CheckLocalDescendingPath(profile.substr(kLocalhostPrefix.size()), path, errors);
  errors.push_back(Invalid(path, profile, "must be a valid seccomp profile"));
}

// The annotation of old and the field must name the same profile. `what`: seccomp or apparmor.
void CheckProfilesAgree(std::string_view annotation, Value profile, std::string_view what, const FieldPath& path,
                        FieldErrors& errors) {
  const std::string_view type = Text(profile, "type");
  const auto differ = [&](std::string_view child, std::string_view which) {
    errors.push_back(Forbidden(path.Child(child),
                               std::string(what) + " " + std::string(which) + " in annotation and field must match"));
  };
  if (type == "Unconfined") {
    if (annotation != "unconfined") differ("type", "type");
  } else if (type == "RuntimeDefault") {
    if (annotation != "runtime/default" && !(what == "seccomp" && annotation == "docker/default"))
      differ("type", "type");
  } else if (type == "Localhost") {
    if (!annotation.starts_with(kLocalhostPrefix)) {
      differ("type", "type");
    } else if (!IsSet(profile, "localhostProfile") ||
               annotation.substr(kLocalhostPrefix.size()) != Text(profile, "localhostProfile")) {
      differ("localhostProfile", "profile");
    }
  }
}

bool HostUsersOff(Value spec) { return IsSet(spec, "hostUsers") && !Bool(spec, "hostUsers"); }

}  // namespace

std::string_view HostSysctlProblem(std::string_view sysctl, Value spec) {
  constexpr std::string_view kIPC[] = {
      "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
      "kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg"};
  std::string name(sysctl);
  if (const std::size_t first = name.find_first_of("./"); first != std::string::npos && name[first] == '/') {
    std::ranges::transform(name, name.begin(), [](char c) { return c == '.' ? '/' : c == '/' ? '.' : c; });
  }
  name.resize(std::min(name.find('*'), name.size()));
  if (Bool(spec, "hostNetwork") && name.starts_with("net.")) return "may not be specified when 'hostNetwork' is true";
  if (Bool(spec, "hostIPC") && (Contains(kIPC, name) || name.starts_with("fs.mqueue.")))
    return "may not be specified when 'hostIPC' is true";
  return {};
}

void ValidateAppArmorProfile(Value profile, const FieldPath& path, FieldErrors& errors) {
  if (profile.is_null()) return;
  const std::string_view type = Text(profile, "type");
  const Value localhost = profile["localhostProfile"];
  const FieldPath at = path.Child("localhostProfile");
  if (type == "Localhost") {
    const std::string_view name = localhost.as_string();
    if (localhost.is_null()) return errors.push_back(Required(at, "must be set when AppArmor type is Localhost"));
    if (base::Trim(name) != name) {
      errors.push_back(Invalid(at, name, "must not be padded with whitespace"));
    } else if (name.empty()) {
      errors.push_back(Required(at, "must be set when AppArmor type is Localhost"));
    }
    if (name.size() > kAppArmorProfileBytesMax) errors.push_back(validation::TooLong(at, kAppArmorProfileBytesMax));
  } else if (type == "RuntimeDefault" || type == "Unconfined") {
    if (!localhost.is_null())
      errors.push_back(Invalid(at, localhost, "can only be set when AppArmor type is Localhost"));
  } else if (type.empty()) {
    errors.push_back(Required(path.Child("type"), "type is required when appArmorProfile is set"));
  } else {
    errors.push_back(NotSupported(path.Child("type"), profile["type"], kProfileTypes));
  }
}

void ValidatePodSecurityContext(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  const Value context = spec["securityContext"];
  if (context.is_null()) return;
  for (const std::string_view key : {"fsGroup", "runAsUser", "runAsGroup"})
    CheckID(context[key], path.Child(key), errors);
  const FieldPath groups = path.Child("supplementalGroups");
  std::int64_t index = 0;
  for (const Value group : context["supplementalGroups"].items()) CheckID(group, groups.Index(index++), errors);
  if (Bool(spec, "shareProcessNamespace") && Bool(spec, "hostPID")) {
    errors.push_back(
        Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"));
  }
  CheckSysctls(spec, options, path.Child("sysctls"), errors);
  if (IsSet(context, "fsGroupChangePolicy"))
    CheckOneOf(context["fsGroupChangePolicy"], kFSGroupChange, path.Child("fsGroupChangePolicy"), errors);
  CheckSeccompProfile(context["seccompProfile"], path.Child("seccompProfile"), errors);
  CheckWindowsOptions(context["windowsOptions"], path.Child("windowsOptions"), errors);
  ValidateAppArmorProfile(context["appArmorProfile"], path.Child("appArmorProfile"), errors);
  if (IsSet(context, "supplementalGroupsPolicy")) {
    CheckOneOf(context["supplementalGroupsPolicy"], kSupplementalGroups, path.Child("supplementalGroupsPolicy"),
               errors);
  }
  if (IsSet(context, "seLinuxChangePolicy")) {
    const Names allowed =
        options.allow_selinux_mount_option ? Names(kSELinuxChange) : Names(kSELinuxChangeWithoutMount);
    CheckOneOf(context["seLinuxChangePolicy"], allowed, path.Child("seLinuxChangePolicy"), errors);
  }
}

void ValidateContainerSecurityContext(Value context, bool host_users, const PodOptions& options, const FieldPath& path,
                                      FieldErrors& errors) {
  if (context.is_null()) return;
  const bool privileged = Bool(context, "privileged");
  if (privileged && !options.allow_privileged)
    errors.push_back(Forbidden(path.Child("privileged"), "disallowed by cluster policy"));
  for (const std::string_view key : {"runAsUser", "runAsGroup"}) CheckID(context[key], path.Child(key), errors);
  if (IsSet(context, "procMount")) {
    const FieldPath at = path.Child("procMount");
    CheckOneOf(context["procMount"], kProcMounts, at, errors);
    if (host_users && Text(context, "procMount") == "Unmasked") {
      errors.push_back(Invalid(at, context["procMount"], "`hostUsers` must be false to use `Unmasked`"));
    }
  }
  CheckSeccompProfile(context["seccompProfile"], path.Child("seccompProfile"), errors);
  if (IsSet(context, "allowPrivilegeEscalation") && !Bool(context, "allowPrivilegeEscalation")) {
    const auto invalid = [&](std::string_view detail) {
      errors.push_back(InvalidHub(path, CoreHubTypes(), context, "SecurityContext", detail));
    };
    if (privileged) invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    for (const Value capability : context["capabilities"]["add"].items()) {
      if (capability.as_string() == "CAP_SYS_ADMIN") {
        invalid("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
      }
    }
  }
  CheckWindowsOptions(context["windowsOptions"], path.Child("windowsOptions"), errors);
  ValidateAppArmorProfile(context["appArmorProfile"], path.Child("appArmorProfile"), errors);
}

void ValidateWindowsHostProcess(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  const Value of_pod = spec["securityContext"]["windowsOptions"]["hostProcess"];
  int containers = 0, host_process = 0;
  VisitContainers(spec, path, [&](Value container, const FieldPath& at) {
    ++containers;
    const Value own = container["securityContext"]["windowsOptions"]["hostProcess"];
    if (!of_pod.is_null() && !own.is_null() && of_pod.as_bool() != own.as_bool()) {
      errors.push_back(Invalid(at.Child("securityContext").Child("windowsOptions").Child("hostProcess"), own,
                               std::string("pod hostProcess value must be identical if both are specified, was ") +
                                   (of_pod.as_bool() ? "true" : "false")));
    }
    if ((own.is_null() ? of_pod : own).as_bool()) ++host_process;
  });
  if (host_process == 0) return;
  if (host_process != containers) {
    errors.push_back(Invalid(
        path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers"));
  }
  if (!Bool(spec, "hostNetwork")) {
    errors.push_back(Invalid(path.Child("hostNetwork"), false,
                             "hostNetwork must be true if pod contains any hostProcess containers"));
  }
  if (!options.allow_privileged)
    errors.push_back(Forbidden(path, "hostProcess containers are disallowed by cluster policy"));
}

void ValidateHostUsers(Value spec, const PodOptions& options, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kWhen = "when `hostUsers` is false";
  if (!HostUsersOff(spec)) return;
  if (Bool(spec, "hostNetwork") && !options.allow_host_network_with_user_namespace)
    errors.push_back(Forbidden(path.Child("hostNetwork"), kWhen));
  if (Bool(spec, "hostPID")) errors.push_back(Forbidden(path.Child("HostPID"), kWhen));
  if (Bool(spec, "hostIPC")) errors.push_back(Forbidden(path.Child("HostIPC"), kWhen));
  if (options.allow_volume_devices_with_user_namespace) return;
  VisitContainers(spec, path, [&](Value container, const FieldPath& at) {
    if (!container["volumeDevices"].empty()) errors.push_back(Forbidden(at.Child("volumeDevices"), kWhen));
  });
}

void ValidateOS(Value spec, const FieldPath& path, FieldErrors& errors) {
  constexpr std::string_view kSystems[] = {"linux", "windows"};
  const Value os = spec["os"];
  if (os.is_null()) return;
  const FieldPath at = path.Child("os");
  if (!RequireText(os, "name", at, errors) || !CheckOneOf(os["name"], kSystems, at, errors)) return;
  const FieldPath context_path = path.Child("securityContext");
  const Value context = spec["securityContext"];
  if (Text(os, "name") == "linux") {
    constexpr std::string_view kLinux = "windows options cannot be set for a linux pod";
    if (IsSet(context, "windowsOptions")) errors.push_back(Forbidden(context_path.Child("windowsOptions"), kLinux));
    VisitContainers(spec, path, [&](Value container, const FieldPath& one) {
      if (!IsSet(container["securityContext"], "windowsOptions")) return;
      errors.push_back(Forbidden(one.Child("securityContext").Child("windowsOptions"), kLinux));
    });
    return;
  }
  // In upstream's order; what the hub keeps in the security context but v1 in the spec is reported at the spec.
  struct {
    std::string_view key;
    bool in_spec;
  } constexpr kPodFields[] = {{"appArmorProfile", false},
                              {"seLinuxOptions", false},
                              {"hostUsers", true},
                              {"hostPID", true},
                              {"hostIPC", true},
                              {"seccompProfile", false},
                              {"fsGroup", false},
                              {"fsGroupChangePolicy", false},
                              {"sysctls", false},
                              {"shareProcessNamespace", true},
                              {"runAsUser", false},
                              {"runAsGroup", false},
                              {"supplementalGroups", false},
                              {"supplementalGroupsPolicy", false},
                              {"seLinuxChangePolicy", false}};
  for (const auto& [key, in_spec] : kPodFields) {
    const Value value = in_spec ? spec[key] : context[key];
    const bool plain = key == "hostPID" || key == "hostIPC";  // no pointers: false is as good as absent
    if (value.is_null() || (plain && !value.as_bool()) || (key == "sysctls" && value.empty())) continue;
    errors.push_back(Forbidden((in_spec ? path : context_path).Child(key), kWindows));
  }
  VisitContainers(spec, path, [&](Value container, const FieldPath& one) {
    const FieldPath own = one.Child("securityContext");
    for (const std::string_view key :
         {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
          "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"}) {
      if (IsSet(container["securityContext"], key)) errors.push_back(Forbidden(own.Child(key), kWindows));
    }
  });
}

void ValidateProfileAnnotations(Value annotations, Value spec, const FieldPath& path, FieldErrors& errors) {
  if (const Value* profile = annotations.Find(kSeccompPodAnnotation); profile != nullptr) {
    CheckSeccompAnnotation(profile->as_string(), path.Child(kSeccompPodAnnotation), errors);
  }
  const auto sorted = SortedMembers(annotations);
  for (const object::Member& annotation : sorted) {
    if (annotation.key.starts_with(kSeccompContainerAnnotationPrefix)) {
      CheckSeccompAnnotation(annotation.value.as_string(), path.Child(annotation.key), errors);
    }
  }
  const auto about_app_armor = [](const object::Member& annotation) {
    return annotation.key.starts_with(kAppArmorAnnotationPrefix);
  };
  if (std::ranges::none_of(sorted, about_app_armor)) return;
  NameSet containers;
  VisitContainers(spec, path, [&](Value container, const FieldPath&) { containers.emplace(Text(container, "name")); });
  for (const object::Member& annotation : sorted) {
    if (!about_app_armor(annotation)) continue;
    const std::string_view name = annotation.key.substr(kAppArmorAnnotationPrefix.size());
    if (!containers.contains(name)) errors.push_back(Invalid(path.Key(annotation.key), name, "container not found"));
    const std::string_view profile = annotation.value.as_string();
    if (!profile.empty() && profile != "runtime/default" && profile != "unconfined" &&
        !profile.starts_with(kLocalhostPrefix)) {
      errors.push_back(
          Invalid(path.Key(annotation.key), profile, "invalid AppArmor profile name: " + base::GoQuote(profile)));
    }
  }
}

void ValidateProfilesAgree(Value annotations, Value spec, const FieldPath& path, FieldErrors& errors) {
  const FieldPath context = path.Child("securityContext");
  if (const Value profile = spec["securityContext"]["seccompProfile"]; !profile.is_null()) {
    if (const Value* annotation = annotations.Find(kSeccompPodAnnotation); annotation != nullptr) {
      CheckProfilesAgree(annotation->as_string(), profile, "seccomp", context.Child("seccompProfile"), errors);
    }
  }
  VisitContainers(spec, path, [&](Value container, const FieldPath& at) {
    const Value profile = container["securityContext"]["seccompProfile"];
    const Value* annotation =
        annotations.Find(std::string(kSeccompContainerAnnotationPrefix).append(Text(container, "name")));
    if (profile.is_null() || annotation == nullptr) return;
    const FieldPath own = at.Child("securityContext");
    CheckProfilesAgree(annotation->as_string(), profile, "seccomp", own.Child("seccompProfile"), errors);
  });
  if (Text(spec["os"], "name") == "windows") return;
  VisitContainers(spec, path, [&](Value container, const FieldPath& at) {
    Value profile = container["securityContext"]["appArmorProfile"];
    if (profile.is_null()) profile = spec["securityContext"]["appArmorProfile"];
    const Value* annotation = annotations.Find(std::string(kAppArmorAnnotationPrefix).append(Text(container, "name")));
    if (profile.is_null() || annotation == nullptr) return;
    const FieldPath own = at.Child("securityContext");
    CheckProfilesAgree(annotation->as_string(), profile, "apparmor", own.Child("appArmorProfile"), errors);
  });
}

Value AppArmorFieldForAnnotation(base::Arena& arena, std::string_view annotation) {
  Value profile = Value::Map(arena, 2);
  if (annotation == "unconfined") {
    profile.Set(arena, "type", "Unconfined");
  } else if (annotation == "runtime/default") {
    profile.Set(arena, "type", "RuntimeDefault");
  } else if (annotation.starts_with(kLocalhostPrefix) && annotation.size() > kLocalhostPrefix.size()) {
    profile.Set(arena, "type", "Localhost");
    profile.Set(arena, "localhostProfile", Value::String(arena, annotation.substr(kLocalhostPrefix.size())));
  } else {
    return {};
  }
  return profile;
}

}  // namespace keelson::registry::core
