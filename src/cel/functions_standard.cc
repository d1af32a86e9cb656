// Operators, conversions and time functions of the CEL standard library.
#include <charconv>
#include <cmath>

#include "base/go_regex.h"
#include "base/strings.h"
#include "cel/functions.h"
#include "cel/operators.h"
#include "object/duration.h"
#include "object/json_text.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using Args = std::span<const Val>;
using schema::structural::ListType;

constexpr std::string_view kIntOverflow = "integer overflow";
constexpr std::string_view kUintOverflow = "unsigned integer overflow";

Val ConcatLists(Arena& arena, const List& a, const Val& b) {
  if (a.size == 0) return b;
  if (b.list().size == 0) return Val::Of(&a);
  List* list = arena.New<List>();
  list->form = List::Form::kConcat;
  list->size = a.size + b.list().size;
  list->previous = &a;
  list->next = &b.list();
  return Val::Of(list);
}

// The left operand's schema decides: sets take only what is new, list-maps replace items of the same key.
Val ConcatTyped(Arena& arena, const List& a, const List& b) {
  List* out = NewList(arena, a.size + b.size);
  out->typed = true;
  out->node = a.node;
  for (std::uint32_t i = 0; i < a.size; ++i) out->items[out->size++] = a.Get(arena, i);
  const ListType type = a.node.list_type();
  if (type != ListType::kSet && type != ListType::kMap) {
    for (std::uint32_t i = 0; i < b.size; ++i) out->items[out->size++] = b.Get(arena, i);
    return Val::Of(out);
  }
  Map* places = NewMap(arena, a.size + b.size);
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const Val key = type == ListType::kSet ? NativeItem(arena, a, i) : ListMapKey(arena, a.node, out->items[i]);
    places->Set(arena, key, Val::Int(i));
  }
  for (std::uint32_t i = 0; i < b.size; ++i) {
    const Val item = b.Get(arena, i);
    const Val key = type == ListType::kSet ? item : ListMapKey(arena, a.node, item);
    Val place;
    if (!places->FindExact(key, &place)) {
      if (type == ListType::kSet) places->Set(arena, key, Val::Int(out->size));
      out->items[out->size++] = item;
    } else if (type == ListType::kMap) {
      out->items[place.int_value()] = item;
    }
  }
  return Val::Of(out);
}

Val AddToList(Arena& arena, const Val& a, const Val& b) {
  if (!b.is_list()) return NoSuchOverload(b);
  const List& list = a.list();
  if (list.growing) {
    auto& growing = const_cast<List&>(list);  // The accumulator belongs to its comprehension until that ends.
    const List& more = b.list();
    const std::uint32_t size = more.size;
    for (std::uint32_t i = 0; i < size; ++i) Append(arena, growing, more.Get(arena, i));
    return a;
  }
  if (list.typed) return ConcatTyped(arena, list, b.list());
  return ConcatLists(arena, list, b);
}

Val AddDuration(const Val& a, const Val& b) {
  if (b.is(Tag::kTimestamp)) return AddTimestampDuration(b, a.int_value());
  if (!b.is(Tag::kDuration)) return NoSuchOverload(b);
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.int_value(), b.int_value(), &sum)) return Val::Error(kIntOverflow);
  return Val::Duration(sum);
}

}  // namespace

Val Add(Arena& arena, const Val& a, const Val& b) {
  switch (a.tag()) {
    case Tag::kInt: {
      if (!b.is(Tag::kInt)) return NoSuchOverload(b);
      std::int64_t sum = 0;
      if (__builtin_add_overflow(a.int_value(), b.int_value(), &sum)) return Val::Error(kIntOverflow);
      return Val::Int(sum);
    }
    case Tag::kUint: {
      if (!b.is(Tag::kUint)) return NoSuchOverload(b);
      std::uint64_t sum = 0;
      if (__builtin_add_overflow(a.uint_value(), b.uint_value(), &sum)) return Val::Error(kUintOverflow);
      return Val::Uint(sum);
    }
    case Tag::kDouble:
      if (!b.is(Tag::kDouble)) return NoSuchOverload(b);
      return Val::Double(a.double_value() + b.double_value());
    case Tag::kString:
      if (!b.is_string()) return NoSuchOverload(b);
      return Val::String(arena.Concat(a.text(), b.text()));
    case Tag::kBytes:
      if (!b.is(Tag::kBytes)) return NoSuchOverload(b);
      return Val::Bytes(arena.Concat(a.text(), b.text()));
    case Tag::kDuration:
      return AddDuration(a, b);
    case Tag::kTimestamp:
      if (!b.is(Tag::kDuration)) return NoSuchOverload(b);
      return AddTimestampDuration(a, b.int_value());
    case Tag::kList:
      return AddToList(arena, a, b);
    default:
      return NoSuchOverload(b);
  }
}

