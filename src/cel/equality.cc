// Equality and order of CEL values, as cel-go's Equal and Compare methods and as apiserver's values over schemas.
#include <algorithm>
#include <cmath>

#include "cel/library_values.h"
#include "cel/operators.h"
#include "cel/value.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using schema::structural::ListType;

int CompareDoubles(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

int CompareDoubleInt(double a, std::int64_t b) {
  if (a < -9223372036854775808.0) return -1;
  if (a > 9223372036854775807.0) return 1;
  return CompareDoubles(a, static_cast<double>(b));
}

int CompareDoubleUint(double a, std::uint64_t b) {
  if (a < 0) return -1;
  if (a > 18446744073709551615.0) return 1;
  return CompareDoubles(a, static_cast<double>(b));
}

int CompareIntUint(std::int64_t a, std::uint64_t b) {
  if (a < 0 || b > INT64_MAX) return -1;
  const auto other = static_cast<std::int64_t>(b);
  return a < other ? -1 : a > other ? 1 : 0;
}

// Numbers of any kind; no NaN.
std::optional<int> CompareNumbers(const Val& a, const Val& b) {
  switch (a.tag()) {
    case Tag::kInt:
      if (b.is(Tag::kInt)) return a.int_value() < b.int_value() ? -1 : a.int_value() > b.int_value() ? 1 : 0;
      if (b.is(Tag::kUint)) return CompareIntUint(a.int_value(), b.uint_value());
      if (b.is(Tag::kDouble)) return -CompareDoubleInt(b.double_value(), a.int_value());
      return std::nullopt;
    case Tag::kUint:
      if (b.is(Tag::kUint)) return a.uint_value() < b.uint_value() ? -1 : a.uint_value() > b.uint_value() ? 1 : 0;
      if (b.is(Tag::kInt)) return -CompareIntUint(b.int_value(), a.uint_value());
      if (b.is(Tag::kDouble)) return -CompareDoubleUint(b.double_value(), a.uint_value());
      return std::nullopt;
    case Tag::kDouble:
      if (b.is(Tag::kDouble)) return CompareDoubles(a.double_value(), b.double_value());
      if (b.is(Tag::kInt)) return CompareDoubleInt(a.double_value(), b.int_value());
      if (b.is(Tag::kUint)) return CompareDoubleUint(a.double_value(), b.uint_value());
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool IsNaN(const Val& value) { return value.is(Tag::kDouble) && std::isnan(value.double_value()); }

int Order(int order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }

Val EqualLists(Arena& arena, const List& a, const List& b) {
  if (a.size != b.size) return Val::Bool(false);
  Val error;
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const Val equal = Equal(arena, a.Get(arena, i), b.Get(arena, i));
    if (equal.is_false()) return equal;
    if (a.form == List::Form::kConcat && equal.is_error() && !error.is_error()) error = equal;
  }
  return error.is_error() ? error : Val::Bool(true);
}

Val EqualMaps(Arena& arena, const Map& a, const Map& b) {
  if (a.size != b.size) return Val::Bool(false);
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const auto key = a.KeyAt(arena, i);
    Val other;
    if (!key || !b.Find(arena, *key, &other)) return Val::Bool(false);
    if (Equal(arena, a.ValueAt(arena, i), other).is_false()) return Val::Bool(false);
  }
  return Val::Bool(true);
}

Val EqualTypedMaps(Arena& arena, const Map& a, const Val& other) {
  if (!other.is_map()) return NoSuchOverload(other);
  const Map& b = other.map();
  if (a.size != b.size) return Val::Bool(false);
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const object::Member& member = a.source.members()[i];
    if (!a.KeyAt(arena, i)) {  // no schema: compared as it is
      if (b.form != Map::Form::kView || !b.shape.typed()) return NoSuchOverload(other);
      const object::Value* raw = b.source.Find(member.key);
      if (raw != nullptr && !(*raw == member.value)) return Val::Bool(false);
      continue;
    }
    Val mine, theirs;
    const bool found = a.Find(arena, Val::String(member.key), &mine);
    if (found != b.Find(arena, Val::String(member.key), &theirs)) return Val::Bool(false);
    if (!found) continue;
    const Val equal = EqualMethod(arena, mine, theirs);
    if (!equal.is_true()) return equal;
  }
  return Val::Bool(true);
}

}  // namespace

