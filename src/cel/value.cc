#include "cel/value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/strings.h"
#include "cel/decl_type.h"
#include "cel/library_values.h"
#include "cel/temporal.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using schema::structural::ListType;
using schema::structural::NodeType;

std::uint64_t Mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return x;
}

std::uint64_t HashKey(const Val& key) {
  switch (key.tag()) {
    case Tag::kString:
    case Tag::kBytes:
    case Tag::kType: {
      std::uint64_t hash = 0xcbf29ce484222325ULL ^ static_cast<std::uint64_t>(key.tag());
      for (const char c : key.text()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
      return Mix(hash);
    }
    default:
      return Mix(key.uint_value() + static_cast<std::uint64_t>(key.tag()) * 0x9E3779B97F4A7C15ULL);
  }
}

}  // namespace

Val Val::Double(double value) { return Val(Tag::kDouble, 0, std::bit_cast<std::uint64_t>(value)); }
double Val::double_value() const { return std::bit_cast<double>(bits_); }

Val Val::OptionalOf(Arena& arena, Val value) { return Val(Tag::kOptional, arena.New<Val>(value)); }

Val NewQuantity(Arena& arena, const object::Quantity& quantity, bool computed) {
  auto* place = static_cast<QuantityObject*>(arena.Allocate(sizeof(QuantityObject), alignof(QuantityObject)));
  const std::string text = quantity.ToString();
  object::Quantity plain = quantity;
  plain.Negate();  // Drops the text it was parsed from.
  plain.Negate();
  new (place) QuantityObject{object::Quantity(plain), arena.Copy(text)};
  return Val::OfPointer(Tag::kQuantity, place, computed ? 1 : 0);
}

std::optional<Val> ParseQuantityVal(Arena& arena, std::string_view text, std::string_view* error) {
  auto parsed = object::Quantity::Parse(text);
  if (!parsed.ok()) {
    *error = parsed.error();
    return std::nullopt;
  }
  return NewQuantity(arena, *parsed);
}

List* NewList(Arena& arena, std::uint32_t capacity) {
  List* list = arena.New<List>();
  list->items = capacity == 0 ? nullptr : arena.NewArray<Val>(capacity);
  list->capacity = capacity;
  return list;
}

Val NewListOf(Arena& arena, std::span<const Val> items) {
  List* list = NewList(arena, static_cast<std::uint32_t>(items.size()));
  std::copy(items.begin(), items.end(), list->items);
  list->size = static_cast<std::uint32_t>(items.size());
  return Val::Of(list);
}

Val NewStringList(Arena& arena, std::span<const std::string_view> texts) {
  List* list = NewList(arena, static_cast<std::uint32_t>(texts.size()));
  for (const std::string_view text : texts) list->items[list->size++] = Val::String(text);
  return Val::Of(list);
}

void Append(Arena& arena, List& list, const Val& item) {
  if (list.size == list.capacity) {
    const std::uint32_t capacity = std::max<std::uint32_t>(8, list.capacity * 2);
    Val* items = arena.NewArray<Val>(capacity);
    std::copy_n(list.items, list.size, items);
    list.items = items;
    list.capacity = capacity;
  }
  list.items[list.size++] = item;
}

Map* NewMap(Arena& arena, std::uint32_t capacity) {
  Map* map = arena.New<Map>();
  map->entries = capacity == 0 ? nullptr : arena.NewArray<MapEntry>(capacity);
  map->capacity = capacity;
  return map;
}

Val List::Get(Arena& arena, std::uint32_t index) const {
  const List* at = this;
  while (at->form == Form::kConcat) {
    if (index < at->previous->size) {
      at = at->previous;
    } else {
      index -= at->previous->size;
      at = at->next;
    }
  }
  if (at->form == Form::kItems) return at->items[index];
  const object::Value item = at->source[static_cast<std::size_t>(index)];
  return FromObject(arena, item, Shape{.node = at->typed ? at->node.items() : Node()});
}

bool IsHashable(const Val& value) { return !value.is(Tag::kBytes); }

bool SameKey(const Val& a, const Val& b) {
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case Tag::kString:
    case Tag::kType:
      return a.text() == b.text();
    case Tag::kDouble:
      return a.double_value() == b.double_value();
    case Tag::kTimestamp:
      return a.int_value() == b.int_value() && a.nanos() == b.nanos() && a.aux() == b.aux();
    default:
      return a.uint_value() == b.uint_value();
  }
}

