#include "admission/policy/apply_patch.h"

#include <algorithm>

#include "patch/json_patch.h"

namespace keelson::admission {

using object::Value;

namespace {

// Subtracts the approximate size of the value as JSON from `left`; false when `left` is less. Values made by expressions
// share their parts, so that their size as JSON can be far beyond their memory.
bool Take(const Value& value, std::size_t& left) {
  const std::size_t size = 2 + value.as_string().size() + value.as_raw().size();
  if (size > left) return false;
  left -= size;
  if (value.is_list()) return std::ranges::all_of(value.items(), [&](const Value& item) { return Take(item, left); });
  return std::ranges::all_of(value.members(), [&](const object::Member& member) {
    if (member.key.size() > left) return false;
    left -= member.key.size();
    return Take(member.value, left);
  });
}

// Whether the value is larger than kPatchedBytesMax. Adds its size, or that maximum, to `bytes`.
bool IsTooLarge(const Value& value, std::size_t& bytes) {
  std::size_t left = kPatchedBytesMax;
  const bool fits = Take(value, left);
  bytes += kPatchedBytesMax - left;
  return !fits;
}

constexpr std::string_view kTooLarge = "the patched object is too large";

}  // namespace

Outcome<std::optional<Value>, std::string> ApplyPolicyPatch(base::Arena& arena, const cel::PolicyPatch& patch,
                                                            Value object, const MergeFunction& merge,
                                                            std::size_t& bytes) {
  if (!patch.error.empty()) return patch.error;
  if (IsTooLarge(patch.value, bytes)) return std::string(kTooLarge);
  if (patch.type == cel::PatchType::kJSONPatch) {
    auto patched = patch::TryJSONPatch(arena, object, patch.value);
    if (patched.ok() && IsTooLarge(*patched, bytes)) return std::string(kTooLarge);
    if (patched.ok()) return std::optional<Value>(*patched);
    if (patched.error().ends_with(patch::kTestFailed)) return std::optional<Value>();
    return "JSON Patch: " + patched.error();
  }
  auto merged = merge(patch.value);
  if (!merged.ok()) return "error applying patch: " + merged.error();
  if (IsTooLarge(*merged, bytes)) return std::string(kTooLarge);
  return std::optional<Value>(*merged);
}

}  // namespace keelson::admission
