// Applies the patch that a mutating policy made of a request.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/arena.h"
#include "base/outcome.h"
#include "cel/mutating_policy.h"
#include "object/value.h"

namespace keelson::admission {

// Merges an apply configuration into the object by its schema. The error is structured-merge-diff's.
using MergeFunction = std::function<Outcome<object::Value, std::string>(object::Value configuration)>;

// Maximum size of a patch and of a patched document, as JSON: a policy could double an object with each mutation. Larger
// objects could not be stored.
constexpr std::size_t kPatchedBytesMax = std::size_t{8} << 20;
// Maximum size of all patches and patched documents of one request, since a policy may have thousands of mutations.
// Further mutations are errors.
constexpr std::size_t kPatchedBytesTotalMax = std::size_t{128} << 20;

// The patched document, or nothing where a JSON patch's test does not hold. The error is upstream's text.
// The sizes of patch and document are added to `bytes`.
Outcome<std::optional<object::Value>, std::string> ApplyPolicyPatch(base::Arena& arena, const cel::PolicyPatch& patch,
                                                                    object::Value object, const MergeFunction& merge,
                                                                    std::size_t& bytes);

}  // namespace keelson::admission
