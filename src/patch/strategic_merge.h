// Strategic merge patch: a merge patch that knows from the schema which lists are keyed, with its directives
// ($patch, $retainKeys, $deleteFromPrimitiveList/x, $setElementOrder/x). Built-in kinds only.
#pragma once

#include "base/arena.h"
#include "meta/status.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::patch {

// The patched object, to be decoded by the schema afterwards; `original` and `patch` are left as they are.
// 400 for a patch that is no object and for malformed directives, 422 for lists of lists, else a plain 500 with
// upstream's text.
Result<Value> ApplyStrategicMergePatch(base::Arena& arena, const Value& original, const Value& patch,
                                       const schema::Struct& type);

}  // namespace keelson::patch
