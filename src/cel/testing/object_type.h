// For tests: types by the names that cel-go's NewObjectType takes.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "cel/type.h"

namespace keelson::cel {

// A well-known protobuf name ("google.protobuf.Int64Value") gives the CEL type behind it, any other name a struct type.
inline const Type* NewObjectType(base::Arena& arena, std::string_view name) {
  if (const Type* known = FindWellKnownType(name)) return known;
  return arena.New<Type>(Type{.kind = Kind::kStruct, .name = arena.Copy(name)});
}

}  // namespace keelson::cel
