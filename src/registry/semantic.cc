#include "registry/semantic.h"

#include "base/check.h"
#include "registry/quantities.h"

namespace keelson::registry {
namespace {

bool EqualLists(Value a, Value b, const schema::Type& element) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!SemanticEqual(a[i], b[i], element)) return false;
  }
  return true;
}

bool EqualMaps(Value a, Value b, const schema::Type& element) {
  if (a.size() != b.size()) return false;
  for (const object::Member& member : a.members()) {
    const Value* other = b.Find(member.key);
    if (other == nullptr || !SemanticEqual(member.value, *other, element)) return false;
  }
  return true;
}

}  // namespace

bool SemanticEqual(Value a, Value b, const schema::Struct& type) {
  for (const schema::Field* field : type.json_fields) {
    if (!SemanticEqual(a[field->name], b[field->name], *field->type, field->pointer)) return false;
  }
  return true;
}

bool SemanticEqual(Value a, Value b, const schema::Type& type, bool pointer) {
  if (a.is_null() && b.is_null()) return true;
  if (pointer && a.is_null() != b.is_null()) return false;
  switch (type.kind) {
    case schema::Kind::kStruct:
      return SemanticEqual(a, b, *type.structure);
    case schema::Kind::kList:
      return EqualLists(a, b, *type.element);
    case schema::Kind::kMap:
      return EqualMaps(a, b, *type.element);
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

bool SemanticEqual(Value a, Value b, std::string_view package, std::string_view type) {
  const schema::Struct* structure = schema::FindType(package, type);
  KS_CHECK(structure != nullptr);
  return SemanticEqual(a, b, *structure);
}

}  // namespace keelson::registry
