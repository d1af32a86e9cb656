#include "codec/scalars.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "codec/base64.h"
#include "object/duration.h"
#include "object/quantity.h"
#include "object/time.h"

namespace keelson::codec {

using base::Arena;
using schema::Kind;

Value ZeroOf(Arena& arena, const schema::Type& type) {
  switch (type.kind) {
    case Kind::kString:
      return Value("");
    case Kind::kBool:
      return Value(false);
    case Kind::kInt32:
    case Kind::kInt64:
    case Kind::kIntOrString:
      return Value(0);
    case Kind::kDouble:
      return Value(0.0);
    case Kind::kQuantity:
      return Value("0");
    case Kind::kDuration:
      return Value("0s");
    case Kind::kStruct:
      return Value::Map(arena);
    default:
      return {};
  }
}

bool IsZero(const schema::Type& type, const Value& value) {
  switch (type.kind) {
    case Kind::kString:
      return value.as_string().empty();
    case Kind::kBool:
      return !value.as_bool();
    case Kind::kInt32:
    case Kind::kInt64:
      return value.as_int() == 0;
    case Kind::kDouble:
      return value.as_double() == 0;
    case Kind::kIntOrString:
      return !value.is_string() && value.as_int() == 0;
    case Kind::kQuantity:
      return value.as_string() == "0" || value.is_null();
    case Kind::kDuration:
      return value.as_string() == "0s" || value.is_null();
    case Kind::kStruct:
      return value.empty();
    default:
      return value.is_null();
  }
}

std::string GoTypeName(const schema::Struct& type) {
  const auto slash = type.package.rfind('/');
  std::string name(slash == std::string_view::npos ? type.package : type.package.substr(slash + 1));
  name += '.';
  return name += type.name;
}

std::string GoTypeName(const schema::Type& type) {
  switch (type.kind) {
    case Kind::kString:
      return "string";
    case Kind::kBool:
      return "bool";
    case Kind::kInt32:
      return "int32";
    case Kind::kInt64:
      return "int64";
    case Kind::kDouble:
      return "float64";
    case Kind::kBytes:
      return "[]uint8";
    case Kind::kTime:
      return "v1.Time";
    case Kind::kMicroTime:
      return "v1.MicroTime";
    case Kind::kDuration:
      return "v1.Duration";
    case Kind::kQuantity:
      return "resource.Quantity";
    case Kind::kIntOrString:
      return "intstr.IntOrString";
    case Kind::kRaw:
      return "runtime.RawExtension";
    case Kind::kFieldsV1:
      return "v1.FieldsV1";
    case Kind::kJSON:
      return "v1.JSON";
    case Kind::kStruct:
    case Kind::kEither:
      return GoTypeName(*type.structure);
    case Kind::kList:
      return "[]" + GoTypeName(*type.element);
    case Kind::kMap:
      return "map[string]" + GoTypeName(*type.element);
  }
  return "";
}

bool CanonicalTime(Arena& arena, std::string_view text, bool micro, Value& out, std::string& error) {
  auto parsed = object::ParseTime(text, micro);
  if (!parsed.ok()) {
    error = std::move(parsed).error();
    return false;
  }
  if (parsed->IsZero()) {
    out = Value();
    return true;
  }
  char buffer[object::kTimeTextMax];
  const std::size_t size = micro ? object::WriteMicroTime(*parsed, buffer) : object::WriteTime(parsed->seconds, buffer);
  const std::string_view canonical(buffer, size);
  out = canonical == text ? Value(text) : Value::String(arena, canonical);
  return true;
}

bool CanonicalDuration(Arena& arena, std::string_view text, Value& out, std::string& error) {
  auto parsed = object::ParseDuration(text);
  if (!parsed.ok()) {
    error = std::move(parsed).error();
    return false;
  }
  char buffer[object::kDurationTextMax];
  const std::string_view canonical(buffer, object::WriteDuration(*parsed, buffer));
  out = canonical == text ? Value(text) : Value::String(arena, canonical);
  return true;
}

// The common form: up to three digits and a suffix. No other suffix makes them shorter, so they are canonical.
static bool IsPlainQuantity(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0 || digits > 3 || text[0] == '0') return false;
  const std::string_view suffix = text.substr(digits);
  constexpr std::string_view kDecimal = "mkMGT", kBinary = "KMGT";
  if (suffix.size() == 1) return kDecimal.find(suffix[0]) != std::string_view::npos;
  return suffix.empty() ||
         (suffix.size() == 2 && suffix[1] == 'i' && kBinary.find(suffix[0]) != std::string_view::npos);
}

bool CanonicalQuantity(Arena& arena, std::string_view text, Value& out, std::string& error) {
  if (IsPlainQuantity(text)) {
    out = Value(text);
    return true;
  }
  char buffer[object::Quantity::kTextMax];
  const std::string_view trimmed = base::Trim(text);
  const auto canonical = object::Quantity::Canonical(trimmed, buffer);
  if (!canonical.ok()) {
    error = canonical.error();
    return false;
  }
  out = canonical->data() == trimmed.data() ? Value(trimmed) : Value::String(arena, *canonical);
  return true;
}

bool CanonicalBase64(Arena& arena, std::string_view text, Value& out, std::string& error) {
  const Base64Check check = CheckBase64(text);
  if (check.canonical) {
    out = Value(text);
    return true;
  }
  if (!check.valid) {
    error = "illegal base64 data at input byte " + std::to_string(check.error_at);
    return false;
  }
  char* bytes = arena.NewArray<char>(text.size() + 1);
  const std::size_t size = ReadBase64(text, bytes);
  char* again = arena.NewArray<char>(Base64Size(size) + 1);
  WriteBase64(bytes, size, again);
  out = Value(std::string_view(again, Base64Size(size)));
  return true;
}

bool ParseDouble(std::string_view text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc()) return true;
  if (error != std::errc::result_out_of_range) return false;
  // Too small is zero, as in Go; only too large is an error.
  out = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(out);
}

bool ParseNumber(std::string_view text, Value& out) {
  if (std::memchr(text.data(), '.', text.size()) == nullptr) {
    std::int64_t integer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
    if (error == std::errc() && end == text.data() + text.size()) {
      out = Value(integer);
      return true;
    }
  }
  double number = 0;
  if (!ParseDouble(text, number)) return false;
  out = Value(number);
  return true;
}

}  // namespace keelson::codec
