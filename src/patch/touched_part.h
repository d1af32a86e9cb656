// Patches of built-in kinds without turning the whole object into JSON and back: the fields that a merge patch or a
// strategic merge patch names are taken out, patched as a document, and put back. Pure functions.
#pragma once

#include <optional>

#include "base/arena.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::patch {

// The fields of `object` that `patch` names, with apiVersion and kind. Structs are entered where the patch enters them
// with field names only; everything else is taken whole. Shares its values with `object`. Nothing for a patch that
// names apiVersion, kind, fields that the type does not have, or directives at the top, and nothing for an object that
// holds raw JSON, which upstream writes anew whatever the patch names: patch the whole object then. The same where the
// object has raw JSON, which a patch writes anew wherever it stands (a ControllerRevision is refused for that).
std::optional<Value> TouchedPart(base::Arena& arena, const Value& object, const Value& patch,
                                 const schema::Struct& type);
// Puts the same fields of the patched part into `object`; those that are gone from it are erased. REQUIRES: the patch
// has a TouchedPart() of `object`.
void PutTouchedPart(base::Arena& arena, Value object, const Value& part, const Value& patch,
                    const schema::Struct& type);

}  // namespace keelson::patch