Val Contains(Arena& arena, const Val& container, const Val& item) {
  if (container.is_map() && container.map().form == Map::Form::kLazy) return NoSuchOverload();
  if (container.is_map()) {
    Val found;
    if (!container.map().Find(arena, item, &found)) return Val::Bool(false);
    const bool typed = container.map().form == Map::Form::kView && container.map().shape.typed();
    return typed && found.is_error() ? found : Val::Bool(true);
  }
  if (!container.is_list()) return NoSuchOverload(container);
  const List& list = container.list();
  Val error;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val element = list.Get(arena, i);
    const Val equal = list.typed ? EqualMethod(arena, element, item) : EqualMethod(arena, item, element);
    if (equal.is_true()) return equal;
    if (list.typed && equal.is_error() && !error.is_error()) error = equal;
  }
  return error.is_error() ? error : Val::Bool(false);
}

Val InsertMapKeyValue(Arena& arena, const Val& target, const Val& key, const Val& value) {
  const Map& map = target.map();
  Val found;
  if (map.Find(arena, key, &found)) return ErrorIn(arena, "insert failed: key ", GoText(arena, key), " already exists");
  if (map.growing) {
    const_cast<Map&>(map).Set(arena, key, value);  // The accumulator belongs to its comprehension until that ends.
    return target;
  }
  Map* copy = NewMap(arena, map.size + 1);
  for (std::uint32_t i = 0; i < map.size; ++i) {
    if (const auto existing = map.KeyAt(arena, i)) copy->Set(arena, *existing, map.ValueAt(arena, i));
  }
  copy->Set(arena, key, value);
  return Val::Of(copy);
}

namespace {

std::optional<bool> ParseBool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

bool EqualsFolded(std::string_view text, std::string_view lower) { return base::ToLower(text) == lower; }

// Underscores between digits, or behind the base prefix, are left out; anywhere else they make the text wrong.
std::optional<std::string> WithoutUnderscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    const bool before = i > 0 && (digit(text[i - 1]) || text[i - 1] == 'x' || text[i - 1] == 'X');
    if (!before || i + 1 >= text.size() || !digit(text[i + 1])) return std::nullopt;
  }
  return out;
}

// strconv.ParseFloat(text, 64); hexadecimal floats need a p exponent.
std::optional<double> ParseDouble(std::string_view text) {
  std::string without;
  if (text.find('_') != std::string_view::npos) {
    auto stripped = WithoutUnderscores(text);
    if (!stripped) return std::nullopt;
    without = *std::move(stripped);
    text = without;
  }
  std::string_view digits = text;
  bool negative = false;
  if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  if (EqualsFolded(digits, "inf") || EqualsFolded(digits, "infinity")) return negative ? -INFINITY : INFINITY;
  if (EqualsFolded(text, "nan")) return NAN;
  const bool hex = digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  if (hex) digits.remove_prefix(2);
  if (digits.empty()) return std::nullopt;
  const char first = digits[0];
  const bool starts =
      (first >= '0' && first <= '9') || first == '.' || (hex && std::isxdigit(static_cast<unsigned char>(first)));
  if (!starts) return std::nullopt;
  if (hex && digits.find_first_of("pP") == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                            hex ? std::chars_format::hex : std::chars_format::general);
  if (end != digits.data() + digits.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Underflow rounds to zero; overflow is an error.
    const double rounded = std::strtod(std::string(text).c_str(), nullptr);
    if (std::isinf(rounded)) return std::nullopt;
    return rounded;
  }
  if (error != std::errc()) return std::nullopt;
  return negative ? -value : value;
}

