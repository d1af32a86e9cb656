// Strategic merge patch: a merge patch that merges keyed lists by the schema, with its directives
// ($patch, $retainKeys, $deleteFromPrimitiveList/x, $setElementOrder/x). Built-in kinds only.
#pragma once

#include "base/arena.h"
#include "meta/status.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::patch {

// The patched object, to be decoded by the schema afterwards; `original` and `patch` are left as they are.
// 400 if the patch is not an object and for malformed directives, 422 for lists of lists, else a plain 500 with
// upstream's text.
Result<Value> ApplyStrategicMergePatch(base::Arena& arena, const Value& original, const Value& patch,
                                       const schema::Struct& type);

}  // namespace keelson::patch
