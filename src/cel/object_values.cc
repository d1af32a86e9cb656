// Objects as CEL sees them, through a schema or as JSON, and values as objects.
#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "cel/decl_type.h"
#include "cel/library_values.h"
#include "cel/temporal.h"
#include "cel/value.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using schema::structural::NodeType;

Val DynFromObject(Arena& arena, const object::Value& value) {
  using Kind = object::Value::Kind;
  switch (value.kind()) {
    case Kind::kNull:
      return {};
    case Kind::kBool:
      return Val::Bool(value.as_bool());
    case Kind::kInt:
      return Val::Int(value.as_int());
    case Kind::kDouble:
      return Val::Double(value.as_double());
    case Kind::kString:
      return Val::String(value.as_string());
    case Kind::kRaw: {
      const auto parsed = object::ParseJSON(arena, value.as_raw());
      if (!parsed) return Val::Error("invalid JSON");
      return DynFromObject(arena, *parsed);
    }
    case Kind::kList: {
      List* list = arena.New<List>();
      list->form = List::Form::kView;
      list->source = value;
      list->size = static_cast<std::uint32_t>(value.size());
      return Val::Of(list);
    }
    case Kind::kMap: {
      Map* map = arena.New<Map>();
      map->form = Map::Form::kView;
      map->source = value;
      map->size = static_cast<std::uint32_t>(value.size());
      return Val::Of(map);
    }
  }
  return {};
}

std::string_view GoJSONType(const object::Value& value) {
  using Kind = object::Value::Kind;
  switch (value.kind()) {
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int64";
    case Kind::kDouble:
      return "float64";
    case Kind::kString:
      return "string";
    case Kind::kList:
      return "[]interface {}";
    default:
      return "map[string]interface {}";
  }
}

int URLBase64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

// Go's base64.URLEncoding, which strfmt reads format byte with; `bad` is the offset its error names.
std::optional<std::string> DecodeURLBase64(std::string_view text, std::size_t* bad) {
  std::string out;
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  const auto skip_newlines = [&](std::size_t at) {
    while (at < text.size() && (text[at] == '\n' || text[at] == '\r')) ++at;
    return at;
  };
  for (std::size_t i = skip_newlines(0); i < text.size(); i = skip_newlines(i + 1)) {
    const int digit = URLBase64Digit(text[i]);
    if (digit >= 0) {
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
      if (++digits % 4 != 0) continue;
      for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift);
      continue;
    }
    *bad = i;
    const std::size_t in_quantum = digits % 4;
    if (text[i] != '=' || in_quantum < 2) return std::nullopt;
    std::size_t next = skip_newlines(i + 1);
    if (in_quantum == 2) {
      *bad = next >= text.size() ? text.size() : next - 1;
      if (next >= text.size() || text[next] != '=') return std::nullopt;
      next = skip_newlines(next + 1);
    }
    *bad = next;
    if (next < text.size()) return std::nullopt;
    bits <<= in_quantum == 2 ? 12 : 6;
    out += static_cast<char>(bits >> 16);
    if (in_quantum == 3) out += static_cast<char>(bits >> 8);
    return out;
  }
  *bad = text.size() - digits % 4;
  if (digits % 4 != 0) return std::nullopt;
  return out;
}

Val StringFromObject(Arena& arena, const object::Value& value, const Shape& shape) {
  if (!value.is_string()) return ErrorIn(arena, "invalid data, expected string, got ", GoJSONType(value));
  const std::string_view text = value.as_string();
  const std::string_view format = shape.node ? shape.node.format() : std::string_view();
  if (format.empty()) return Val::String(text);
  if (format == "duration") {
    const auto parsed = ParseFormatDuration(text);
    if (!parsed.ok()) return ErrorIn(arena, "Invalid duration ", text, ": ", parsed.error());
    return Val::Duration(*parsed);
  }
  if (format == "date" || format == "date-time") {
    const auto parsed = format == "date" ? ParseFormatDate(text) : ParseFormatDateTime(text);
    if (!parsed.ok())
      return ErrorIn(arena, format == "date" ? "Invalid date formatted string " : "Invalid date-time formatted string ",
                     text, ": ", parsed.error());
    return *parsed;
  }
  if (format == "byte") {
    std::size_t bad = 0;
    const auto decoded = DecodeURLBase64(text, &bad);
    if (decoded) return Val::Bytes(arena.Copy(*decoded));
    return ErrorIn(arena, "Invalid byte formatted string ", text, ": illegal base64 data at input byte ",
                   std::to_string(bad));
  }
  return Val::String(text);
}

Val ViewMap(Arena& arena, const object::Value& value, Shape shape) {
  if (!value.is_map()) return Val::Error("invalid data, expected a map for the provided schema with type=object");
  if (shape.node && shape.node.embedded_resource()) shape.overlay = Shape::Overlay::kResource;
  Map* map = arena.New<Map>();
  map->form = Map::Form::kView;
  map->source = value;
  map->size = static_cast<std::uint32_t>(value.size());
  map->shape = shape;
  return Val::Of(map);
}

