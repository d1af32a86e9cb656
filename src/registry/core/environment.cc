// Environments of containers.
#include "registry/core/containers.h"
#include "registry/core/downward_api.h"
#include "registry/core/paths.h"
#include "registry/core/pod_security.h"

namespace keelson::registry::core {
namespace {

void CheckKeySelector(Value selector, const FieldPath& path, FieldErrors& errors) {
  CheckDNSSubdomain(Text(selector, "name"), path.Child("name"), errors);
  if (RequireText(selector, "key", path, errors)) {
    AddInvalid(path.Child("key"), Text(selector, "key"), validation::IsConfigMapKey(Text(selector, "key")), errors);
  }
}

void CheckFileKeySelector(Value selector, const FieldPath& path, FieldErrors& errors) {
  if (RequireText(selector, "key", path, errors)) {
    AddInvalid(path.Child("key"), Text(selector, "key"), validation::IsEnvVarName(Text(selector, "key")), errors);
  }
  if (RequireText(selector, "volumeName", path, errors))
    CheckDNSLabel(Text(selector, "volumeName"), path.Child("volumeName"), errors);
  if (RequireText(selector, "path", path, errors)) CheckNoBacksteps(Text(selector, "path"), path.Child("path"), errors);
}

void CheckValueFrom(Value variable, const FieldPath& path, FieldErrors& errors) {
  const Value from = variable["valueFrom"];
  if (from.is_null()) return;
  int sources = 0;
  for (const std::string_view key : {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
    const Value source = from[key];
    if (source.is_null()) continue;
    ++sources;
    const FieldPath at = path.Child(key);
    if (key == "fieldRef") {
      CheckFieldRef(source, DownwardUse::kEnv, at, errors);
    } else if (key == "resourceFieldRef") {
      CheckResourceFieldRef(source, DownwardUse::kEnv, at, errors);
    } else if (key == "fileKeyRef") {
      CheckFileKeySelector(source, at, errors);
    } else {
      CheckKeySelector(source, at, errors);
    }
  }
  if (sources == 0) {
    errors.push_back(Invalid(
        path, "",
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"));
  } else if (!Text(variable, "value").empty()) {
    errors.push_back(Invalid(path, "", "may not be specified when `value` is not empty"));
  } else if (sources > 1) {
    errors.push_back(Invalid(path, "", "may not have more than one field specified at a time"));
  }
}

void CheckEnvFrom(Value sources, const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  for (const Value source : sources.items()) {
    const FieldPath at = path.Index(index++);
    if (const std::string_view prefix = Text(source, "prefix"); !prefix.empty()) {
      AddInvalid(at.Child("prefix"), prefix, validation::IsEnvVarName(prefix), errors);
    }
    int count = 0;
    for (const std::string_view key : {"configMapRef", "secretRef"}) {
      const Value reference = source[key];
      if (reference.is_null()) continue;
      ++count;
      const FieldPath one = at.Child(key);
      if (RequireText(reference, "name", one, errors)) {
        AddInvalid(one.Child("name"), Text(reference, "name"),
                   validation::NameIsDNSSubdomain(Text(reference, "name"), true), errors);
      }
    }
    if (count == 0) errors.push_back(Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"));
    if (count > 1) errors.push_back(Invalid(path, "", "may not have more than one field specified at a time"));
  }
}

}  // namespace

void ValidateEnvironment(Value container, const FieldPath& path, FieldErrors& errors) {
  const FieldPath env = path.Child("env");
  std::int64_t index = 0;
  for (const Value variable : container["env"].items()) {
    const FieldPath at = env.Index(index++);
    if (RequireText(variable, "name", at, errors)) {
      AddInvalid(at.Child("name"), Text(variable, "name"), validation::IsEnvVarName(Text(variable, "name")), errors);
    }
    CheckValueFrom(variable, at.Child("valueFrom"), errors);
  }
  CheckEnvFrom(container["envFrom"], path.Child("envFrom"), errors);
}

void ValidateFileKeyVolumes(Value spec, const FieldPath& path, FieldErrors& errors) {
  std::map<std::string_view, Value> volumes;
  for (const Value volume : spec["volumes"].items()) volumes[Text(volume, "name")] = volume;
  VisitContainers(spec, path, [&](Value container, const FieldPath& at) {
    const FieldPath env = at.Child("env");
    std::int64_t index = 0;
    for (const Value variable : container["env"].items()) {
      const FieldPath one = env.Index(index++);
      const Value selector = variable["valueFrom"]["fileKeyRef"];
      if (selector.is_null()) continue;
      const FieldPath from = one.Child("valueFrom");
      const FieldPath file = from.Child("fileKeyRef");
      const FieldPath name_path = file.Child("volumeName");
      const auto volume = volumes.find(Text(selector, "volumeName"));
      if (volume == volumes.end()) {
        errors.push_back(NotFound(name_path, Value(Text(selector, "volumeName"))));
      } else if (!IsSet(volume->second, "emptyDir")) {
        errors.push_back(
            Invalid(name_path, Text(selector, "volumeName"), "referenced volume must be of type emptyDir"));
      }
    }
  });
}

}  // namespace keelson::registry::core
