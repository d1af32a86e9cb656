// The change that a mutating webhook's JSON patch makes to an object. A patch with an effect leads to reinvocation of
// earlier webhooks and to `"mutated":true` in the audit annotation.
// Internal to admission.
#pragma once

#include <cstdint>

#include "admission/attributes.h"

namespace keelson::admission {

enum class Patches : std::uint8_t { kFirstOfRequest, kLater };

// `document` is the object as the webhook was sent it, `patched` the same after a patch with operations. Defaults do
// not count: a removed default is a change although it comes back. The first patch of a request to a built-in kind
// changes the object even if it is without effect: upstream compares Go structs, and the times of managed fields that
// this request has set lose their fractions of a second on the way through JSON.
bool PatchChanges(const Attributes& attributes, Value document, Value patched, Patches patches);

}  // namespace keelson::admission