std::int64_t Map::IndexOf(const Val& key) const {
  if (table == nullptr) {
    for (std::uint32_t i = 0; i < size; ++i) {
      if (SameKey(entries[i].key, key)) return i;
    }
    return -1;
  }
  for (std::uint64_t at = HashKey(key) & table_mask; table[at] != 0; at = (at + 1) & table_mask) {
    if (SameKey(entries[table[at] - 1].key, key)) return table[at] - 1;
  }
  return -1;
}

void Map::Set(Arena& arena, const Val& key, const Val& value) {
  if (const std::int64_t at = IndexOf(key); at >= 0) {
    entries[at].value = value;
    return;
  }
  if (size == capacity) {
    const std::uint32_t grown = std::max<std::uint32_t>(kLinearMax, capacity * 2);
    MapEntry* copy = arena.NewArray<MapEntry>(grown);
    std::copy_n(entries, size, copy);
    entries = copy;
    capacity = grown;
    table = nullptr;
  }
  entries[size++] = {key, value};
  if (size <= kLinearMax) return;
  const auto add = [this](std::uint32_t index) {
    std::uint64_t at = HashKey(entries[index].key) & table_mask;
    while (table[at] != 0) at = (at + 1) & table_mask;
    table[at] = index + 1;
  };
  if (table != nullptr) {
    add(size - 1);
    return;
  }
  const std::uint32_t buckets = std::bit_ceil(capacity * 2);
  table = arena.NewArray<std::uint32_t>(buckets);
  std::fill_n(table, buckets, 0u);
  table_mask = buckets - 1;
  for (std::uint32_t i = 0; i < size; ++i) add(i);
}

bool Map::FindExact(const Val& key, Val* out) const {
  const std::int64_t at = IndexOf(key);
  if (at >= 0) *out = entries[at].value;
  return at >= 0;
}

void Map::Erase(const Val& key) {
  const std::int64_t at = IndexOf(key);
  if (at < 0) return;
  std::copy(entries + at + 1, entries + size, entries + at);
  --size;
  table = nullptr;  // Optional entries of a literal only: small, and rebuilt by the next Set that needs it.
}

namespace {

// The schema of a member of a typed map; nothing where the member is not visible.
std::optional<Shape> MemberShape(const Shape& shape, std::string_view name) {
  using Overlay = Shape::Overlay;
  if (shape.overlay == Overlay::kMetadata) {
    if (name == "name" || name == "generateName") return Shape{.overlay = Overlay::kText};
    return std::nullopt;
  }
  if (shape.overlay == Overlay::kResource) {
    if (name == "apiVersion" || name == "kind") return Shape{.overlay = Overlay::kText};
    if (name == "metadata") return Shape{.overlay = Overlay::kMetadata};
  }
  const Node node = shape.node;
  if (node.property_count() > 0 || shape.overlay == Overlay::kResource) {
    const Node property = node.Property(name);
    if (!property) return std::nullopt;
    return Shape{.node = property};
  }
  if (const Node values = node.additional_properties()) return Shape{.node = values};
  return std::nullopt;
}

bool IsObjectShape(const Shape& shape) {
  return shape.overlay == Shape::Overlay::kResource || shape.overlay == Shape::Overlay::kMetadata ||
         (shape.node && shape.node.property_count() > 0);
}

bool FindInView(const Map& map, Arena& arena, const Val& key, Val* out) {
  if (!map.shape.typed()) {
    if (!key.is_string()) return false;
    const object::Value* found = map.source.Find(key.text());
    if (found == nullptr) return false;
    *out = FromObject(arena, *found);
    return true;
  }
  if (!key.is_string()) {
    *out = NoSuchOverload(key);
    return true;
  }
  std::string_view name = key.text();
  const bool object = IsObjectShape(map.shape);
  if (object) {
    const auto unescaped = UnescapeName(arena, name);
    if (!unescaped) return false;
    name = *unescaped;
  }
  const object::Value* found = map.source.Find(name);
  if (found == nullptr || (object && found->is_null())) return false;
  const auto shape = MemberShape(map.shape, name);
  if (!shape) return false;
  *out = FromObject(arena, *found, *shape);
  return true;
}

std::optional<std::int64_t> LosslessInt(double value) {
  if (!(value > -9223372036854775808.0 && value < 9223372036854775807.0)) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(value);
  if (static_cast<double>(whole) != value) return std::nullopt;
  return whole;
}

std::optional<std::uint64_t> LosslessUint(double value) {
  if (!(value >= 0 && value < 18446744073709551616.0)) return std::nullopt;
  const auto whole = static_cast<std::uint64_t>(value);
  if (static_cast<double>(whole) != value) return std::nullopt;
  return whole;
}

}  // namespace

