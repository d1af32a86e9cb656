#include "codec/yaml_resolve.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "codec/scalars.h"

namespace keelson::codec {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

struct Word {
  std::string_view text;
  YAMLTag tag;
  double number;  // 1 and 0 for booleans
};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Word kWords[] = {
    {"y", YAMLTag::kBool, 1},          {"Y", YAMLTag::kBool, 1},          {"yes", YAMLTag::kBool, 1},
    {"Yes", YAMLTag::kBool, 1},        {"YES", YAMLTag::kBool, 1},        {"true", YAMLTag::kBool, 1},
    {"True", YAMLTag::kBool, 1},       {"TRUE", YAMLTag::kBool, 1},       {"on", YAMLTag::kBool, 1},
    {"On", YAMLTag::kBool, 1},         {"ON", YAMLTag::kBool, 1},         {"n", YAMLTag::kBool, 0},
    {"N", YAMLTag::kBool, 0},          {"no", YAMLTag::kBool, 0},         {"No", YAMLTag::kBool, 0},
    {"NO", YAMLTag::kBool, 0},         {"false", YAMLTag::kBool, 0},      {"False", YAMLTag::kBool, 0},
    {"FALSE", YAMLTag::kBool, 0},      {"off", YAMLTag::kBool, 0},        {"Off", YAMLTag::kBool, 0},
    {"OFF", YAMLTag::kBool, 0},        {"", YAMLTag::kNull, 0},           {"~", YAMLTag::kNull, 0},
    {"null", YAMLTag::kNull, 0},       {"Null", YAMLTag::kNull, 0},       {"NULL", YAMLTag::kNull, 0},
    {".nan", YAMLTag::kFloat, kNaN},   {".NaN", YAMLTag::kFloat, kNaN},   {".NAN", YAMLTag::kFloat, kNaN},
    {".inf", YAMLTag::kFloat, kInf},   {".Inf", YAMLTag::kFloat, kInf},   {".INF", YAMLTag::kFloat, kInf},
    {"+.inf", YAMLTag::kFloat, kInf},  {"+.Inf", YAMLTag::kFloat, kInf},  {"+.INF", YAMLTag::kFloat, kInf},
    {"-.inf", YAMLTag::kFloat, -kInf}, {"-.Inf", YAMLTag::kFloat, -kInf}, {"-.INF", YAMLTag::kFloat, -kInf},
};

// strconv.ParseUint with base 0: 0x, 0o, 0b or a leading zero for octal.
bool ParseUnsigned(std::string_view text, std::uint64_t& out) {
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char prefix = static_cast<char>(text[1] | 0x20);
    base = prefix == 'x' ? 16 : prefix == 'b' ? 2 : 8;
    text.remove_prefix(prefix == 'x' || prefix == 'b' || prefix == 'o' ? 2 : 1);
  }
  if (text.empty() || text[0] == '-' || text[0] == '+') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size();
}

// ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$
bool LooksFloat(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t start = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - start;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  } else {
    if (digits() == 0) return false;
    if (at < text.size() && text[at] == '.') ++at, digits();
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

bool ParseYAMLFloat(std::string_view text, double& out) {
  if (!LooksFloat(text)) return false;
  if (text[0] == '+') text.remove_prefix(1);
  return ParseDouble(text, out);
}

// One of Go's timestamp layouts, with the date's and time's parts one or two digits long.
bool LooksTimestamp(std::string_view text) {
  std::size_t at = 0;
  const auto number = [&](int low, int high, std::size_t width) {
    int value = 0;
    std::size_t digits = 0;
    while (digits < width && at < text.size() && IsDigit(text[at])) value = value * 10 + (text[at++] - '0'), ++digits;
    return digits > 0 && value >= low && value <= high;
  };
  const auto literal = [&](char c) { return at < text.size() && text[at] == c ? (++at, true) : false; };
  if (text.size() < 8 || !IsDigit(text[0]) || !IsDigit(text[1]) || !IsDigit(text[2]) || !IsDigit(text[3])) return false;
  at = 4;
  if (!literal('-') || !number(1, 12, 2) || !literal('-') || !number(1, 31, 2)) return false;
  if (at == text.size()) return true;
  const char separator = text[at++];
  if (separator != 'T' && separator != 't' && separator != ' ') return false;
  if (!number(0, 23, 2) || !literal(':') || !number(0, 59, 2) || !literal(':') || !number(0, 59, 2)) return false;
  if (literal('.')) {
    if (at >= text.size() || !IsDigit(text[at])) return false;
    while (at < text.size() && IsDigit(text[at])) ++at;
  }
  if (separator == ' ') return at == text.size();
  if (literal('Z')) return at == text.size();
  if (!literal('+') && !literal('-')) return false;
  return number(0, 24, 2) && literal(':') && number(0, 60, 2) && at == text.size();
}

// ^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$: unsupported going in, but quoted going out for other parsers.
bool LooksBase60(std::string_view text) {
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++at;
  if (at >= text.size() || !IsDigit(text[at])) return false;
  while (at < text.size() && (IsDigit(text[at]) || text[at] == '_')) ++at;
  bool parts = false;
  while (at < text.size() && text[at] == ':') {
    ++at;
    std::size_t digits = 0;
    while (at + digits < text.size() && IsDigit(text[at + digits])) ++digits;
    if (digits == 0 || digits > 2 || (digits == 2 && text[at] > '5')) return false;
    at += digits;
    parts = true;
  }
  if (parts && at < text.size() && text[at] == '.') {
    ++at;
    while (at < text.size() && (IsDigit(text[at]) || text[at] == '_')) ++at;
  }
  return parts && at == text.size();
}

bool ResolveNumber(base::Arena& arena, std::string_view text, Value& out, YAMLTag& tag) {
  std::string without;
  std::string_view plain = text;
  if (text.find('_') != std::string_view::npos) {
    std::ranges::copy_if(text, std::back_inserter(without), [](char c) { return c != '_'; });
    plain = without;
  }
  if (plain.empty()) return false;
  const bool negative = plain[0] == '-';
  const std::string_view magnitude = plain.substr(negative || plain[0] == '+' ? 1 : 0);
  std::uint64_t integer = 0;
  tag = YAMLTag::kInt;
  if (ParseUnsigned(magnitude, integer)) {
    if (integer <= static_cast<std::uint64_t>(INT64_MAX)) {
      out = Value(negative ? -static_cast<std::int64_t>(integer) : static_cast<std::int64_t>(integer));
      return true;
    }
    if (negative && integer == std::uint64_t{1} << 63) {
      out = Value(INT64_MIN);
      return true;
    }
    if (plain[0] != '-' && plain[0] != '+') {
      out = Value::Raw(arena.Copy(std::to_string(integer)));
      return true;
    }
  }
  double number = 0;
  if (!ParseYAMLFloat(plain, number)) return false;
  tag = YAMLTag::kFloat;
  out = Value(number);
  return true;
}

}  // namespace

YAMLTag ResolvePlain(base::Arena& arena, std::string_view text, Value& out) {
  const char first = text.empty() ? '~' : text[0];
  const bool number = IsDigit(first) || first == '-' || first == '+';
  if (number || std::string_view("yYnNtTfFoO~.").find(first) != std::string_view::npos) {
    if (text.size() <= 5) {
      const auto* word = std::ranges::find(kWords, text, &Word::text);
      if (word != std::end(kWords)) {
        out = word->tag == YAMLTag::kBool   ? Value(word->number != 0)
              : word->tag == YAMLTag::kNull ? Value()
                                            : Value(word->number);
        return word->tag;
      }
    }
    double floating = 0;
    YAMLTag tag{};
    if (first == '.' && ParseYAMLFloat(text, floating)) {
      out = Value(floating);
      return YAMLTag::kFloat;
    }
    if (number && LooksTimestamp(text)) {
      out = Value(text);
      return YAMLTag::kTimestamp;
    }
    if (number && ResolveNumber(arena, text, out, tag)) return tag;
  }
  out = Value(text);
  return YAMLTag::kString;
}

bool ReadsAsString(std::string_view text) {
  base::Arena arena;
  Value ignored;
  // "<<" is the merge key, which the encoder quotes as well.
  return text != "<<" && ResolvePlain(arena, text, ignored) == YAMLTag::kString && !LooksBase60(text);
}

}  // namespace keelson::codec
