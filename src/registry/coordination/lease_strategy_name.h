// spec.strategy of leases and of those that contend for them.
#pragma once

#include <string_view>

#include "object/field_path.h"
#include "registry/strategy.h"
#include "validation/errors.h"

namespace keelson::registry {

inline constexpr std::string_view kOldestEmulationVersion = "OldestEmulationVersion";
void ValidateStrategyName(std::string_view name, const FieldPath& path, validation::FieldErrors& errors);

const Strategy& LeaseCandidateStrategy();

}  // namespace keelson::registry