bool Map::Find(Arena& arena, const Val& key, Val* out) const {
  if (form == Form::kView) return FindInView(*this, arena, key, out);
  if (form == Form::kLazy) {
    if (!key.is_string()) {
      *out = NoSuchOverload(key);
      return true;
    }
    const auto name = UnescapeName(arena, key.text());
    return name && lazy->FindMember(arena, *name, out);
  }
  if (size == 0) return false;
  const auto at = [&](const Val& candidate) {
    const std::int64_t index = IndexOf(candidate);
    if (index >= 0) *out = entries[index].value;
    return index >= 0;
  };
  if (at(key)) return true;
  if (unescapes && key.is_string()) {
    const auto name = UnescapeName(arena, key.text());
    return name && at(Val::String(*name));
  }
  if (key.is(Tag::kDouble)) {
    if (const auto whole = LosslessInt(key.double_value()); whole && at(Val::Int(*whole))) return true;
    if (const auto whole = LosslessUint(key.double_value())) return at(Val::Uint(*whole));
  } else if (key.is(Tag::kInt)) {
    return key.int_value() >= 0 && at(Val::Uint(key.uint_value()));
  } else if (key.is(Tag::kUint)) {
    return key.uint_value() <= INT64_MAX && at(Val::Int(key.int_value()));
  }
  return false;
}

std::optional<Val> Map::KeyAt(Arena& arena, std::uint32_t index) const {
  if (form == Form::kEntries) return entries[index].key;
  if (form == Form::kLazy) {
    Val value;
    lazy->FindMember(arena, lazy->MemberName(index), &value);
    return value;
  }
  const std::string_view name = source.members()[index].key;
  if (!shape.typed()) return Val::String(name);
  if (!MemberShape(shape, name)) return std::nullopt;
  if (IsObjectShape(shape)) return Val::String(EscapeName(arena, name));
  return Val::String(name);
}

Val Map::ValueAt(Arena& arena, std::uint32_t index) const {
  if (form == Form::kEntries) return entries[index].value;
  if (form == Form::kLazy) return NoSuchOverload();  // The reference looks values up by values.
  const object::Member& member = source.members()[index];
  if (!shape.typed()) return FromObject(arena, member.value);
  const auto below = MemberShape(shape, member.key);
  if (!below) return ErrorIn(arena, "no such key: ", member.key);
  return FromObject(arena, member.value, *below);
}

