// Volume mounts of a container: volumes as directories, and as block devices.
#include "registry/core/containers.h"
#include "registry/core/paths.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kPropagations[] = {"Bidirectional", "HostToContainer", "None"};
constexpr std::string_view kRecursive[] = {"Disabled", "Enabled", "IfPossible"};

using Paths = std::map<std::string_view, std::string_view>;  // by volume

Paths PathsOf(Value list, std::string_view key) {
  Paths paths;
  for (const Value item : list.items()) paths[Text(item, "name")] = Text(item, key);
  return paths;
}

bool HasPath(const Paths& paths, std::string_view path) {
  for (const auto& [name, at] : paths) {
    if (at == path) return true;
  }
  return false;
}

void CheckPropagation(Value mount, Value container, const FieldPath& path, FieldErrors& errors) {
  const Value mode = mount["mountPropagation"];
  if (mode.is_null()) return;
  CheckOneOf(mode, kPropagations, path, errors);
  if (mode.as_string() == "Bidirectional" && !Bool(container["securityContext"], "privileged")) {
    errors.push_back(Forbidden(path, "Bidirectional mount propagation is available only to privileged containers"));
  }
}

void CheckRecursiveReadOnly(Value mount, const FieldPath& path, FieldErrors& errors) {
  const Value mode = mount["recursiveReadOnly"];
  if (mode.is_null() || !CheckOneOf(mode, kRecursive, path, errors) || mode.as_string() == "Disabled") return;
  if (!Bool(mount, "readOnly")) errors.push_back(Forbidden(path, "may only be specified when readOnly is true"));
  if (IsSet(mount, "mountPropagation") && Text(mount, "mountPropagation") != "None") {
    errors.push_back(Forbidden(path, "may only be specified when mountPropagation is None or not specified"));
  }
}

void CheckMounts(Value container, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  const Paths devices = PathsOf(container["volumeDevices"], "devicePath");
  NameSet taken;
  std::int64_t index = 0;
  for (const Value mount : container["volumeMounts"].items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = Text(mount, "name"), mount_path = Text(mount, "mountPath");
    const FieldPath name_path = at.Child("name"), mount_path_path = at.Child("mountPath");
    if (name.empty()) errors.push_back(Required(name_path));
    if (!facts.volumes.contains(name)) errors.push_back(NotFound(name_path, Value(name)));
    if (mount_path.empty()) errors.push_back(Required(mount_path_path));
    if (!taken.emplace(mount_path).second) errors.push_back(Invalid(mount_path_path, mount_path, "must be unique"));
    if (devices.contains(name)) errors.push_back(Invalid(name_path, name, "must not already exist in volumeDevices"));
    if (HasPath(devices, mount_path)) {
      errors.push_back(Invalid(mount_path_path, mount_path, "must not already exist as a path in volumeDevices"));
    }
    // Paths below have no index, as upstream.
    if (const std::string_view sub = Text(mount, "subPath"); !sub.empty())
      CheckLocalDescendingPath(sub, path.Child("subPath"), errors);
    if (const std::string_view expression = Text(mount, "subPathExpr"); !expression.empty()) {
      if (!Text(mount, "subPath").empty()) {
        errors.push_back(
            Invalid(at.Child("subPathExpr"), expression, "subPathExpr and subPath are mutually exclusive"));
      }
      CheckLocalDescendingPath(expression, path.Child("subPathExpr"), errors);
    }
    CheckPropagation(mount, container, path.Child("mountPropagation"), errors);
    CheckRecursiveReadOnly(mount, path.Child("recursiveReadOnly"), errors);
  }
}

void CheckDevices(Value container, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  const Paths mounts = PathsOf(container["volumeMounts"], "mountPath");
  NameSet names, paths;
  std::int64_t index = 0;
  for (const Value device : container["volumeDevices"].items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = Text(device, "name"), device_path = Text(device, "devicePath");
    const FieldPath name_path = at.Child("name"), device_path_path = at.Child("devicePath");
    const auto volume = facts.volumes.find(name);
    if (name.empty()) errors.push_back(Required(name_path));
    if (names.contains(name)) errors.push_back(Invalid(name_path, name, "must be unique"));
    if (volume == facts.volumes.end()) {
      errors.push_back(NotFound(name_path, Value(name)));
    } else if (!IsSet(volume->second, "persistentVolumeClaim") && !IsSet(volume->second, "ephemeral")) {
      errors.push_back(Invalid(name_path, name,
                               "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"));
    }
    if (device_path.empty()) errors.push_back(Required(device_path_path));
    if (paths.contains(device_path)) errors.push_back(Invalid(device_path_path, device_path, "must be unique"));
    if (HasBacksteps(device_path)) {
      errors.push_back(Invalid(device_path_path, device_path, "can not contain backsteps ('..')"));
    } else {
      paths.emplace(device_path);
    }
    if (mounts.contains(name)) errors.push_back(Invalid(name_path, name, "must not already exist in volumeMounts"));
    if (HasPath(mounts, device_path)) {
      errors.push_back(Invalid(device_path_path, device_path, "must not already exist as a path in volumeMounts"));
    }
    if (!name.empty()) names.emplace(name);
  }
}

}  // namespace

void ValidateMounts(Value container, const PodFacts& facts, const FieldPath& path, FieldErrors& errors) {
  CheckMounts(container, facts, path.Child("volumeMounts"), errors);
  CheckDevices(container, facts, path.Child("volumeDevices"), errors);
}

}  // namespace keelson::registry::core
