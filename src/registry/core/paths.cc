#include "registry/core/paths.h"

#include "base/strings.h"

namespace keelson::registry::core {

bool HasBacksteps(std::string_view path) {
  for (const std::string_view element : base::Split(path, '/')) {
    if (element == "..") return true;
  }
  return false;
}

void CheckNoBacksteps(std::string_view path, const FieldPath& at, FieldErrors& errors) {
  if (HasBacksteps(path)) errors.push_back(Invalid(at, path, "must not contain '..'"));
}

void CheckLocalDescendingPath(std::string_view path, const FieldPath& at, FieldErrors& errors) {
  if (path.starts_with('/')) errors.push_back(Invalid(at, path, "must be a relative path"));
  CheckNoBacksteps(path, at, errors);
}

void CheckLocalNonReservedPath(std::string_view path, const FieldPath& at, FieldErrors& errors) {
  CheckLocalDescendingPath(path, at, errors);
  if (path.starts_with("..") && !path.starts_with("../"))
    errors.push_back(Invalid(at, path, "must not start with '..'"));
}

void CheckFileMode(Value object, std::string_view key, const FieldPath& parent, FieldErrors& errors) {
  const Value mode = object[key];
  if (mode.is_null() || (mode.as_int() >= 0 && mode.as_int() <= 0777)) return;
  errors.push_back(Invalid(parent.Child(key), mode, "must be a number between 0 and 0777 (octal), both inclusive"));
}

}  // namespace keelson::registry::core
