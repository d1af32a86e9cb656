// The atom (scalar, list or map type) at a position, resolved from its TypeRef: the shared part of the walks. Not for
// other folders.
#pragma once

#include "patch/typed_value.h"

namespace keelson::patch {

enum class ScalarKind : std::uint8_t { kNumeric, kString, kBoolean, kUntyped };

struct Atom {
  bool scalar = false;
  bool list = false;
  bool map = false;
  ScalarKind scalar_kind = ScalarKind::kUntyped;
  bool list_atomic = true;
  std::span<const std::string_view> list_keys;  // none: a set
  schema::structural::Node keyed;               // of a structural list by key: has the keys instead
  TypeRef list_element;
  bool map_atomic = false;
  const schema::Struct* fields = nullptr;
  schema::structural::Node node;  // of a structural object, instead of `fields`
  bool resource = false;          // it has apiVersion, kind and metadata besides
  TypeRef map_element;            // what fields that are not declared are; kNone: not allowed
};

Atom Resolve(const TypeRef& type);
// The part of the atom that fits the value; all of it if the value does not decide (null, absent, or a mismatch).
Atom Deduce(Atom atom, const Value* value);
inline bool SameParts(const Atom& a, const Atom& b) {
  return a.scalar == b.scalar && a.list == b.list && a.map == b.map;
}
// The index of a member in json_fields, or kNoPosition. Decoders note it (Value::place); elsewhere it is looked up.
inline std::uint16_t PositionOf(const schema::Struct& type, const object::Member& member) {
  const std::uint16_t noted = member.value.place() & 0xff;
  if (noted < type.json.size() && type.json[noted].quoted + 1 == member.key.data()) return noted;
  return type.FindPosition(member.key);
}
TypeRef FieldType(const schema::Field& field);
// The type of a member, declared or not.
TypeRef MemberType(const Atom& atom, std::string_view name, bool* declared = nullptr);
TypeRef MemberType(const schema::Struct& type, const schema::Field& field);

// How an item of a set or keyed list is named. Nothing with `error` for one that cannot be.
std::optional<PathElement> ItemElement(base::Arena& arena, const Atom& list, const Value& item,
                                       std::string* error = nullptr);

}  // namespace keelson::patch
