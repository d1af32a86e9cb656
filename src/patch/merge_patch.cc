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

// The maps on the way to a change are new and sorted; everything else is the document's own.
Value Merged(Arena& arena, const Value& document, const Value& patch) {
  Value merged = Value::Map(arena, document.size() + patch.size());
  for (const object::Member& member : document.members()) {
    const Value* const change = patch.Find(member.key);
    if (change == nullptr) {
      merged.AppendMember(arena, member.key, member.value);
    } else if (member.value.is_map() && change->is_map()) {
      merged.AppendMember(arena, member.key, Merged(arena, member.value, *change));
    } else if (!change->is_null()) {
      merged.AppendMember(arena, member.key, member.value.is_map() ? change->Clone(arena) : Pruned(arena, *change));
    }
  }
  for (const object::Member& member : patch.members()) {
    if (!member.value.is_null() && !document.Has(member.key))
      merged.AppendMember(arena, member.key, Pruned(arena, member.value));
  }
  merged.SortMembers();
  return merged;
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
  if (!document.is_map()) return Pruned(arena, patch);
  return Merged(arena, document, patch);
}

}  // namespace keelson::patch
