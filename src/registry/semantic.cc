#include "registry/semantic.h"

#include "base/check.h"
#include "registry/quantities.h"

namespace keelson::registry {
namespace {

// Equality of nil and empty lists and maps.
enum class Nothing : std::uint8_t { kAlike, kNilDiffersFromEmpty };

template <Nothing kNothing>
bool Equal(Value a, Value b, const schema::Type& type, bool pointer);

template <Nothing kNothing>
bool EqualLists(Value a, Value b, const schema::Type& element) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!Equal<kNothing>(a[i], b[i], element, false)) return false;
  }
  return true;
}

template <Nothing kNothing>
bool EqualMaps(Value a, Value b, const schema::Type& element) {
  if (a.size() != b.size()) return false;
  for (const object::Member& member : a.members()) {
    const Value* other = b.Find(member.key);
    if (other == nullptr || !Equal<kNothing>(member.value, *other, element, false)) return false;
  }
  return true;
}

template <Nothing kNothing>
bool EqualStructs(Value a, Value b, const schema::Struct& type) {
  for (const schema::Field* field : type.json_fields) {
    if (!Equal<kNothing>(a[field->name], b[field->name], *field->type, field->pointer)) return false;
  }
  return true;
}

template <Nothing kNothing>
bool Equal(Value a, Value b, const schema::Type& type, bool pointer) {
  if (a.is_null() && b.is_null()) return true;
  if (pointer && a.is_null() != b.is_null()) return false;
  const bool nilable = type.kind == schema::Kind::kList || type.kind == schema::Kind::kMap;
  if (kNothing == Nothing::kNilDiffersFromEmpty && nilable && a.is_null() != b.is_null()) return false;
  switch (type.kind) {
    case schema::Kind::kStruct:
      return EqualStructs<kNothing>(a, b, *type.structure);
    case schema::Kind::kList:
      return EqualLists<kNothing>(a, b, *type.element);
    case schema::Kind::kMap:
      return EqualMaps<kNothing>(a, b, *type.element);
    case schema::Kind::kQuantity:
      return CompareQuantities(a, b) == 0;
    case schema::Kind::kString:
    case schema::Kind::kBytes:
      return a.as_string() == b.as_string();
    case schema::Kind::kBool:
      return a.as_bool() == b.as_bool();
    case schema::Kind::kInt32:
    case schema::Kind::kInt64:
      return a.as_int() == b.as_int();
    case schema::Kind::kIntOrString:
      return a.is_string() == b.is_string() &&
             (a.is_string() ? a.as_string() == b.as_string() : a.as_int() == b.as_int());
    default:
      return a == b;
  }
}

}  // namespace

// Identical values are equal by any schema, and most compared values are identical.
bool SemanticEqual(Value a, Value b, const schema::Struct& type) {
  return a == b || EqualStructs<Nothing::kAlike>(a, b, type);
}

bool SemanticEqual(Value a, Value b, const schema::Type& type, bool pointer) {
  return a == b || Equal<Nothing::kAlike>(a, b, type, pointer);
}

bool DeepEqual(Value a, Value b, const schema::Type& type, bool pointer) {
  return a == b || Equal<Nothing::kNilDiffersFromEmpty>(a, b, type, pointer);
}

}  // namespace keelson::registry
