// Projected and downward API volumes.
#pragma once

#include "registry/core/pod_options.h"
#include "registry/fields.h"

namespace keelson::registry::core {

void ValidateProjectedSource(Value source, const PodOptions& options, const FieldPath& path, FieldErrors& errors);
void CheckDownwardAPIFile(Value file, const FieldPath& path, FieldErrors& errors);

}  // namespace keelson::registry::core
