// The order in which the server's own group versions stand in discovery, as its automatically made APIServices say it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {

struct APIServicePriority {
  std::string_view group;
  std::string_view version;
  std::int32_t group_priority_minimum;
  std::int32_t version_priority;
};
std::span<const APIServicePriority>
APIServicePriorities();  // built-in group versions, also those not served by default

// The local APIService of a group version, labelled as managed by the server. `automanaged`: "onstart" or "true"
// (CRDs).
Value LocalAPIService(base::Arena& arena, const APIServicePriority& priority, std::string_view automanaged);

}  // namespace keelson::registry
