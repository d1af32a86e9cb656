// Paths inside containers and volumes.
#pragma once

#include <string_view>

#include "registry/fields.h"

namespace keelson::registry::core {

bool HasBacksteps(std::string_view path);  // an element is ".."
void CheckNoBacksteps(std::string_view path, const FieldPath& at, FieldErrors& errors);
void CheckLocalDescendingPath(std::string_view path, const FieldPath& at, FieldErrors& errors);  // relative, no ".."
void CheckLocalNonReservedPath(std::string_view path, const FieldPath& at,
                               FieldErrors& errors);  // and not beginning with ".."
void CheckFileMode(Value object, std::string_view key, const FieldPath& parent, FieldErrors& errors);

}  // namespace keelson::registry::core
