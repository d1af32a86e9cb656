// JSON merge patch (RFC 7386) as kube-apiserver applies it.
#pragma once

#include "base/arena.h"
#include "meta/status.h"
#include "object/value.h"

namespace keelson::patch {

// The patched document; `document` and `patch` are left as they are, and the result shares with the document what the
// patch does not reach: Clone() it before it is changed further down. `checked`: fieldValidation is Warn or Strict,
// where upstream reads the patch into a map first. 400 if the patch is not an object.
Result<Value> ApplyMergePatch(base::Arena& arena, const Value& document, const Value& patch, bool checked);

}  // namespace keelson::patch