// strconv.ParseInt(text, 10, 64): one sign, digits.
std::optional<std::int64_t> ParseInt(std::string_view text) {
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text[0] == '-') return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Val ConversionError(Arena& arena, const Val& value, std::string_view type) {
  return ErrorIn(arena, std::string("type conversion error from '") + std::string(TypeNameOf(value)) + "' to '" +
                            std::string(type) + "'");
}

Val ConvertString(Arena& arena, const Val& value, std::string_view type) {
  const std::string_view text = value.text();
  if (type == "string") return value;
  if (type == "bytes") return Val::Bytes(text);
  if (type == "int") {
    if (const auto parsed = ParseInt(text)) return Val::Int(*parsed);
  } else if (type == "uint") {
    if (const auto parsed = base::ParseUint64(text)) return Val::Uint(*parsed);
  } else if (type == "double") {
    if (const auto parsed = ParseDouble(text)) return Val::Double(*parsed);
  } else if (type == "bool") {
    if (const auto parsed = ParseBool(text)) return Val::Bool(*parsed);
  } else if (type == "google.protobuf.Duration") {
    if (const auto parsed = object::ParseDuration(text); parsed.ok()) return Val::Duration(*parsed);
  } else if (type == "google.protobuf.Timestamp") {
    if (const auto parsed = ParseTimestamp(text)) return *parsed;
  }
  return ConversionError(arena, value, type);
}

Val ConvertNumber(Arena& arena, const Val& value, std::string_view type) {
  const bool is_int = value.is(Tag::kInt), is_uint = value.is(Tag::kUint);
  if (type == "int") {
    if (is_int) return value;
    if (is_uint) return value.uint_value() > INT64_MAX ? Val::Error(kIntOverflow) : Val::Int(value.int_value());
    const double number = value.double_value();
    if (!(number > -9223372036854775808.0 && number < 9223372036854775807.0)) return Val::Error(kIntOverflow);
    return Val::Int(static_cast<std::int64_t>(number));
  }
  if (type == "uint") {
    if (is_uint) return value;
    if (is_int) return value.int_value() < 0 ? Val::Error(kUintOverflow) : Val::Uint(value.uint_value());
    const double number = value.double_value();
    if (!(number >= 0 && number < 18446744073709551616.0)) return Val::Error(kUintOverflow);
    return Val::Uint(static_cast<std::uint64_t>(number));
  }
  if (type == "double") {
    if (is_int) return Val::Double(static_cast<double>(value.int_value()));
    if (is_uint) return Val::Double(static_cast<double>(value.uint_value()));
    return value;
  }
  if (type == "string") return Val::String(arena.Copy(GoText(arena, value)));
  if (type == "google.protobuf.Timestamp" && is_int) {
    if (value.int_value() < kMinUnixTime || value.int_value() > kMaxUnixTime) return Val::Error("timestamp overflow");
    return Val::Timestamp(value.int_value(), 0);
  }
  return ConversionError(arena, value, type);
}

}  // namespace

Val ConvertToType(Arena& arena, const Val& value, std::string_view type) {
  switch (value.tag()) {
    case Tag::kString:
      return ConvertString(arena, value, type);
    case Tag::kInt:
    case Tag::kUint:
    case Tag::kDouble:
      return ConvertNumber(arena, value, type);
    case Tag::kBool:
      if (type == "bool") return value;
      if (type == "string") return Val::String(value.bool_value() ? "true" : "false");
      break;
    case Tag::kBytes:
      if (type == "bytes") return value;
      if (type == "string") {
        if (!base::IsValidUTF8(value.text())) return Val::Error("invalid UTF-8 in bytes, cannot convert to string");
        return Val::String(value.text());
      }
      break;
    case Tag::kNull:
      if (type == "string") return Val::String("null");
      break;
    case Tag::kDuration:
      if (type == "google.protobuf.Duration") return value;
      if (type == "int") return Val::Int(value.int_value());
      if (type == "string") return Val::String(arena.Copy(DurationText(value.int_value())));
      break;
    case Tag::kTimestamp:
      if (type == "google.protobuf.Timestamp") return value;
      if (type == "int") return Val::Int(value.int_value());
      if (type == "string") return Val::String(arena.Copy(TimestampText(value)));
      break;
    case Tag::kType:
      if (type == "string") return Val::String(value.text());
      break;
    default:
      break;
  }
  return ConversionError(arena, value, type);
}

