#include "app/flag_values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/duration.h"
#include "base/strings.h"

namespace keelson::app {
namespace {

using Error = std::optional<std::string>;

std::string ParseError(std::string_view function, std::string_view text, std::string_view why) {
  return "strconv." + std::string(function) + ": parsing " + base::GoQuote(text) + ": " + std::string(why);
}

enum class NumberProblem { kNone, kSyntax, kRange };

// strconv's base 0: 0x, 0o, 0b, a leading 0 for octal, underscores between digits.
NumberProblem ParseMagnitude(std::string_view text, int base, std::uint64_t& out) {
  bool underscores = false;
  if (base == 0) {
    base = 10;
    if (!text.empty() && text[0] == '0') {
      if (text.size() >= 3 && (text[1] == 'x' || text[1] == 'X')) {
        base = 16, text.remove_prefix(2);
      } else if (text.size() >= 3 && (text[1] == 'b' || text[1] == 'B')) {
        base = 2, text.remove_prefix(2);
      } else if (text.size() >= 3 && (text[1] == 'o' || text[1] == 'O')) {
        base = 8, text.remove_prefix(2);
      } else {
        base = 8;
        if (text.size() > 1) text.remove_prefix(1);
      }
    }
    underscores = true;
  }
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && underscores && i + 1 < text.size() && text[i + 1] != '_') continue;
    digits += text[i];
  }
  if (digits.empty()) return NumberProblem::kSyntax;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  if (code == std::errc::result_out_of_range) return NumberProblem::kRange;
  return code != std::errc{} || end != digits.data() + digits.size() ? NumberProblem::kSyntax : NumberProblem::kNone;
}

Error Problem(std::string_view function, std::string_view text, NumberProblem problem) {
  return ParseError(function, text, problem == NumberProblem::kRange ? "value out of range" : "invalid syntax");
}

Error ParseSigned(std::string_view function, std::string_view text, int base, int bits, std::int64_t& out) {
  std::string_view digits = text;
  bool negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  std::uint64_t magnitude = 0;
  NumberProblem problem = ParseMagnitude(digits, base, magnitude);
  const std::uint64_t limit = std::uint64_t{1} << (bits - 1);
  if (problem == NumberProblem::kNone && magnitude > (negative ? limit : limit - 1)) problem = NumberProblem::kRange;
  if (problem != NumberProblem::kNone) return Problem(function, text, problem);
  out = static_cast<std::int64_t>(negative ? -magnitude : magnitude);
  return std::nullopt;
}

Error ParseUnsigned(std::string_view text, int base, int bits, std::uint64_t& out) {
  std::uint64_t value = 0;
  NumberProblem problem = ParseMagnitude(text, base, value);
  if (problem == NumberProblem::kNone && bits < 64 && value >> bits != 0) problem = NumberProblem::kRange;
  if (problem != NumberProblem::kNone) return Problem("ParseUint", text, problem);
  out = value;
  return std::nullopt;
}

Error ParseFloat(std::string_view text, double& out) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size() || copy[0] == ' ')
    return ParseError("ParseFloat", text, "invalid syntax");
  if (std::isinf(value) && copy.find_first_of("iI") == std::string::npos)
    return ParseError("ParseFloat", text, "value out of range");
  out = value;
  return std::nullopt;
}

Error ParseBool(std::string_view text, bool& out) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return out = true, std::nullopt;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return out = false, std::nullopt;
  }
  return ParseError("ParseBool", text, "invalid syntax");
}

