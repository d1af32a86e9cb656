// The built-in kinds that a document may name, as in upstream's runtime.Scheme: decoders map apiVersion and kind to a
// type by it. Resources are found in registry::Catalog instead.
#pragma once

#include <string_view>

#include "meta/group_version.h"
#include "schema/schema.h"

namespace keelson::codec {

// The type of a kind; null when none is registered by that name.
const schema::Struct* RegisteredType(std::string_view group, std::string_view version, std::string_view kind);
inline const schema::Struct* RegisteredType(const meta::GroupVersionKind& kind) {
  return RegisteredType(kind.group, kind.version, kind.kind);
}

}  // namespace keelson::codec