namespace {

Val Identity(Evaluation&, Args args) { return args[0]; }
Val ToBool(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "bool"); }
Val ToBytes(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "bytes"); }
Val ToDouble(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "double"); }
Val ToDuration(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "google.protobuf.Duration"); }
Val ToInt(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "int"); }
Val ToString(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "string"); }
Val ToTimestamp(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "google.protobuf.Timestamp"); }
Val ToUint(Evaluation& e, Args args) { return ConvertToType(e.arena, args[0], "uint"); }

Val NotStrictlyFalse(Evaluation&, Args args) { return args[0].is_bool() ? args[0] : Val::Bool(true); }

Val Plus(Evaluation& e, Args args) { return Add(e.arena, args[0], args[1]); }

Val Minus(Evaluation&, Args args) {
  const Val &a = args[0], &b = args[1];
  switch (a.tag()) {
    case Tag::kInt: {
      if (!b.is(Tag::kInt)) return NoSuchOverload(b);
      std::int64_t result = 0;
      if (__builtin_sub_overflow(a.int_value(), b.int_value(), &result)) return Val::Error(kIntOverflow);
      return Val::Int(result);
    }
    case Tag::kUint:
      if (!b.is(Tag::kUint)) return NoSuchOverload(b);
      if (b.uint_value() > a.uint_value()) return Val::Error(kUintOverflow);
      return Val::Uint(a.uint_value() - b.uint_value());
    case Tag::kDouble:
      if (!b.is(Tag::kDouble)) return NoSuchOverload(b);
      return Val::Double(a.double_value() - b.double_value());
    case Tag::kDuration: {
      if (!b.is(Tag::kDuration)) return NoSuchOverload(b);
      std::int64_t result = 0;
      if (__builtin_sub_overflow(a.int_value(), b.int_value(), &result)) return Val::Error(kIntOverflow);
      return Val::Duration(result);
    }
    case Tag::kTimestamp:
      if (b.is(Tag::kTimestamp)) return SubtractTimestamps(a, b);
      if (!b.is(Tag::kDuration)) return NoSuchOverload(b);
      if (b.int_value() == INT64_MIN) return Val::Error(kIntOverflow);
      return AddTimestampDuration(a, -b.int_value());
    default:
      return NoSuchOverload(b);
  }
}

Val Times(Evaluation&, Args args) {
  const Val &a = args[0], &b = args[1];
  if (a.tag() != b.tag()) return NoSuchOverload(b);
  if (a.is(Tag::kDouble)) return Val::Double(a.double_value() * b.double_value());
  if (a.is(Tag::kInt)) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a.int_value(), b.int_value(), &result)) return Val::Error(kIntOverflow);
    return Val::Int(result);
  }
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a.uint_value(), b.uint_value(), &result)) return Val::Error(kUintOverflow);
  return Val::Uint(result);
}

Val Divide(Evaluation&, Args args) {
  const Val &a = args[0], &b = args[1];
  if (a.tag() != b.tag()) return NoSuchOverload(b);
  if (a.is(Tag::kDouble)) return Val::Double(a.double_value() / b.double_value());
  if (b.uint_value() == 0) return Val::Error("division by zero");
  if (a.is(Tag::kUint)) return Val::Uint(a.uint_value() / b.uint_value());
  if (a.int_value() == INT64_MIN && b.int_value() == -1) return Val::Error(kIntOverflow);
  return Val::Int(a.int_value() / b.int_value());
}

Val Modulo(Evaluation&, Args args) {
  const Val &a = args[0], &b = args[1];
  if (a.tag() != b.tag()) return NoSuchOverload(b);
  if (b.uint_value() == 0) return Val::Error("modulus by zero");
  if (a.is(Tag::kUint)) return Val::Uint(a.uint_value() % b.uint_value());
  if (a.int_value() == INT64_MIN && b.int_value() == -1) return Val::Error(kIntOverflow);
  return Val::Int(a.int_value() % b.int_value());
}