std::string FloatText(double value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

std::string Braced(const std::string& text) { return "[" + text + "]"; }

std::string PairsText(const StringMap& pairs, bool csv) {
  Strings texts;
  for (const auto& [key, value] : pairs) texts.push_back(key + "=" + value);
  return csv ? WriteCSV(texts) : base::Join(texts, ",");
}

// A value whose three functions are given as lambdas; the types below differ in nothing else.
template <class Setter, class Printer>
class LambdaValue final : public FlagValue {
 public:
  LambdaValue(std::string_view type, Setter set, Printer print)
      : type_(type), set_(std::move(set)), print_(std::move(print)) {}
  Error Set(std::string_view text) override { return set_(text); }
  std::string String() const override { return print_(); }
  std::string_view type() const override { return type_; }

 private:
  std::string_view type_;
  Setter set_;
  Printer print_;
};

template <class Setter, class Printer>
ValuePtr Make(std::string_view type, Setter set, Printer print) {
  return std::make_unique<LambdaValue<Setter, Printer>>(type, std::move(set), std::move(print));
}

// Trimmed pieces of "key=value"; no second piece without '='.
std::pair<std::string, std::optional<std::string>> SplitPair(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {std::string(base::Trim(text)), std::nullopt};
  return {std::string(base::Trim(text.substr(0, at))), std::string(base::Trim(text.substr(at + 1)))};
}

Error ParseNamedCertKey(std::string_view text, NamedCertKey& out) {
  const std::size_t colon = text.find(':');
  std::string_view files = base::Trim(text.substr(0, colon));
  if (colon != std::string_view::npos) {
    const std::string_view names = base::Trim(text.substr(colon + 1));
    if (names.empty()) return "empty names list is not allowed";
    for (const std::string_view name : base::Split(names, ',')) out.names.emplace_back(base::Trim(name));
  }
  const auto pieces = base::Split(files, ',');
  if (pieces.size() != 2) return "expected comma separated certificate and key file paths";
  out.cert_file = base::Trim(pieces[0]);
  out.key_file = base::Trim(pieces[1]);
  return std::nullopt;
}

Error ParsePortRange(std::string_view text, PortRange& out) {
  const std::string_view value = base::Trim(text);
  const std::size_t hyphen = value.find('-'), plus = value.find('+');
  if (value.empty()) return out = {}, std::nullopt;
  if (hyphen != std::string_view::npos && plus != std::string_view::npos)
    return "unable to parse port range: " + std::string(value);
  std::int64_t low = 0, high = 0;
  const std::size_t separator = std::min(hyphen, plus);
  if (auto error = ParseSigned("Atoi", value.substr(0, separator), 10, 64, low)) return error;
  high = low;
  if (separator != std::string_view::npos) {
    if (auto error = ParseSigned("Atoi", value.substr(separator + 1), 10, 64, high)) return error;
    if (plus != std::string_view::npos) high += low;
  }
  if (low > 65535 || high > 65535) return "the port range cannot be greater than 65535: " + std::string(value);
  if (high < low) return "end port cannot be less than start port: " + std::string(value);
  out = {static_cast<int>(low), static_cast<int>(1 + high - low)};
  return std::nullopt;
}

Error ParseQuantity(std::string_view text, std::uint64_t& out) {
  static constexpr std::pair<std::string_view, double> kSuffixes[] = {
      {"", 1},     {"k", 1e3},     {"K", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
      {"P", 1e15}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}};
  const std::size_t digits = std::min(text.find_first_not_of("+-0123456789."), text.size());
  double number = 0;
  for (const auto& [suffix, scale] : kSuffixes) {
    if (text.substr(digits) != suffix || digits == 0 || ParseFloat(text.substr(0, digits), number)) continue;
    if (number < 0 || number * scale >= 0x1p63) break;
    out = static_cast<std::uint64_t>(std::ceil(number * scale));
    return std::nullopt;
  }
  return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
}

}  // namespace

std::string NamedCertKey::String() const {
  std::string text = cert_file + "," + key_file;
  if (!names.empty()) text += ":" + base::Join(names, ",");
  return text;
}

std::string PortRange::String() const {
  if (size == 0) return "";
  return std::to_string(base) + "-" + std::to_string(base + size - 1);
}

