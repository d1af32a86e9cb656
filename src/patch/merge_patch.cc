#include "patch/merge_patch.h"

#include "object/go_text.h"

namespace keelson::patch {
namespace {

using base::Arena;

// A copy without null members, also inside lists (the RFC leaves lists alone; upstream does not). Opened maps come out
// sorted, as a Go map is written.
Value Pruned(Arena& arena, const Value& value) {
  if (value.is_list()) {
    Value list = Value::List(arena, value.size());
    for (const Value& item : value.items()) list.Append(arena, Pruned(arena, item));
    return list;
  }
  if (!value.is_map()) return value;
  Value map = Value::Map(arena, value.size());
  for (const object::Member& member : value.members()) {
    if (!member.value.is_null()) map.Set(arena, member.key, Pruned(arena, member.value));
  }
  map.SortMembers();
  return map;
}

// `document` is ours to change.
void MergeInto(Arena& arena, Value document, const Value& patch) {
  for (const object::Member& member : patch.members()) {
    if (member.value.is_null()) {
      document.Erase(member.key);
      continue;
    }
    const Value now = document[member.key];
    if (now.is_map() && member.value.is_map()) {
      MergeInto(arena, now, member.value);
    } else if (now.is_map()) {
      document.Set(arena, member.key, member.value.Clone(arena));
    } else {
      document.Set(arena, member.key, Pruned(arena, member.value));
    }
  }
  document.SortMembers();
}

}  // namespace

Result<Value> ApplyMergePatch(Arena& arena, const Value& document, const Value& patch, bool checked) {
  if (!patch.is_map()) {
    if (checked && !patch.is_null()) {
      return meta::NewBadRequest("error decoding patch: json: cannot unmarshal " + std::string(JSONTypeName(patch)) +
                                 " into Go value of type map[string]interface {}");
    }
    if (!patch.is_list()) return meta::NewBadRequest("Invalid JSON Patch");
    return Pruned(arena, patch);
  }
  Value result = document.Clone(arena);
  if (!result.is_map()) return Pruned(arena, patch);
  MergeInto(arena, result, patch);
  return result;
}

}  // namespace keelson::patch
