#include "patch/go_text.h"

#include <algorithm>
#include <vector>

#include "object/json_text.h"

namespace keelson::patch {
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
      out += object::GoDouble(value.as_double());
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
      std::vector<const object::Member*> members;
      for (const object::Member& member : value.members()) members.push_back(&member);
      std::ranges::sort(members, {}, [](const object::Member* member) { return member->key; });
      out += "map[";
      bool first = true;
      for (const object::Member* member : members) {
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
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "%!s(<nil>)";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
      return "int64";
    case Value::Kind::kDouble:
      return "float64";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kList:
      return "[]interface {}";
    default:
      return "map[string]interface {}";
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

}  // namespace keelson::patch
