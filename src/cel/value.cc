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
