#include "object/go_text.h"

#include <algorithm>
#include <vector>

#include "object/json_text.h"

namespace keelson::object {
namespace {

void Append(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      out += "<nil>";
      break;
    case Value::Kind::kBool:
      out += value.as_bool() ? "true" : "false";
      break;
    case Value::Kind::kInt:
      out += std::to_string(value.as_int());
      break;
    case Value::Kind::kDouble:
      out += GoDouble(value.as_double());
      break;
    case Value::Kind::kString:
      out += value.as_string();
      break;
    case Value::Kind::kRaw:
      out += value.as_raw();
      break;
    case Value::Kind::kList: {
      out += '[';
      bool first = true;
      for (const Value& item : value.items()) {
        if (!first) out += ' ';
        first = false;
        Append(out, item);
      }
      out += ']';
      break;
    }
    case Value::Kind::kMap: {
      std::vector<const Member*> members;
      for (const Member& member : value.members()) members.push_back(&member);
      std::ranges::sort(members, {}, [](const Member* member) { return member->key; });
      out += "map[";
      bool first = true;
      for (const Member* member : members) {
        if (!first) out += ' ';
        first = false;
        out += member->key;
        out += ':';
        Append(out, member->value);
      }
      out += ']';
      break;
    }
  }
}

}  // namespace

std::string GoSprint(const Value& value) {
  std::string out;
  Append(out, value);
  return out;
}

std::string_view GoTypeName(const Value& value) {
  if (value.is_null()) return "%!s(<nil>)";
  if (value.is_list()) return "[]interface {}";
  return value.is_map() ? "map[string]interface {}" : GoKindName(value);
}

std::string_view GoKindName(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
      return "int64";
    case Value::Kind::kDouble:
      return "float64";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kList:
      return "slice";
    default:
      return "map";
  }
}

std::string_view JSONTypeName(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
    case Value::Kind::kDouble:
      return "number";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kList:
      return "array";
    default:
      return "object";
  }
}

}  // namespace keelson::object