Val Negate(Evaluation&, Args args) {
  const Val& a = args[0];
  if (a.is(Tag::kDouble)) return Val::Double(-a.double_value());
  if (a.is_bool()) return NoSuchOverload();
  if (a.int_value() == INT64_MIN) return Val::Error(kIntOverflow);
  return a.is(Tag::kDuration) ? Val::Duration(-a.int_value()) : Val::Int(-a.int_value());
}

Val Not(Evaluation&, Args args) {
  return args[0].is_bool() ? Val::Bool(!args[0].bool_value()) : NoSuchOverload(args[0]);
}

template <class Test>
Val Ordered(Args args, Test test) {
  const Val order = Compare(args[0], args[1]);
  return order.is_error() ? order : Val::Bool(test(order.int_value()));
}

Val Less(Evaluation&, Args args) {
  return Ordered(args, [](std::int64_t order) { return order < 0; });
}
Val LessEquals(Evaluation&, Args args) {
  return Ordered(args, [](std::int64_t order) { return order <= 0; });
}
Val Greater(Evaluation&, Args args) {
  return Ordered(args, [](std::int64_t order) { return order > 0; });
}
Val GreaterEquals(Evaluation&, Args args) {
  return Ordered(args, [](std::int64_t order) { return order >= 0; });
}

Val In(Evaluation& e, Args args) {
  if (args[1].is_map() && args[1].map().form == Map::Form::kEntries && args[1].map().size > 0 && !IsHashable(args[0]))
    return e.Internal("runtime error: hash of unhashable type types.Bytes");
  return Contains(e.arena, args[1], args[0]);
}

Val Size(Evaluation&, Args args) { return Val::Int(static_cast<std::int64_t>(SizeOf(args[0]).value_or(0))); }

Val TypeOf(Evaluation&, Args args) { return Val::TypeName(TypeNameOf(args[0])); }

Val Matches(Evaluation& e, Args args) {
  if (!args[1].is_string()) return NoSuchOverload(args[1]);
  const base::GoRegex regex(args[1].text());
  if (!regex.ok()) return e.Error(regex.error());
  return Val::Bool(regex.Matches(args[0].text()));
}

Val StringContains(Evaluation&, Args args) {
  if (!args[0].is_string()) return NoSuchOverload(args[0]);
  if (!args[1].is_string()) return NoSuchOverload(args[1]);
  return Val::Bool(args[0].text().find(args[1].text()) != std::string_view::npos);
}
Val StringEndsWith(Evaluation&, Args args) {
  if (!args[0].is_string()) return NoSuchOverload(args[0]);
  if (!args[1].is_string()) return NoSuchOverload(args[1]);
  return Val::Bool(args[0].text().ends_with(args[1].text()));
}
Val StringStartsWith(Evaluation&, Args args) {
  if (!args[0].is_string()) return NoSuchOverload(args[0]);
  if (!args[1].is_string()) return NoSuchOverload(args[1]);
  return Val::Bool(args[0].text().starts_with(args[1].text()));
}

template <TimeField field>
Val TimestampGet(Evaluation& e, Args args) {
  const std::string_view zone = args.size() > 1 ? args[1].text() : std::string_view("UTC");
  return TimestampField(e.arena, args[0], field, zone, e.zones);
}

template <TimeField field>
Val DurationGet(Evaluation&, Args args) {
  return DurationField(args[0], field);
}

Val OptionalOfValue(Evaluation& e, Args args) { return Val::OptionalOf(e.arena, args[0]); }
Val OptionalOfNonZero(Evaluation& e, Args args) {
  return IsZeroValue(args[0]) ? Val::OptionalNone() : Val::OptionalOf(e.arena, args[0]);
}
Val OptionalNone(Evaluation&, Args) { return Val::OptionalNone(); }
Val OptionalValue(Evaluation&, Args args) {
  return args[0].has_value() ? args[0].optional_value() : Val::Error("optional.none() dereference");
}
Val OptionalHasValue(Evaluation&, Args args) { return Val::Bool(args[0].has_value()); }

Val OptionalUnwrap(Evaluation& e, Args args) {
  const List& list = args[0].list();
  List* out = NewList(e.arena, list.size);
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val item = list.Get(e.arena, i);
    if (!item.is_optional()) return ErrorIn(e.arena, "value ", GoText(e.arena, item), " is not optional");
    if (item.has_value()) out->items[out->size++] = item.optional_value();
  }
  return Val::Of(out);
}

