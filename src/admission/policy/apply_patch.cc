#include "admission/policy/apply_patch.h"

#include "patch/json_patch.h"

namespace keelson::admission {

using object::Value;

Outcome<std::optional<Value>, std::string> ApplyPolicyPatch(base::Arena& arena, const cel::PolicyPatch& patch,
                                                            Value object, const MergeFunction& merge) {
  if (!patch.error.empty()) return patch.error;
  if (patch.type == cel::PatchType::kJSONPatch) {
    auto patched = patch::TryJSONPatch(arena, object, patch.value);
    if (patched.ok()) return std::optional<Value>(*patched);
    if (patched.error().ends_with(patch::kTestFailed)) return std::optional<Value>();
    return "JSON Patch: " + patched.error();
  }
  auto merged = merge(patch.value);
  if (!merged.ok()) return "error applying patch: " + merged.error();
  return std::optional<Value>(*merged);
}

}  // namespace keelson::admission