namespace {

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

Val ErrorIn(Arena& arena, std::string_view message) { return Val::Error(arena.Copy(message)); }

Val ErrorIn(Arena& arena, std::string_view a, std::string_view b, std::string_view c, std::string_view d) {
  const std::size_t size = a.size() + b.size() + c.size() + d.size();
  char* text = static_cast<char*>(arena.Allocate(size, 1));
  char* at = text;
  for (const std::string_view piece : {a, b, c, d}) {
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  return Val::Error(std::string_view(text, size));
}

std::string_view TypeNameOf(const Val& value) {
  switch (value.tag()) {
    case Tag::kError:
      return "error";
    case Tag::kNull:
      return "null_type";
    case Tag::kBool:
      return "bool";
    case Tag::kInt:
      return "int";
    case Tag::kUint:
      return "uint";
    case Tag::kDouble:
      return "double";
    case Tag::kString:
      return "string";
    case Tag::kBytes:
      return "bytes";
    case Tag::kDuration:
      return "google.protobuf.Duration";
    case Tag::kTimestamp:
      return "google.protobuf.Timestamp";
    case Tag::kType:
      return "type";
    case Tag::kList:
      return "list";
    case Tag::kMap:
      return value.map().form == Map::Form::kLazy ? value.map().lazy->type_name() : "map";
    case Tag::kOptional:
      return "optional_type";
    case Tag::kPreserved:
      return "unknown";
    case Tag::kMessage:
      return value.message().type;
    case Tag::kQuantity:
      return "kubernetes.Quantity";
    case Tag::kURL:
      return "kubernetes.URL";
    case Tag::kIP:
      return "net.IP";
    case Tag::kCIDR:
      return "net.CIDR";
    case Tag::kSemver:
      return "kubernetes.Semver";
    case Tag::kFormat:
      return "kubernetes.NamedFormat";
    case Tag::kAuthorizer:
      return "kubernetes.authorization.Authorizer";
    case Tag::kPathCheck:
      return "kubernetes.authorization.PathCheck";
    case Tag::kGroupCheck:
      return "kubernetes.authorization.GroupCheck";
    case Tag::kResourceCheck:
      return "kubernetes.authorization.ResourceCheck";
    case Tag::kDecision:
      return "kubernetes.authorization.Decision";
  }
  return {};
}

std::string_view GoTypeOf(const Val& value) {
  switch (value.tag()) {
    case Tag::kError:
      return "*types.Err";
    case Tag::kNull:
      return "types.Null";
    case Tag::kBool:
      return "types.Bool";
    case Tag::kInt:
      return "types.Int";
    case Tag::kUint:
      return "types.Uint";
    case Tag::kDouble:
      return "types.Double";
    case Tag::kString:
      return "types.String";
    case Tag::kBytes:
      return "types.Bytes";
    case Tag::kDuration:
      return "types.Duration";
    case Tag::kTimestamp:
      return "types.Timestamp";
    case Tag::kType:
      return "*types.Type";
    case Tag::kList:
      if (value.list().typed) {
        if (value.list().node.list_type() == ListType::kSet) return "*common.unstructuredSetList";
        if (value.list().node.list_type() == ListType::kMap) return "*common.unstructuredMapList";
        return "*common.unstructuredList";
      }
      return value.list().form == List::Form::kConcat ? "*types.concatList" : "*types.baseList";
    case Tag::kMap:
      if (value.map().form == Map::Form::kLazy) return "*lazy.MapValue";
      return value.map().shape.typed() ? "*common.unstructuredMap" : "*types.baseMap";
    case Tag::kOptional:
      return "*types.Optional";
    case Tag::kPreserved:
      return "*common.unknownPreserved";
    case Tag::kMessage:
      return "*dynamic.ObjectVal";
    case Tag::kQuantity:
      return value.aux() != 0 ? "*cel.Quantity" : "cel.Quantity";
    case Tag::kURL:
      return "cel.URL";
    case Tag::kIP:
      return "cel.IP";
    case Tag::kCIDR:
      return "cel.CIDR";
    case Tag::kSemver:
      return "cel.Semver";
    case Tag::kFormat:
      return "cel.Format";
    case Tag::kAuthorizer:
      return "library.authorizerVal";
    case Tag::kPathCheck:
      return "library.pathCheckVal";
    case Tag::kGroupCheck:
      return "library.groupCheckVal";
    case Tag::kResourceCheck:
      return "library.resourceCheckVal";
    case Tag::kDecision:
      return "library.decisionVal";
  }
  return {};
}

std::string GoText(Arena& arena, const Val& value) {
  switch (value.tag()) {
    case Tag::kNull:
      return "0";
    case Tag::kBool:
      return value.bool_value() ? "true" : "false";
    case Tag::kInt:
      return std::to_string(value.int_value());
    case Tag::kUint:
      return std::to_string(value.uint_value());
    case Tag::kDouble:
      return object::GoDouble(value.double_value());
    case Tag::kString:
    case Tag::kType:
    case Tag::kError:
      return std::string(value.text());
    case Tag::kBytes: {
      std::string out = "[";
      for (const char c : value.text()) {
        if (out.size() > 1) out += ' ';
        out += std::to_string(static_cast<unsigned char>(c));
      }
      return out + "]";
    }
    case Tag::kDuration:
      return GoDurationText(value.int_value());
    case Tag::kTimestamp:
      return GoTimeText(value);
    case Tag::kList: {
      std::string out = "[";
      for (std::uint32_t i = 0; i < value.list().size; ++i) {
        if (i > 0) out += ", ";
        out += GoText(arena, value.list().Get(arena, i));
      }
      return out + "]";
    }
    case Tag::kMap: {
      std::string out = "{";
      for (std::uint32_t i = 0; i < value.map().size; ++i) {
        const auto key = value.map().KeyAt(arena, i);
        if (!key) continue;
        if (out.size() > 1) out += ", ";
        out += GoText(arena, *key) + ": " + GoText(arena, value.map().ValueAt(arena, i));
      }
      return out + "}";
    }
    case Tag::kOptional:
      return value.has_value() ? "optional(" + GoText(arena, value.optional_value()) + ")" : "optional.none()";
    case Tag::kQuantity:
      return std::string(value.quantity().text);
    case Tag::kURL:
      return std::string(value.url().text);
    case Tag::kIP:
      return value.ip().ToString();
    case Tag::kCIDR:
      return value.cidr().ToString();
    case Tag::kSemver:
      return SemverText(value.semver());
    default:
      return std::string(TypeNameOf(value));
  }
}

bool IsAssignableRuntimeType(Arena& arena, const Type& type, const Val& value) {
  if (type.is_dyn()) return true;
  if (type.wrapper && value.is_null()) return true;
  if (type.kind == Kind::kBool && value.is_bool()) return true;
  if (type.kind == Kind::kString && value.is_string()) return true;
  if (!type.is_dyn() && type.name != TypeNameOf(value)) return false;
  if (type.kind == Kind::kList && value.is_list()) {
    if (value.list().size == 0 || type.param(0).is_dyn()) return true;
    return IsAssignableRuntimeType(arena, type.param(0), value.list().Get(arena, 0));
  }
  if (type.kind == Kind::kMap && value.is_map()) {
    const Map& map = value.map();
    if (map.size == 0 || (type.param(0).is_dyn() && type.param(1).is_dyn())) return true;
    const auto key = map.KeyAt(arena, 0);
    if (!key) return true;
    return IsAssignableRuntimeType(arena, type.param(0), *key) &&
           IsAssignableRuntimeType(arena, type.param(1), map.ValueAt(arena, 0));
  }
  return true;
}

std::size_t RuneCount(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
    } else {
      i += static_cast<std::size_t>(base::DecodeRune(text.substr(i)).length);
    }
    ++count;
  }
  return count;
}