Val NativeItem(Arena& arena, const List& list, std::uint32_t index) {
  if (list.form == List::Form::kView) return FromObject(arena, list.source[static_cast<std::size_t>(index)]);
  return list.Get(arena, index);
}

Val ListMapKey(Arena& arena, const Node& node, const Val& item) {
  // Only views over objects are Go maps by string; anything else is a key that equals nothing.
  if (!item.is_map() || item.map().form != Map::Form::kView) return Val::OfPointer(Tag::kOptional, arena.New<Val>());
  const auto part = [&](std::size_t i) { return item.map().source[EscapeName(arena, node.list_map_key(i))]; };
  if (node.list_map_key_count() == 1) return FromObject(arena, part(0));
  std::string text;
  for (std::size_t i = 0; i < node.list_map_key_count(); ++i) {
    object::AppendJSON(text, part(i));
    text += '\0';
  }
  return Val::String(arena.Copy(text));
}

namespace {

// Set semantics: every item of `b` is, as a Go value, among the items of `a`.
Val EqualSets(Arena& arena, const List& a, const List& b) {
  Map* seen = NewMap(arena, a.size);
  for (std::uint32_t i = 0; i < a.size; ++i) seen->Set(arena, NativeItem(arena, a, i), Val::Bool(true));
  for (std::uint32_t i = 0; i < b.size; ++i) {
    if (!seen->Has(b.Get(arena, i))) return Val::Bool(false);
  }
  return Val::Bool(true);
}

Val EqualListMaps(Arena& arena, const List& a, const List& b) {
  Map* by_key = NewMap(arena, a.size);
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const Val item = a.Get(arena, i);
    by_key->Set(arena, ListMapKey(arena, a.node, item), item);
  }
  for (std::uint32_t i = 0; i < b.size; ++i) {
    const Val item = b.Get(arena, i);
    Val mine;
    if (!by_key->FindExact(ListMapKey(arena, a.node, item), &mine)) return Val::Bool(false);
    const Val equal = EqualMethod(arena, mine, item);
    if (!equal.is_true()) return equal;
  }
  return Val::Bool(true);
}

Val EqualTypedLists(Arena& arena, const List& a, const Val& other) {
  if (!other.is_list()) return NoSuchOverload(other);
  const List& b = other.list();
  if (a.size != b.size) return Val::Bool(false);
  if (a.node.list_type() == ListType::kSet) return EqualSets(arena, a, b);
  if (a.node.list_type() == ListType::kMap) return EqualListMaps(arena, a, b);
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const Val equal = EqualMethod(arena, a.Get(arena, i), b.Get(arena, i));
    if (!equal.is_true()) return equal;
  }
  return Val::Bool(true);
}

Val EqualMessages(Arena& arena, const Val& a, const Val& b) {
  if (!b.is(Tag::kMessage) || a.message().type != b.message().type) return Val::Bool(false);
  const auto& left = a.message().fields;
  const auto& right = b.message().fields;
  if (left.size() != right.size()) return Val::Bool(false);
  for (const MessageField& field : left) {
    const auto same = std::ranges::find(right, field.name, &MessageField::name);
    if (same == right.end()) return Val::Bool(false);
    const Val equal = Equal(arena, field.value, same->value);
    if (!equal.is_true()) return equal;
  }
  return Val::Bool(true);
}

// Values of the Kubernetes libraries refuse to be compared with anything else.
Val EqualOpaque(const Val& a, const Val& b) {
  if (a.tag() != b.tag()) return NoSuchOverload(b);
  switch (a.tag()) {
    case Tag::kQuantity:
      if (b.aux() != 0) return NoSuchOverload();
      return Val::Bool(a.quantity().value == b.quantity().value);
    case Tag::kURL:
      return Val::Bool(a.url().text == b.url().text);
    case Tag::kIP:
      return Val::Bool(a.ip() == b.ip());
    case Tag::kCIDR:
      return Val::Bool(a.cidr() == b.cidr());
    case Tag::kSemver:
      return Val::Bool(CompareSemver(a.semver(), b.semver()) == 0);
    case Tag::kFormat:
      return Val::Bool(a.format().name == b.format().name);
    default:
      return NoSuchOverload();
  }
}

}  // namespace