std::optional<std::string> ParseIPSloppy(std::string_view text) {
  if (text.find(':') != std::string_view::npos) {
    in6_addr address{};
    char canonical[INET6_ADDRSTRLEN];
    if (::inet_pton(AF_INET6, std::string(text).c_str(), &address) != 1) return std::nullopt;
    if (IN6_IS_ADDR_V4MAPPED(&address)) {  // Go's net.IP prints these as IPv4.
      return std::string(::inet_ntop(AF_INET, &address.s6_addr[12], canonical, sizeof canonical));
    }
    return std::string(::inet_ntop(AF_INET6, &address, canonical, sizeof canonical));
  }
  std::string canonical;
  const auto pieces = base::Split(text, '.');
  if (pieces.size() != 4) return std::nullopt;
  for (const std::string_view piece : pieces) {
    const auto number = base::ParseUint64(piece);
    if (!number || *number > 255) return std::nullopt;
    if (!canonical.empty()) canonical += '.';
    canonical += std::to_string(*number);
  }
  return canonical;
}

std::optional<std::string> ReadCSV(std::string_view text, Strings& out) {
  out.clear();
  if (text.empty()) return std::nullopt;
  auto fail = [](std::size_t column, std::string_view why) {
    return "parse error on line 1, column " + std::to_string(column) + ": " + std::string(why);
  };
  std::size_t at = 0;
  for (;;) {
    std::string field;
    if (at < text.size() && text[at] == '"') {
      ++at;
      for (;;) {
        const std::size_t quote = text.find('"', at);
        if (quote == std::string_view::npos) return fail(text.size() + 1, "extraneous or missing \" in quoted-field");
        field += text.substr(at, quote - at);
        at = quote + 1;
        if (at < text.size() && text[at] == '"') {
          field += '"';
          ++at;
        } else {
          break;
        }
      }
      if (at < text.size() && text[at] != ',' && text[at] != '\n')
        return fail(at, "extraneous or missing \" in quoted-field");
    } else {
      const std::size_t end = std::min(text.find_first_of(",\n", at), text.size());
      const std::string_view raw = text.substr(at, end - at);
      if (const std::size_t quote = raw.find('"'); quote != std::string_view::npos) {
        return fail(at + quote + 1, "bare \" in non-quoted-field");
      }
      field = raw;
      at = end;
    }
    out.push_back(std::move(field));
    if (at >= text.size() || text[at] == '\n') return std::nullopt;
    ++at;  // the comma
  }
}

std::string WriteCSV(const Strings& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) out += ',';
    const std::string& field = fields[i];
    const bool quote = field.find_first_of(",\"\r\n") != std::string::npos ||
                       (!field.empty() && (field[0] == ' ' || field[0] == '\t'));
    out += quote ? "\"" + base::ReplaceAll(field, "\"", "\"\"") + "\"" : field;
  }
  return out;
}

ValuePtr String(std::string& field) {
  return Make(
      "string", [&field](std::string_view text) -> Error { return field = text, std::nullopt; },
      [&field] { return field; });
}

ValuePtr Bool(bool& field) {
  return Make(
      "bool", [&field](std::string_view text) { return ParseBool(text, field); },
      [&field] { return std::string(field ? "true" : "false"); });
}

ValuePtr Int(std::int64_t& field) {
  return Make(
      "int", [&field](std::string_view text) { return ParseSigned("ParseInt", text, 0, 64, field); },
      [&field] { return std::to_string(field); });
}

ValuePtr Int64(std::int64_t& field) {
  return Make(
      "int64", [&field](std::string_view text) { return ParseSigned("ParseInt", text, 0, 64, field); },
      [&field] { return std::to_string(field); });
}

ValuePtr Uint(std::uint64_t& field) {
  return Make(
      "uint", [&field](std::string_view text) { return ParseUnsigned(text, 0, 64, field); },
      [&field] { return std::to_string(field); });
}

ValuePtr Float64(double& field) {
  return Make(
      "float64", [&field](std::string_view text) { return ParseFloat(text, field); },
      [&field] { return FloatText(field); });
}

ValuePtr Float32(float& field) {
  return Make(
      "float32",
      [&field](std::string_view text) -> Error {
        double value = 0;
        if (auto error = ParseFloat(text, value)) return error;
        field = static_cast<float>(value);
        return std::nullopt;
      },
      [&field] { return FloatText(static_cast<double>(field)); });
}

