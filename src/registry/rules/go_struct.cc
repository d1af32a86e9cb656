#include "registry/rules/go_struct.h"

#include "object/json_text.h"

namespace keelson::registry::rules {
namespace {

void AppendZero(std::string& out, const GoField& field) {
  switch (field.zero) {
    case GoField::Zero::kText:
      out += "\"\"";
      break;
    case GoField::Zero::kNumber:
      out += '0';
      break;
    case GoField::Zero::kFalse:
      out += "false";
      break;
    case GoField::Zero::kNull:
      out += "null";
      break;
    case GoField::Zero::kQuantity:
      out += "\"0\"";
      break;
    case GoField::Zero::kStruct:
      out += RenderGoStruct(Value(), field.fields);
      break;
  }
}

void AppendValue(std::string& out, const Value& value, const GoField& field) {
  if (value.is_map() && !field.fields.empty()) {
    out += RenderGoStruct(value, field.fields);
  } else if (value.is_list() && !field.fields.empty()) {
    out += '[';
    for (bool first = true; const Value& item : value.items()) {
      if (!first) out += ',';
      first = false;
      out += RenderGoStruct(item, field.fields);
    }
    out += ']';
  } else {
    out += object::ToJSON(value);
  }
}

}  // namespace

std::string RenderGoStruct(const Value& value, std::span<const GoField> fields) {
  std::string out = "{";
  for (const GoField& field : fields) {
    if (out.size() > 1) out += ',';
    out += '"';
    out += field.name;
    out += "\":";
    if (const Value member = value[field.key]; member.is_null()) {
      AppendZero(out, field);
    } else {
      AppendValue(out, member, field);
    }
  }
  out += '}';
  return out;
}

}  // namespace keelson::registry::rules
