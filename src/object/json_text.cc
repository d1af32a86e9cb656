#include "object/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace keelson::object {
namespace {

// JSON text without the white space between its tokens.
void AppendCompact(std::string_view json, std::string& out) {
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string && c == '\\' && i + 1 < json.size()) {
      out += c;
      out += json[++i];
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    out += c;
  }
}

// The shortest decimal that reads back as `value`, split into digits and the power of ten of the first digit.
struct Decimal {
  bool negative;
  std::string digits;
  int exponent;
};

Decimal Shortest(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  Decimal decimal{std::signbit(value), std::string(1, text[0]), 0};
  if (e > 2) decimal.digits += text.substr(2, e - 2);
  const char* exponent = text.data() + e + 1;
  if (*exponent == '+') ++exponent;
  std::from_chars(exponent, end, decimal.exponent);
  return decimal;
}

std::string Plain(const Decimal& decimal) {
  std::string out = decimal.negative ? "-" : "";
  const int digits = static_cast<int>(decimal.digits.size());
  if (decimal.exponent < 0) {
    out += "0." + std::string(static_cast<std::size_t>(-decimal.exponent - 1), '0') + decimal.digits;
  } else if (decimal.exponent + 1 >= digits) {
    out += decimal.digits + std::string(static_cast<std::size_t>(decimal.exponent + 1 - digits), '0');
  } else {
    const auto split = static_cast<std::size_t>(decimal.exponent + 1);
    out += decimal.digits.substr(0, split) + "." + decimal.digits.substr(split);
  }
  return out;
}

std::string Scientific(const Decimal& decimal, bool two_exponent_digits) {
  std::string out = decimal.negative ? "-" : "";
  out += decimal.digits[0];
  if (decimal.digits.size() > 1) out += "." + decimal.digits.substr(1);
  out += decimal.exponent < 0 ? "e-" : "e+";
  const int magnitude = std::abs(decimal.exponent);
  if (magnitude < 10 && two_exponent_digits) out += '0';
  return out + std::to_string(magnitude);
}

// Bytes that are written as they are.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (int byte = 0x20; byte < 0x7f; ++byte) plain[static_cast<std::size_t>(byte)] = true;
  for (const char special : {'"', '\\', '<', '>', '&'}) plain[static_cast<std::uint8_t>(special)] = false;
  return plain;
}();

}  // namespace

void AppendJSONString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && kPlain[static_cast<std::uint8_t>(text[plain])]) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto byte = static_cast<std::uint8_t>(text[0]);
    if (byte >= 0x80) {
      const auto rune = base::DecodeRune(text);
      if (rune.value == 0xfffd && rune.length == 1) {
        out += "\\ufffd";
      } else if (rune.value == 0x2028 || rune.value == 0x2029) {
        out += rune.value == 0x2028 ? "\\u2028" : "\\u2029";
      } else {
        out += text.substr(0, static_cast<std::size_t>(rune.length));
      }
      text.remove_prefix(static_cast<std::size_t>(rune.length));
      continue;
    }
    switch (byte) {
      case '"':
      case '\\':
        out += '\\';
        out += text[0];
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (byte < 0x20 || byte == '<' || byte == '>' || byte == '&') {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        } else {
          out += text[0];
        }
    }
    text.remove_prefix(1);
  }
  out += '"';
}

void AppendJSONDouble(std::string& out, double value) {
  if (value == 0) {
    out += std::signbit(value) ? "-0" : "0";
    return;
  }
  const Decimal decimal = Shortest(value);
  out += decimal.exponent < -6 || decimal.exponent >= 21 ? Scientific(decimal, false) : Plain(decimal);
}

std::string GoDouble(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Inf" : "+Inf";
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  const Decimal decimal = Shortest(value);
  return decimal.exponent < -4 || decimal.exponent >= 6 ? Scientific(decimal, true) : Plain(decimal);
}

void AppendJSON(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      out += "null";
      break;
    case Value::Kind::kBool:
      out += value.as_bool() ? "true" : "false";
      break;
    case Value::Kind::kInt:
      out += std::to_string(value.as_int());
      break;
    case Value::Kind::kDouble:
      AppendJSONDouble(out, value.as_double());
      break;
    case Value::Kind::kString:
      AppendJSONString(out, value.as_string());
      break;
    case Value::Kind::kRaw:
      AppendCompact(value.as_raw(), out);
      break;
    case Value::Kind::kList: {
      out += '[';
      bool first = true;
      for (const Value& item : value.items()) {
        if (!first) out += ',';
        first = false;
        AppendJSON(out, item);
      }
      out += ']';
      break;
    }
    case Value::Kind::kMap: {
      out += '{';
      bool first = true;
      for (const Member& member : value.members()) {
        if (!first) out += ',';
        first = false;
        AppendJSONString(out, member.key);
        out += ':';
        AppendJSON(out, member.value);
      }
      out += '}';
      break;
    }
  }
}

std::string ToJSON(const Value& value) {
  std::string out;
  AppendJSON(out, value);
  return out;
}

}  // namespace keelson::object