ValuePtr Duration(std::chrono::nanoseconds& field) {
  return Make(
      "duration",
      [&field](std::string_view text) -> Error {
        std::string error;
        const auto value = base::ParseDuration(text, &error);
        if (!value) return error;
        field = *value;
        return std::nullopt;
      },
      [&field] { return base::FormatDuration(field); });
}

ValuePtr IP(std::string& field) {
  return Make(
      "ip",
      [&field](std::string_view text) -> Error {
        if (text.empty()) return std::nullopt;
        auto address = ParseIPSloppy(base::Trim(text));
        if (!address) return "failed to parse IP: " + base::GoQuote(text);
        field = *std::move(address);
        return std::nullopt;
      },
      [&field] { return field.empty() ? "<nil>" : field; });
}

ValuePtr StringSlice(Strings& field) {
  return Make(
      "stringSlice",
      [&field, used = false](std::string_view text) mutable -> Error {
        Strings pieces;
        if (auto error = ReadCSV(text, pieces)) return error;
        if (!std::exchange(used, true)) field.clear();
        field.insert(field.end(), pieces.begin(), pieces.end());
        return std::nullopt;
      },
      [&field] { return Braced(WriteCSV(field)); });
}

ValuePtr StringArray(Strings& field) {
  return Make(
      "stringArray",
      [&field, used = false](std::string_view text) mutable -> Error {
        if (!std::exchange(used, true)) field.clear();
        field.emplace_back(text);
        return std::nullopt;
      },
      [&field] { return Braced(WriteCSV(field)); });
}

ValuePtr Int32Slice(std::vector<std::int32_t>& field) {
  return Make(
      "int32Slice",
      [&field, used = false](std::string_view text) mutable -> Error {
        std::vector<std::int32_t> values;
        for (const std::string_view piece : base::Split(text, ',')) {
          std::int64_t value = 0;
          if (auto error = ParseSigned("ParseInt", piece, 0, 32, value)) return error;
          values.push_back(static_cast<std::int32_t>(value));
        }
        if (!std::exchange(used, true)) field.clear();
        field.insert(field.end(), values.begin(), values.end());
        return std::nullopt;
      },
      [&field] {
        Strings texts;
        for (const std::int32_t value : field) texts.push_back(std::to_string(value));
        return Braced(base::Join(texts, ","));
      });
}

ValuePtr StringToString(StringMap& field) {
  return Make(
      "stringToString",
      [&field, used = false](std::string_view text) mutable -> Error {
        Strings pairs;
        const auto equals = std::count(text.begin(), text.end(), '=');
        if (equals == 0) return std::string(text) + " must be formatted as key=value";
        if (equals == 1) {  // A single pair may hold commas: metric,label='a,b'.
          std::string_view one = text;
          while (one.starts_with('"')) one.remove_prefix(1);
          while (one.ends_with('"')) one.remove_suffix(1);
          pairs.emplace_back(one);
        } else if (auto error = ReadCSV(text, pairs)) {
          return error;
        }
        StringMap parsed;
        for (const std::string& pair : pairs) {
          const std::size_t at = pair.find('=');
          if (at == std::string::npos) return pair + " must be formatted as key=value";
          parsed[pair.substr(0, at)] = pair.substr(at + 1);
        }
        if (!std::exchange(used, true)) field.clear();
        for (auto& [key, value] : parsed) field[key] = value;
        return std::nullopt;
      },
      [&field] { return Braced(PairsText(field, true)); });
}

ValuePtr MapStringStringNoSplit(StringMap& field) {
  return Make(
      "mapStringString",
      [&field, used = false](std::string_view text) mutable -> Error {
        if (!std::exchange(used, true)) field.clear();
        auto [key, value] = SplitPair(text, '=');
        if (!value) return "malformed pair, expect string=string";
        field[key] = *std::move(value);
        return std::nullopt;
      },
      [&field] { return PairsText(field, false); });
}