Val EqualMethod(Arena& arena, const Val& a, const Val& b) {
  switch (a.tag()) {
    case Tag::kError:
      return a;
    case Tag::kNull:
      return Val::Bool(b.is_null());
    case Tag::kBool:
    case Tag::kDuration:
      return Val::Bool(a.tag() == b.tag() && a.uint_value() == b.uint_value());
    case Tag::kInt:
    case Tag::kUint:
    case Tag::kDouble: {
      if (IsNaN(a) || IsNaN(b)) return Val::Bool(false);
      const auto order = CompareNumbers(a, b);
      return Val::Bool(order && *order == 0);
    }
    case Tag::kString:
    case Tag::kBytes:
    case Tag::kType:
      return Val::Bool(a.tag() == b.tag() && a.text() == b.text());
    case Tag::kTimestamp:
      return Val::Bool(b.is(Tag::kTimestamp) && a.int_value() == b.int_value() && a.nanos() == b.nanos());
    case Tag::kList:
      if (a.list().typed) return EqualTypedLists(arena, a.list(), b);
      if (!b.is_list()) return Val::Bool(false);
      return EqualLists(arena, a.list(), b.list());
    case Tag::kMap:
      if (a.map().form == Map::Form::kLazy) {
        const bool lazy = b.is_map() && b.map().form == Map::Form::kLazy;
        return lazy ? Val::Bool(a.map().lazy == b.map().lazy) : NoSuchOverload(b);
      }
      if (a.map().shape.typed()) return EqualTypedMaps(arena, a.map(), b);
      if (!b.is_map()) return Val::Bool(false);
      return EqualMaps(arena, a.map(), b.map());
    case Tag::kOptional:
      if (!b.is_optional() || a.has_value() != b.has_value()) return Val::Bool(false);
      if (!a.has_value()) return Val::Bool(true);
      return EqualMethod(arena, a.optional_value(), b.optional_value());
    case Tag::kPreserved:
      return Val::Bool(ToObject(arena, a) == ToObject(arena, b));
    case Tag::kMessage:
      return EqualMessages(arena, a, b);
    default:
      return EqualOpaque(a, b);
  }
}

Val Equal(Arena& arena, const Val& a, const Val& b) {
  if (a.is_null() || b.is_null()) return Val::Bool(a.is_null() == b.is_null());
  return EqualMethod(arena, a, b);
}

Val Compare(const Val& a, const Val& b) {
  switch (a.tag()) {
    case Tag::kInt:
    case Tag::kUint:
    case Tag::kDouble: {
      if (IsNaN(a) || IsNaN(b)) return Val::Error("NaN values cannot be ordered");
      const auto order = CompareNumbers(a, b);
      return order ? Val::Int(*order) : NoSuchOverload(b);
    }
    case Tag::kBool:
    case Tag::kDuration:
      if (a.tag() != b.tag()) return NoSuchOverload(b);
      return Val::Int(a.int_value() < b.int_value() ? -1 : a.int_value() > b.int_value() ? 1 : 0);
    case Tag::kString:
    case Tag::kBytes:
      if (a.tag() != b.tag()) return NoSuchOverload(b);
      return Val::Int(Order(a.text().compare(b.text())));
    case Tag::kTimestamp:
      if (!b.is(Tag::kTimestamp)) return NoSuchOverload(b);
      if (a.int_value() != b.int_value()) return Val::Int(a.int_value() < b.int_value() ? -1 : 1);
      return Val::Int(a.nanos() < b.nanos() ? -1 : a.nanos() > b.nanos() ? 1 : 0);
    default:
      return NoSuchOverload(b);
  }
}

}  // namespace keelson::cel
