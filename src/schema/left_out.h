// Fields that Go's encoding/json omits by their tags (omitempty, omitzero), for all writers of Go's JSON.
#pragma once

#include "object/value.h"
#include "schema/schema.h"

namespace keelson::schema {

// omitempty and omitzero for a member that is there; `kind` is that of the field's type. A field without the member is
// another matter: Struct::written_always. `F` is Field or JSONField.
template <typename F>
bool LeftOut(const F& field, Kind kind, const Value& value) {
  if (field.always) return false;
  if (value.is_null()) {
    return field.pointer || field.omit_zero || kind <= Kind::kBytes || kind == Kind::kList || kind == Kind::kMap;
  }
  if (field.pointer) return false;
  switch (kind) {
    case Kind::kString:
    case Kind::kBytes:
      return value.as_string().empty();
    case Kind::kBool:
      return !value.as_bool();
    case Kind::kInt32:
    case Kind::kInt64:
      return value.as_int() == 0;
    case Kind::kDouble:
      return value.as_double() == 0;
    case Kind::kList:
    case Kind::kMap:
      return value.empty();
    default:
      return field.omit_zero && value.is_map() && value.empty();
  }
}

}  // namespace keelson::schema