Val ListFirst(Evaluation& e, Args args) {
  const List& list = args[0].list();
  return list.size == 0 ? Val::OptionalNone() : Val::OptionalOf(e.arena, list.Get(e.arena, 0));
}
Val ListLast(Evaluation& e, Args args) {
  const List& list = args[0].list();
  return list.size == 0 ? Val::OptionalNone() : Val::OptionalOf(e.arena, list.Get(e.arena, list.size - 1));
}

Val MapInsertKeyValue(Evaluation& e, Args args) {
  if (!IsHashable(args[1])) return e.Internal("runtime error: hash of unhashable type types.Bytes");
  return InsertMapKeyValue(e.arena, args[0], args[1], args[2]);
}
Val MapInsertMap(Evaluation& e, Args args) {
  Val target = args[0];
  const Map& update = args[1].map();
  for (std::uint32_t i = 0; i < update.size; ++i) {
    const auto key = update.KeyAt(e.arena, i);
    if (!key) continue;
    target = InsertMapKeyValue(e.arena, target, *key, update.ValueAt(e.arena, i));
    if (target.is_error()) return target;
  }
  return target;
}

Val Base64DecodeString(Evaluation& e, Args args) {
  std::string text(args[0].text());
  if (const auto decoded = base::Base64Decode(text)) return Val::Bytes(e.arena.Copy(*decoded));
  while (text.size() % 4 != 0) text += '=';  // Unpadded texts are accepted too.
  if (const auto decoded = base::Base64Decode(text)) return Val::Bytes(e.arena.Copy(*decoded));
  std::size_t bad =
      args[0].text().find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
  if (bad == std::string_view::npos) bad = args[0].text().size();
  return e.Error("illegal base64 data at input byte " + std::to_string(bad));
}
Val Base64EncodeBytes(Evaluation& e, Args args) { return e.String(base::Base64Encode(args[0].text())); }

