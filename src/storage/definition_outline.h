// A CustomResourceDefinition without its schemas, for code that needs only names, versions and conditions: most of a
// definition is schemas, and a start with two thousand of them should not decode all.
#pragma once

#include <optional>
#include <string_view>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::storage {

using object::Value;

// In the shape of v1, without spec.versions[].schema and metadata.managedFields. One pass over the stored text;
// defaults are not applied (definitions are stored with them). Nothing where the object is not stored as JSON.
std::optional<Value> DefinitionOutline(base::Arena& arena, std::string_view stored);

}  // namespace keelson::storage
