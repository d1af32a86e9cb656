// The APIServices that the server makes for its own group versions.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "object/value.h"
#include "schema/facts.h"

namespace keelson::registry {

using APIServicePriority = schema::VersionPriority;

// The local APIService of a group version, labelled as managed by the server. `automanaged`: "onstart" or "true"
// (CRDs).
Value LocalAPIService(base::Arena& arena, const APIServicePriority& priority, std::string_view automanaged);

}  // namespace keelson::registry