ValuePtr ConfigurationMap(StringMap& field) {
  return Make(
      "mapStringString",
      [&field](std::string_view text) -> Error {
        for (const std::string_view item : base::Split(text, ',')) {
          if (item.empty()) continue;
          auto [key, value] = SplitPair(item, '=');
          field[key] = value.value_or("");
        }
        return std::nullopt;
      },
      [&field] { return PairsText(field, false); });
}

ValuePtr ColonSeparatedMultimap(Multimap& field) {
  return Make(
      "colonSeparatedMultimapStringString",
      [&field, used = false](std::string_view text) mutable -> Error {
        if (!std::exchange(used, true)) field.clear();
        for (const std::string_view item : base::Split(text, ',')) {
          if (item.empty()) continue;
          auto [key, value] = SplitPair(item, ':');
          if (value) {
            field[key].push_back(*std::move(value));
          } else {
            field[""].push_back(key);
          }
        }
        return std::nullopt;
      },
      [&field] {
        Strings pairs;
        for (const auto& [key, values] : field) {
          for (const std::string& value : values) pairs.push_back(key + ":" + value);
        }
        return base::Join(pairs, ",");
      });
}

ValuePtr NamedCertKeys(std::vector<NamedCertKey>& field) {
  return Make(
      "namedCertKey",
      [&field, used = false](std::string_view text) mutable -> Error {
        NamedCertKey pair;
        if (auto error = ParseNamedCertKey(text, pair)) return error;
        if (!std::exchange(used, true)) field.clear();
        field.push_back(std::move(pair));
        return std::nullopt;
      },
      [&field] {
        Strings texts;
        for (const NamedCertKey& pair : field) texts.push_back(pair.String());
        return Braced(base::Join(texts, ";"));
      });
}

ValuePtr Ports(PortRange& field) {
  return Make(
      "portRange", [&field](std::string_view text) { return ParsePortRange(text, field); },
      [&field] { return field.String(); });
}

ValuePtr Quantity(std::uint64_t& bytes) {
  return Make(
      "quantity", [&bytes](std::string_view text) { return ParseQuantity(text, bytes); },
      [&bytes] { return std::to_string(bytes); });
}

ValuePtr Level(std::int64_t& field) {
  return Make(
      "Level",
      [&field](std::string_view text) -> Error {
        std::uint64_t value = 0;
        if (auto error = ParseUnsigned(text, 10, 31, value)) return error;
        field = static_cast<std::int64_t>(value);
        return std::nullopt;
      },
      [&field] { return std::to_string(field); });
}

ValuePtr VModules(std::vector<log::VModule>& field) {
  return Make(
      "pattern=N,...",
      [&field](std::string_view text) -> Error {
        for (const std::string_view item : base::Split(text, ',')) {
          if (item.empty()) continue;
          const auto pieces = base::Split(item, '=');
          if (pieces.size() != 2 || pieces[0].empty() || pieces[1].empty()) {
            return base::GoQuote(item) + " does not have the pattern=N format";
          }
          std::uint64_t level = 0;
          if (auto error = ParseUnsigned(pieces[1], 10, 31, level))
            return "parsing verbosity in " + base::GoQuote(item) + ": " + *error;
          field.push_back({std::string(pieces[0]), static_cast<int>(level)});
        }
        return std::nullopt;
      },
      [&field] {
        Strings texts;
        for (const log::VModule& item : field) texts.push_back(item.pattern + "=" + std::to_string(item.level));
        return base::Join(texts, ",");
      });
}

ValuePtr Version(std::string& field) {
  return Make(
      "version",
      [&field](std::string_view text) -> Error {
        if (text == "raw" || text.starts_with('v')) return field = text, std::nullopt;
        bool wanted = false;
        if (auto error = ParseBool(text, wanted)) return error;
        field = wanted ? "true" : "false";
        return std::nullopt;
      },
      [&field] { return field; });
}

}  // namespace keelson::app
