#include "cel/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/strings.h"
#include "cel/operators.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using Text = Outcome<std::string, std::string>;

Text Ok(std::string text) { return Text(std::in_place, std::move(text)); }
Text Fail(std::string text) { return Text(std::unexpect, std::move(text)); }

Text StringClause(Arena& arena, const Val& value);

std::string FixedText(double value, int precision) {
  std::string out(static_cast<std::size_t>(precision) + 330, '\0');
  const int size = std::snprintf(out.data(), out.size(), "%.*f", precision, value);
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::string GoFixed(double value) {  // fmt's %.6f
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return FixedText(value, 6);
}

std::string QuoteForCEL(const Val& value, std::string text) {
  if (value.is_string()) return base::GoQuote(text);
  if (value.is(Tag::kBytes)) return "b" + base::GoQuote(text);
  if (value.is(Tag::kDouble) && !std::isfinite(value.double_value())) return base::GoQuote(text);
  return text;
}

// clauseForType: a member of a list or a value of a map.
Text MemberText(Arena& arena, const Val& value) {
  switch (value.tag()) {
    case Tag::kTimestamp:
      return Ok("timestamp(" + base::GoQuote(ConvertToType(arena, value, "string").text()) + ")");
    case Tag::kDuration:
      return Ok("duration(" + base::GoQuote(ConvertToType(arena, value, "string").text()) + ")");
    case Tag::kDouble:
      return Ok(GoFixed(value.double_value()));
    case Tag::kInt:
    case Tag::kUint:
    case Tag::kString:
    case Tag::kBytes:
    case Tag::kBool:
    case Tag::kNull:
    case Tag::kType:
    case Tag::kList:
    case Tag::kMap:
      return StringClause(arena, value);
    default:
      return Fail("no formatting function for " + std::string(TypeNameOf(value)));
  }
}

Text ListText(Arena& arena, const List& list) {
  std::string out = "[";
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val item = list.Get(arena, i);
    Text text = MemberText(arena, item);
    if (!text.ok()) return text;
    if (i > 0) out += ", ";
    out += QuoteForCEL(item, *std::move(text));
  }
  return Ok(out + "]");
}

Text MapText(Arena& arena, const Map& map) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::uint32_t i = 0; i < map.size; ++i) {
    const auto key = map.KeyAt(arena, i);
    if (!key) continue;
    if (!key->is_string() && !key->is_bool() && !key->is(Tag::kInt) && !key->is(Tag::kUint))
      return Fail("no formatting function for map key of type " + std::string(TypeNameOf(*key)));
    Text name = StringClause(arena, *key);
    if (!name.ok()) return name;
    const Val value = map.ValueAt(arena, i);
    Text text = MemberText(arena, value);
    if (!text.ok()) return text;
    pairs.emplace_back(QuoteForCEL(*key, *std::move(name)), QuoteForCEL(value, *std::move(text)));
  }
  std::ranges::sort(pairs);  // Keys are distinct.
  std::string out = "{";
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0) out += ", ";
    out += pairs[i].first + ":" + pairs[i].second;
  }
  return Ok(out + "}");
}

Text StringClause(Arena& arena, const Val& value) {
  switch (value.tag()) {
    case Tag::kList:
      return ListText(arena, value.list());
    case Tag::kMap:
      return MapText(arena, value.map());
    case Tag::kNull:
      return Ok("null");
    case Tag::kInt:
    case Tag::kUint:
    case Tag::kDouble:
    case Tag::kBool:
    case Tag::kString:
    case Tag::kTimestamp:
    case Tag::kBytes:
    case Tag::kDuration:
    case Tag::kType: {
      const Val text = ConvertToType(arena, value, "string");
      if (text.is_error()) return Fail("could not convert argument " + base::GoQuote(text.text()) + " to string");
      return Ok(std::string(text.text()));
    }
    default:
      return Fail(
          "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
          "timestamps, was given " +
          std::string(TypeNameOf(value)));
  }
}

Text DecimalClause(const Val& value) {
  if (value.is(Tag::kInt)) return Ok(std::to_string(value.int_value()));
  if (value.is(Tag::kUint)) return Ok(std::to_string(value.uint_value()));
  return Fail("decimal clause can only be used on integers, was given " + std::string(TypeNameOf(value)));
}

// A double, or one of the texts for values without a JSON number (NaN, Infinity).
std::optional<double> FloatArgument(const Val& value) {
  if (value.is(Tag::kDouble)) return value.double_value();
  if (!value.is_string()) return std::nullopt;
  if (value.text() == "NaN") return NAN;
  if (value.text() == "Infinity") return INFINITY;
  if (value.text() == "-Infinity") return -INFINITY;
  return std::nullopt;
}

std::optional<std::string> NotFinite(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  return std::nullopt;
}

