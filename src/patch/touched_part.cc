#include "patch/touched_part.h"

#include <algorithm>

namespace keelson::patch {
namespace {

using base::Arena;

// Only fields of the struct: no directive ($patch, $retainKeys, $setElementOrder/...) and nothing unknown.
bool NamesFieldsOnly(const Value& patch, const schema::Struct& type) {
  return patch.is_map() && std::ranges::all_of(patch.members(), [&](const object::Member& member) {
           return type.FindField(member.key) != nullptr;
         });
}

// Structs that a strategic merge patch replaces (a disruption budget's selector) are taken whole.
bool Enters(const Value& patch, const Value& value, const schema::Field& field) {
  return field.type->kind == schema::Kind::kStruct && field.patch_strategy != schema::PatchStrategy::kReplace &&
         value.is_map() && NamesFieldsOnly(patch, *field.type->structure);
}

// Raw JSON (ControllerRevision's data, RawExtension) outside of metadata, where managedFields have it.
bool HoldsRaw(const Value& value) {
  if (value.is_map())
    return std::ranges::any_of(value.members(), [](const object::Member& member) { return HoldsRaw(member.value); });
  if (value.is_list()) return std::ranges::any_of(value.items(), HoldsRaw);
  return value.kind() == Value::Kind::kRaw;
}

bool HoldsRawOutsideMetadata(const Value& object) {
  return std::ranges::any_of(object.members(), [](const object::Member& member) {
    return member.key != "metadata" && HoldsRaw(member.value);
  });
}

Value Taken(Arena& arena, const Value& object, const Value& patch, const schema::Struct& type) {
  Value part = Value::Map(arena, patch.size() + 2);
  for (const object::Member& member : patch.members()) {
    const Value* const value = object.Find(member.key);
    if (value == nullptr) continue;
    const schema::Field& field = *type.FindField(member.key);
    const bool enters = Enters(member.value, *value, field);
    part.AppendMember(arena, member.key, enters ? Taken(arena, *value, member.value, *field.type->structure) : *value);
  }
  return part;
}

}  // namespace

std::optional<Value> TouchedPart(Arena& arena, const Value& object, const Value& patch, const schema::Struct& type) {
  constexpr std::string_view kTypeMeta[] = {"apiVersion", "kind"};
  if (!object.is_map() || !NamesFieldsOnly(patch, type)) return std::nullopt;
  if (std::ranges::any_of(kTypeMeta, [&](std::string_view name) { return patch.Has(name); })) return std::nullopt;
  if (HoldsRawOutsideMetadata(object)) return std::nullopt;
  Value part = Taken(arena, object, patch, type);
  for (const std::string_view name : kTypeMeta) part.Set(arena, name, object[name]);
  return part;
}

void PutTouchedPart(Arena& arena, Value object, const Value& part, const Value& patch, const schema::Struct& type) {
  for (const object::Member& member : patch.members()) {
    const schema::Field& field = *type.FindField(member.key);
    const Value* const now = part.Find(member.key);
    const Value before = object[member.key];
    if (Enters(member.value, before, field)) {
      PutTouchedPart(arena, before, now != nullptr ? *now : Value(), member.value, *field.type->structure);
    } else if (now != nullptr) {
      object.Set(arena, field.name, *now);
    } else {
      object.Erase(member.key);
    }
  }
}

}  // namespace keelson::patch
