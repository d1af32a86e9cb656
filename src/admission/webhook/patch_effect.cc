#include "admission/webhook/patch_effect.h"

#include "codec/scheme.h"

namespace keelson::admission {
namespace {

// The objects without metadata that the server writes.
bool SameAsStored(const Attributes& attributes) {
  base::Arena arena;
  const auto stripped = [&](Value object) {
    Value copy = object.Clone(arena);
    if (Value metadata = copy["metadata"]; metadata.is_map()) {
      metadata.Erase("managedFields");
      metadata.Erase("resourceVersion");
    }
    return copy;
  };
  return stripped(attributes.object) == stripped(attributes.old_object);
}

// The field manager writes a new time where the request sets fields.
bool HasNewFieldTimes(const Attributes& attributes) {
  if (attributes.object.Get("metadata", "managedFields").empty()) return false;
  return attributes.old_object.is_null() || !SameAsStored(attributes);
}

bool IsBuiltIn(const meta::GroupVersionKind& kind) { return codec::RegisteredType(kind) != nullptr; }

}  // namespace

bool PatchChanges(const Attributes& attributes, Value document, Value patched, Patches patches) {
  if (!(document == patched)) return true;
  return patches == Patches::kFirstOfRequest && IsBuiltIn(attributes.kind) && HasNewFieldTimes(attributes);
}

}  // namespace keelson::admission