Text FixedClause(const Val& value, int precision) {
  const auto number = FloatArgument(value);
  if (!number)
    return Fail("fixed-point clause can only be used on doubles, was given " + std::string(TypeNameOf(value)));
  if (auto text = NotFinite(*number)) return Ok(*text);
  const std::string plain = FixedText(*number, precision);
  const std::size_t begin = plain.starts_with('-') ? 1 : 0;
  const std::size_t point = std::min(plain.find('.'), plain.size());
  std::string out = plain.substr(0, begin);
  for (std::size_t i = begin; i < point; ++i) {  // en-US groups thousands
    if (i > begin && (point - i) % 3 == 0) out += ',';
    out += plain[i];
  }
  return Ok(out + plain.substr(point));
}

// The precision is taken as a width by the reference; digits are always six.
Text ScientificClause(const Val& value, int width) {
  const auto number = FloatArgument(value);
  if (!number)
    return Fail("scientific clause can only be used on doubles, was given " + std::string(TypeNameOf(value)));
  std::string out;
  if (auto text = NotFinite(*number)) {
    out = *text;
  } else {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.6e", *number);
    const std::string plain = buffer;
    const std::size_t e = plain.find('e');
    out = plain.substr(0, e) + "×10";
    constexpr std::string_view kSuperscripts[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    for (const char c : plain.substr(e + 1)) {
      if (c == '-') out += "⁻";
      if (c >= '0' && c <= '9') out += kSuperscripts[c - '0'];
    }
  }
  const std::size_t size = RuneCount(out);
  if (size < static_cast<std::size_t>(width)) out.insert(0, static_cast<std::size_t>(width) - size, ' ');
  return Ok(out);
}

std::string InBase(const Val& value, int base) {
  char text[80];
  const auto end = value.is(Tag::kInt) ? std::to_chars(text, text + sizeof text, value.int_value(), base).ptr
                                       : std::to_chars(text, text + sizeof text, value.uint_value(), base).ptr;
  return std::string(text, end);
}

Text BinaryClause(const Val& value) {
  if (value.is_bool()) return Ok(value.bool_value() ? "1" : "0");
  if (value.is(Tag::kInt) || value.is(Tag::kUint)) return Ok(InBase(value, 2));
  return Fail("only integers and bools can be formatted as binary, was given " + std::string(TypeNameOf(value)));
}

Text OctalClause(const Val& value) {
  if (value.is(Tag::kInt) || value.is(Tag::kUint)) return Ok(InBase(value, 8));
  return Fail("octal clause can only be used on integers, was given " + std::string(TypeNameOf(value)));
}

Text HexClause(const Val& value, bool upper) {
  std::string out;
  if (value.is_string() || value.is(Tag::kBytes)) {
    out = base::HexEncode(value.text());
  } else if (value.is(Tag::kInt) || value.is(Tag::kUint)) {
    out = InBase(value, 16);
  } else {
    return Fail("only integers, byte buffers, and strings can be formatted as hex, was given " +
                std::string(TypeNameOf(value)));
  }
  if (upper)
    std::ranges::transform(out, out.begin(),
                           [](char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c; });
  return Ok(out);
}

struct Clause {
  char verb = 0;
  int precision = 6;
  std::size_t size = 0;  // bytes read
};

// Parses a clause after the percent sign. An empty text means success.
std::string ParseClause(std::string_view text, Clause* clause) {
  std::size_t at = 0;
  if (text[0] == '.') {
    ++at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at >= text.size()) return "error while parsing precision: could not find end of precision specifier";
    const std::string digits(text.substr(1, at - 1));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), clause->precision);
    (void)end;
    if (digits.empty() || error != std::errc() || clause->precision > kFormatPrecisionMax)
      return "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing " +
             base::GoQuote(digits) + (digits.empty() ? ": invalid syntax" : ": value out of range");
  }
  clause->verb = text[at];
  clause->size = at + 1;
  if (std::string_view("sdfebxXo").find(clause->verb) != std::string_view::npos) return {};
  std::string shown;
  base::AppendUTF8(shown, static_cast<unsigned char>(clause->verb));
  return "unrecognized formatting clause \"" + shown + "\"";
}

Text FormatClause(Arena& arena, const Clause& clause, const Val& value) {
  switch (clause.verb) {
    case 's':
      return StringClause(arena, value);
    case 'd':
      return DecimalClause(value);
    case 'f':
      return FixedClause(value, clause.precision);
    case 'e':
      return ScientificClause(value, clause.precision);
    case 'b':
      return BinaryClause(value);
    case 'o':
      return OctalClause(value);
    default:
      return HexClause(value, clause.verb == 'X');
  }
}

}  // namespace

Outcome<std::string, std::string> FormatString(Arena& arena, std::string_view format, const List& args) {
  std::string out;
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    if (format.substr(i).starts_with("%%")) {
      out += '%';
      i += 2;
      continue;
    }
    if (index >= args.size) return Fail("index " + std::to_string(index) + " out of range");
    if (i + 1 >= format.size()) return Fail("unexpected end of string");
    Clause clause;
    if (std::string error = ParseClause(format.substr(i + 1), &clause); !error.empty())
      return Fail("could not parse formatting clause: " + error);
    Text text = FormatClause(arena, clause, args.Get(arena, index));
    if (!text.ok()) return Fail("error during formatting: " + text.error());
    out += *text;
    i += 1 + clause.size;
    ++index;
  }
  return Ok(std::move(out));
}

}  // namespace keelson::cel
