// JSON patch (RFC 6902) as kube-apiserver applies it, which is as evanphx/json-patch v4 does: replacing a member that
// is not there adds it, negative indices count from the end, a missing value is null, the first segment of a path is
// not looked at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/outcome.h"
#include "meta/status.h"
#include "object/value.h"

namespace keelson::patch {

inline constexpr std::size_t kJSONPatchOperationsMax = 10000;
inline constexpr std::int64_t kJSONPatchCopyBytesMax = 3 * 1024 * 1024;  // of all copy operations together, as JSON
inline constexpr int kPatchedDepthMax = 10000;                           // nesting of the result

// Checks the document's shape. `checked`: the request's fieldValidation is Warn or Strict, where upstream reads the
// operations into a struct first. 400 if it is not a list of operations, 413 for too many.
Result<Value> CheckJSONPatch(const Value& patch, bool checked);
// Members that no operation has, in the words of the strict decoder: json patch unknown field "[0].foo".
std::vector<std::string> JSONPatchUnknownFields(const Value& patch);

inline constexpr std::string_view kTestFailed = "test failed";  // ends the error of a `test` that does not hold

// The patched document; `document` itself is left as it is. The error is evanphx/json-patch's text.
// REQUIRES: `patch` passed CheckJSONPatch.
Outcome<Value, std::string> TryJSONPatch(base::Arena& arena, const Value& document, const Value& patch);
// The same for a PATCH request: a failing operation gives 422 without saying why (upstream
// hides it). REQUIRES: `patch` passed CheckJSONPatch.
Result<Value> ApplyJSONPatch(base::Arena& arena, const Value& document, const Value& patch);

}  // namespace keelson::patch
