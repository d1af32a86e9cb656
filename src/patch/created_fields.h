// The managed fields of a created object, written in one walk of the object: what comparing its canonical form with the
// kind's zero value would give, without making either.
#pragma once

#include <optional>
#include <string_view>

#include "base/arena.h"
#include "object/value.h"
#include "patch/field_set.h"
#include "patch/typed_value.h"
#include "schema/schema.h"

namespace keelson::patch {

// FieldsV1 of everything in `object` that differs from the zero value of `type`. A member of `without` is left out,
// with everything below it; a member of `never` is left out without what is below it. "{}" where nothing is left.
// The text is in `arena`. Nothing for objects with parts whose topology is deduced from their value, or that do not fit
// the schema: compare those.
std::optional<std::string_view> CreatedFields(base::Arena& arena, const Value& object, const schema::Type& type,
                                              const FieldSet& without, const FieldSet& never);

// The same of a custom resource, which is compared with nothing: all that is there counts, also where Go would leave it
// out. REQUIRES: `object` has passed Validate() for `type`.
std::string_view CreatedCustomFields(base::Arena& arena, const Value& object, const TypeRef& type,
                                     const FieldSet& without, const FieldSet& never);

}  // namespace keelson::patch