using enum CallForm;
constexpr Binding kBindings[] = {
    {"not_strictly_false", NotStrictlyFalse, kUnary, true},
    {"bool_to_bool", Identity, kUnary},
    {"string_to_bool", ToBool, kUnary},
    {"bytes_to_bytes", Identity, kUnary},
    {"string_to_bytes", ToBytes, kUnary},
    {"double_to_double", Identity, kUnary},
    {"int64_to_double", ToDouble, kUnary},
    {"string_to_double", ToDouble, kUnary},
    {"uint64_to_double", ToDouble, kUnary},
    {"duration_to_duration", Identity, kUnary},
    {"int64_to_duration", ToDuration, kUnary},
    {"string_to_duration", ToDuration, kUnary},
    {"to_dyn", Identity, kUnary},
    {"int64_to_int64", Identity, kUnary},
    {"double_to_int64", ToInt, kUnary},
    {"duration_to_int64", ToInt, kUnary},
    {"string_to_int64", ToInt, kUnary},
    {"timestamp_to_int64", ToInt, kUnary},
    {"uint64_to_int64", ToInt, kUnary},
    {"string_to_string", Identity, kUnary},
    {"bool_to_string", ToString, kUnary},
    {"bytes_to_string", ToString, kUnary},
    {"double_to_string", ToString, kUnary},
    {"duration_to_string", ToString, kUnary},
    {"int64_to_string", ToString, kUnary},
    {"timestamp_to_string", ToString, kUnary},
    {"uint64_to_string", ToString, kUnary},
    {"timestamp_to_timestamp", Identity, kUnary},
    {"int64_to_timestamp", ToTimestamp, kUnary},
    {"string_to_timestamp", ToTimestamp, kUnary},
    {"uint64_to_uint64", Identity, kUnary},
    {"double_to_uint64", ToUint, kUnary},
    {"int64_to_uint64", ToUint, kUnary},
    {"string_to_uint64", ToUint, kUnary},
    {"contains_string", StringContains, kBinary},
    {"ends_with_string", StringEndsWith, kBinary},
    {"starts_with_string", StringStartsWith, kBinary},
    {"timestamp_to_year", TimestampGet<TimeField::kFullYear>, kUnary},
    {"timestamp_to_year_with_tz", TimestampGet<TimeField::kFullYear>, kBinary},
    {"timestamp_to_month", TimestampGet<TimeField::kMonth>, kUnary},
    {"timestamp_to_month_with_tz", TimestampGet<TimeField::kMonth>, kBinary},
    {"timestamp_to_day_of_year", TimestampGet<TimeField::kDayOfYear>, kUnary},
    {"timestamp_to_day_of_year_with_tz", TimestampGet<TimeField::kDayOfYear>, kBinary},
    {"timestamp_to_day_of_month", TimestampGet<TimeField::kDayOfMonth>, kUnary},
    {"timestamp_to_day_of_month_with_tz", TimestampGet<TimeField::kDayOfMonth>, kBinary},
    {"timestamp_to_day_of_month_1_based", TimestampGet<TimeField::kDate>, kUnary},
    {"timestamp_to_day_of_month_1_based_with_tz", TimestampGet<TimeField::kDate>, kBinary},
    {"timestamp_to_day_of_week", TimestampGet<TimeField::kDayOfWeek>, kUnary},
    {"timestamp_to_day_of_week_with_tz", TimestampGet<TimeField::kDayOfWeek>, kBinary},
    {"timestamp_to_hours", TimestampGet<TimeField::kHours>, kUnary},
    {"timestamp_to_hours_with_tz", TimestampGet<TimeField::kHours>, kBinary},
    {"timestamp_to_minutes", TimestampGet<TimeField::kMinutes>, kUnary},
    {"timestamp_to_minutes_with_tz", TimestampGet<TimeField::kMinutes>, kBinary},
    {"timestamp_to_seconds", TimestampGet<TimeField::kSeconds>, kUnary},
    {"timestamp_to_seconds_tz", TimestampGet<TimeField::kSeconds>, kBinary},
    {"timestamp_to_milliseconds", TimestampGet<TimeField::kMilliseconds>, kUnary},
    {"timestamp_to_milliseconds_with_tz", TimestampGet<TimeField::kMilliseconds>, kBinary},
    {"duration_to_hours", DurationGet<TimeField::kHours>, kUnary},
    {"duration_to_minutes", DurationGet<TimeField::kMinutes>, kUnary},
    {"duration_to_seconds", DurationGet<TimeField::kSeconds>, kUnary},
    {"duration_to_milliseconds", DurationGet<TimeField::kMilliseconds>, kUnary},
    {"optional_of", OptionalOfValue, kUnary},
    {"optional_ofNonZeroValue", OptionalOfNonZero, kUnary},
    {"optional_none", OptionalNone, kVarArgs},
    {"optional_value", OptionalValue, kUnary},
    {"optional_hasValue", OptionalHasValue, kUnary},
    {"optional_unwrap", OptionalUnwrap, kUnary},
    {"optional_unwrapOpt", OptionalUnwrap, kUnary},
    {"list_first", ListFirst, kUnary},
    {"list_last", ListLast, kUnary},
    {"@mapInsert_map_key_value", MapInsertKeyValue, kVarArgs},
    {"@mapInsert_map_map", MapInsertMap, kBinary},
    {"base64_decode_string", Base64DecodeString, kUnary},
    {"base64_encode_bytes", Base64EncodeBytes, kUnary},
};

constexpr Singleton kSingletons[] = {
    {"_+_", Plus, kBinary, kAdder},
    {"_-_", Minus, kBinary, kSubtractor},
    {"_*_", Times, kBinary, kMultiplier},
    {"_/_", Divide, kBinary, kDivider},
    {"_%_", Modulo, kBinary, kModder},
    {"-_", Negate, kUnary, kNegator},
    {"!_", Not, kUnary, 0},
    {"_<_", Less, kBinary, kComparer},
    {"_<=_", LessEquals, kBinary, kComparer},
    {"_>_", Greater, kBinary, kComparer},
    {"_>=_", GreaterEquals, kBinary, kComparer},
    {"@in", In, kBinary, 0},
    {"size", Size, kUnary, kSizer},
    {"type", TypeOf, kUnary, 0},
    {"matches", Matches, kBinary, kMatcher},
};

}  // namespace

std::span<const Binding> StandardBindings() { return kBindings; }
std::span<const Singleton> StandardSingletons() { return kSingletons; }

}  // namespace keelson::cel