std::optional<std::uint64_t> SizeOf(const Val& value) {
  switch (value.tag()) {
    case Tag::kString:
      return RuneCount(value.text());
    case Tag::kBytes:
      return value.text().size();
    case Tag::kList:
      return value.list().size;
    case Tag::kMap:
      return value.map().size;
    case Tag::kIP:
      return static_cast<std::uint64_t>(value.ip().BitLen() / 8);
    case Tag::kCIDR:
      return static_cast<std::uint64_t>((value.cidr().bits + 7) / 8);
    default:
      return std::nullopt;
  }
}

bool IsZeroValue(const Val& value) {
  switch (value.tag()) {
    case Tag::kNull:
      return true;
    case Tag::kBool:
    case Tag::kInt:
    case Tag::kUint:
    case Tag::kDuration:
      return value.uint_value() == 0;
    case Tag::kDouble:
      return value.double_value() == 0;
    case Tag::kString:
    case Tag::kBytes:
      return value.text().empty();
    case Tag::kTimestamp:
      return value.int_value() == -62135596800 && value.nanos() == 0;
    case Tag::kList:
      return !value.list().typed && value.list().size == 0;  // Lists seen through a schema are not Zeroers.
    case Tag::kMap:
      return !value.map().shape.typed() && value.map().size == 0;
    default:
      return false;
  }
}

std::uint16_t TraitsOf(const Val& value) {
  switch (value.tag()) {
    case Tag::kBool:
      return kComparer | kNegator;
    case Tag::kBytes:
      return kAdder | kComparer | kSizer;
    case Tag::kDouble:
      return kAdder | kComparer | kDivider | kMultiplier | kNegator | kSubtractor;
    case Tag::kDuration:
      return kAdder | kComparer | kNegator | kReceiver | kSubtractor;
    case Tag::kInt:
      return kAdder | kComparer | kDivider | kModder | kMultiplier | kNegator | kSubtractor;
    case Tag::kUint:
      return kAdder | kComparer | kDivider | kModder | kMultiplier | kSubtractor;
    case Tag::kString:
      return kAdder | kComparer | kMatcher | kReceiver | kSizer;
    case Tag::kTimestamp:
      return kAdder | kComparer | kReceiver | kSubtractor;
    case Tag::kList:
      return kAdder | kContainer | kIterable | kSizer | kLister;
    case Tag::kMap:
      if (value.map().form == Map::Form::kLazy) return kIterable;
      return kContainer | kIterable | kSizer;
    default:
      return 0;
  }
}

std::string_view EscapeName(Arena& arena, std::string_view name) {
  const auto escaped = EscapeName(name);
  if (!escaped || *escaped == name) return name;
  return arena.Copy(*escaped);
}

std::optional<std::string_view> UnescapeName(Arena& arena, std::string_view name) {
  if (name.find("__") == std::string_view::npos) return name;
  const auto unescaped = UnescapeName(name);
  if (!unescaped) return std::nullopt;
  return arena.Copy(*unescaped);
}

}  // namespace keelson::cel