Val ViewList(Arena& arena, const object::Value& value, const Node& node) {
  if (!value.is_list()) return Val::Error("invalid data, expected an array for the provided schema with type=array");
  if (!node.items()) return Val::Error("invalid array type, expected Items with a non-empty Schema");
  List* list = arena.New<List>();
  list->form = List::Form::kView;
  list->typed = true;
  list->source = value;
  list->size = static_cast<std::uint32_t>(value.size());
  list->node = node;
  return Val::Of(list);
}

Val TypedFromObject(Arena& arena, const object::Value& value, const Shape& shape) {
  const Node node = shape.node;
  if (value.is_null()) {
    if (node && node.nullable()) return {};
    return Val::Error("invalid data, got null for schema with nullable=false");
  }
  if (shape.overlay == Shape::Overlay::kText) return StringFromObject(arena, value, shape);
  if (shape.overlay != Shape::Overlay::kNone) return ViewMap(arena, value, shape);
  if (node.int_or_string()) {
    if (value.is_string()) return Val::String(value.as_string());
    if (value.is_int()) return Val::Int(value.as_int());
    return Val::Error("invalid data, expected XIntOrString value to be either a string or integer");
  }
  switch (node.type()) {
    case NodeType::kObject:
      return ViewMap(arena, value, shape);
    case NodeType::kArray:
      return ViewList(arena, value, node);
    case NodeType::kString:
      return StringFromObject(arena, value, shape);
    case NodeType::kNumber:
      if (value.is_number()) return Val::Double(value.as_double());
      return ErrorIn(arena, "invalid data, expected float, got ", GoJSONType(value));
    case NodeType::kInteger:
      if (value.is_int()) return Val::Int(value.as_int());
      return ErrorIn(arena, "invalid data, expected int, got ", GoJSONType(value));
    case NodeType::kBoolean:
      if (value.is_bool()) return Val::Bool(value.as_bool());
      return ErrorIn(arena, "invalid data, expected bool, got ", GoJSONType(value));
    case NodeType::kNone:
      break;
  }
  if (node.preserve_unknown_fields()) return Val::OfPointer(Tag::kPreserved, arena.New<object::Value>(value));
  return Val::Error(
      "invalid type, expected object, array, number, integer, boolean or string, or no type with "
      "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ");
}

}  // namespace

Val FromObject(Arena& arena, const object::Value& value, const Shape& shape) {
  if (!shape.typed()) return DynFromObject(arena, value);
  return TypedFromObject(arena, value, shape);
}

object::Value ToObject(Arena& arena, const Val& value) {
  switch (value.tag()) {
    case Tag::kBool:
      return object::Value(value.bool_value());
    case Tag::kInt:
      return object::Value(value.int_value());
    case Tag::kUint:
      return object::Value(value.int_value());
    case Tag::kDouble:
      return object::Value(value.double_value());
    case Tag::kString:
    case Tag::kType:
      return object::Value(value.text());
    case Tag::kBytes:
      return object::Value::String(arena, base::Base64Encode(value.text()));
    case Tag::kDuration:
      return object::Value::String(arena, DurationText(value.int_value()));
    case Tag::kTimestamp:
      return object::Value::String(arena, TimestampText(value));
    case Tag::kList: {
      const List& list = value.list();
      if (list.form == List::Form::kView) return list.source;
      object::Value out = object::Value::List(arena, list.size);
      for (std::uint32_t i = 0; i < list.size; ++i) out.Append(arena, ToObject(arena, list.Get(arena, i)));
      return out;
    }
    case Tag::kMap: {
      const Map& map = value.map();
      if (map.form == Map::Form::kView) return map.source;
      object::Value out = object::Value::Map(arena, map.size);
      for (std::uint32_t i = 0; i < map.size; ++i) {
        const Val& key = map.entries[i].key;
        const std::string_view name = key.is_string() ? key.text() : arena.Copy(GoText(arena, key));
        out.Set(arena, name, ToObject(arena, map.entries[i].value));
      }
      return out;
    }
    case Tag::kOptional:
      return value.has_value() ? ToObject(arena, value.optional_value()) : object::Value();
    case Tag::kMessage: {
      object::Value out = object::Value::Map(arena, value.message().fields.size());
      for (const MessageField& field : value.message().fields) out.Set(arena, field.name, ToObject(arena, field.value));
      return out;
    }
    case Tag::kPreserved:
      return *static_cast<const object::Value*>(value.pointer());
    case Tag::kQuantity:
      return object::Value(value.quantity().text);
    default:
      return {};
  }
}

}  // namespace keelson::cel
