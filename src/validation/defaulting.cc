#include "validation/defaulting.h"

#include "base/strings.h"

namespace keelson::validation {
namespace {

// The tables' defaults are JSON scalars: a quoted text without escapes, a number, true or false.
Value ParseScalar(std::string_view json) {
  if (json.size() >= 2 && json.front() == '"') return json.substr(1, json.size() - 2);
  if (json == "true") return true;
  if (json == "false") return false;
  if (const auto number = base::ParseInt64(json)) return *number;
  return {};
}

void ApplyToType(base::Arena& arena, const schema::Type& type, Value value) {
  switch (type.kind) {
    case schema::Kind::kStruct:
      ApplyTableDefaults(arena, *type.structure, value);
      break;
    case schema::Kind::kList:
      if (type.element->kind == schema::Kind::kStruct || type.element->kind == schema::Kind::kList) {
        for (const Value item : value.items()) ApplyToType(arena, *type.element, item);
      }
      break;
    case schema::Kind::kMap:
      if (type.element->kind == schema::Kind::kStruct) {
        for (const auto& member : value.members()) ApplyToType(arena, *type.element, member.value);
      }
      break;
    default:
      break;
  }
}

}  // namespace

void ApplyTableDefaults(base::Arena& arena, const schema::Struct& type, Value object) {
  if (!object.is_map()) return;
  for (const schema::Field* field : type.json_fields) {
    if (field->default_text.empty()) continue;
    const Value* present = object.Find(field->name);
    if (present == nullptr || present->is_null()) object.Set(arena, field->name, ParseScalar(field->default_text));
  }
  for (const auto& member : object.members()) {
    if (member.value.is_map() || member.value.is_list()) {
      if (const schema::Field* field = type.FindField(member.key)) ApplyToType(arena, *field->type, member.value);
    }
  }
}

}  // namespace keelson::validation
