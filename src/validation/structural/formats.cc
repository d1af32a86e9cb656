// String formats of custom resources, as kube-openapi's strfmt checks them.
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/duration.h"
#include "base/strings.h"
#include "base/url.h"
#include "validation/net.h"
#include "validation/structural/custom_resource.h"

namespace keelson::validation::structural {
namespace {

using Check = bool (*)(std::string_view text);

bool Matches(const re2::RE2& pattern, std::string_view text) {
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool IsBSONObjectID(std::string_view text) { return text.size() == 24 && std::ranges::all_of(text, IsHex); }

// ---- uri: url.ParseRequestURI

bool ValidEscapes(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    if (i + 2 >= text.size() || !IsHex(text[i + 1]) || !IsHex(text[i + 2])) return false;
    i += 2;
  }
  return true;
}

bool ValidPort(std::string_view port) {  // "" or ":" and digits
  return port.empty() || (port[0] == ':' && std::ranges::all_of(port.substr(1), IsDigit));
}

bool ValidHostCharacters(std::string_view host) {
  return std::ranges::none_of(host, [](char c) {
    return c == ' ' || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' || c == '`' || c == '{' || c == '|' ||
           c == '}' || c == '/' || c == '?' || c == '#' || c == '@';
  });
}

bool ValidAuthority(std::string_view authority) {
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = authority.substr(0, at);
    const bool allowed = std::ranges::all_of(user, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("-._:~!$&'()*+,;=%@").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (!allowed || !ValidEscapes(user)) return false;
    authority.remove_prefix(at + 1);
  }
  if (authority.starts_with('[')) {
    const std::size_t close = authority.rfind(']');
    return close != std::string_view::npos && ValidPort(authority.substr(close + 1));
  }
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && !ValidPort(authority.substr(colon))) return false;
  const std::string_view host = authority.substr(0, colon);
  for (std::size_t i = 0; i < host.size(); ++i) {  // Escapes in hosts are allowed for bytes beyond ASCII only.
    if (host[i] != '%') continue;
    if (i + 2 >= host.size() || !IsHex(host[i + 1]) || !IsHex(host[i + 2]) || host[i + 1] < '8') return false;
  }
  return ValidHostCharacters(host);
}

bool IsRequestURI(std::string_view text) {
  if (text.empty()) return false;
  if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) return false;
  if (text == "*") return true;
  std::string_view rest = text;
  bool scheme = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) continue;
    if (IsDigit(c) || c == '+' || c == '-' || c == '.') {
      if (i == 0) break;
      continue;
    }
    if (c == ':') {
      if (i == 0) return false;  // missing protocol scheme
      scheme = true;
      rest = text.substr(i + 1);
    }
    break;
  }
  if (const std::size_t query = rest.find('?'); query != std::string_view::npos) rest = rest.substr(0, query);
  if (!rest.starts_with('/')) return scheme;  // opaque: mailto:a@b; without a scheme a relative path is invalid
  if (rest.starts_with("//") && (scheme || !rest.starts_with("///"))) {
    rest.remove_prefix(2);
    const std::size_t slash = rest.find('/');
    if (!ValidAuthority(rest.substr(0, slash))) return false;
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  }
  return ValidEscapes(rest);
}

// ---- email: net/mail.ParseAddress of one address

class MailParser {
 public:
  explicit MailParser(std::string_view text) : rest_(text) {}

  bool Address() {
    if (!SkipSpace() || rest_.empty()) return false;
    const std::string_view begin = rest_;
    if (AddrSpec()) return SkipSpace() && rest_.empty();
    rest_ = begin;
    if (!rest_.starts_with('<') && !Phrase()) return false;
    if (!SkipSpace() || !Take('<')) return false;
    if (!AddrSpec() || !Take('>')) return false;
    return SkipSpace() && rest_.empty();
  }

 private:
  static bool IsAtext(char c, bool dot) {
    if (c == '.') return dot;
    if (static_cast<unsigned char>(c) > 127) return true;
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) return true;
    return std::string_view("!#$%&'*+-/=?^_`{|}~").find(c) != std::string_view::npos;
  }
  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void SkipBlanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  bool SkipSpace() {  // blanks and comments
    SkipBlanks();
    while (rest_.starts_with('(')) {
      int depth = 0;
      do {
        if (rest_.empty()) return false;
        const char c = rest_[0];
        rest_.remove_prefix(1);
        if (c == '\\' && !rest_.empty()) rest_.remove_prefix(1);
        if (c == '(') ++depth;
        if (c == ')') --depth;
      } while (depth > 0);
      SkipBlanks();
    }
    return true;
  }
  bool Quoted() {
    if (!Take('"')) return false;
    while (!rest_.empty()) {
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (rest_.empty()) return false;
        rest_.remove_prefix(1);
      } else if (static_cast<unsigned char>(c) < 0x20 && c != '\t') {
        return false;
      }
    }
    return false;
  }
  bool Atom(bool dot, bool permissive) {
    std::size_t size = 0;
    while (size < rest_.size() && IsAtext(rest_[size], dot)) ++size;
    if (size == 0) return false;
    const std::string_view atom = rest_.substr(0, size);
    if (!permissive && (atom.starts_with('.') || atom.find("..") != std::string_view::npos || atom.ends_with('.'))) {
      return false;
    }
    rest_.remove_prefix(size);
    return true;
  }
  bool Phrase() {
    bool any = false;
    for (;;) {
      SkipBlanks();
      if (rest_.empty() || rest_[0] == '<' || rest_[0] == '(') return any;
      if (rest_[0] == '"' ? !Quoted() : !Atom(true, true)) return any;
      any = true;
    }
  }
  bool AddrSpec() {
    if (rest_.empty()) return false;
    if (rest_[0] == '"' ? !Quoted() : !Atom(true, false)) return false;
    if (!Take('@')) return false;
    SkipBlanks();
    if (rest_.empty()) return false;
    if (rest_[0] == '[') {
      const std::size_t close = rest_.find(']');
      if (close == std::string_view::npos || close == 1) return false;
      const std::string_view literal = rest_.substr(1, close - 1);
      rest_.remove_prefix(close + 1);
      return ParseIPSloppy(literal.starts_with("IPv6:") ? literal.substr(5) : literal).has_value();
    }
    return Atom(true, false);
  }

  std::string_view rest_;
};

bool IsEmail(std::string_view text) { return MailParser(text).Address(); }

bool IsHostname(std::string_view text) {
  static const re2::RE2 kPattern(
      R"(([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63}))");
  if (text.size() > 255 || !Matches(kPattern, text)) return false;
  return std::ranges::all_of(base::Split(text, '.'), [](std::string_view part) { return part.size() <= 63; });
}

bool IsIPv4Text(std::string_view text) {
  return text.find('.') != std::string_view::npos && ParseIPSloppy(text).has_value();
}

// net.ParseIP refuses the leading zeros that the lenient reader takes.
bool IsIPv6Text(std::string_view text) {
  return text.find(':') != std::string_view::npos && ParseIPSloppy(text).has_value() && !HasLeadingZeros(text);
}

bool IsCIDRText(std::string_view text) { return ParseCIDRSloppy(text).has_value(); }

// net.ParseMAC: 6, 8 or 20 bytes, in pairs with : or -, or in fours with dots.
bool IsMAC(std::string_view text) {
  if (text.size() < 14) return false;
  const bool pairs = text[2] == ':' || text[2] == '-';
  const std::size_t group = pairs ? 2 : 4;
  const char separator = pairs ? text[2] : '.';
  if ((text.size() + 1) % (group + 1) != 0) return false;
  const std::size_t bytes = (text.size() + 1) / (group + 1) * (group / 2);
  if (bytes != 6 && bytes != 8 && bytes != 20) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_separator = i % (group + 1) == group;
    if (at_separator ? text[i] != separator : !IsHex(text[i])) return false;
  }
  return true;
}

template <const char* kText>
bool Pattern(std::string_view text) {
  static const re2::RE2 kPattern(kText);
  return Matches(kPattern, text);
}
constexpr char kUUID[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}";
constexpr char kUUID3[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}";
constexpr char kUUID4[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}";
constexpr char kUUID5[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}";
constexpr char kHexColor[] = "#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})";
constexpr char kRGBColor[] =
    R"(rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\))";
constexpr char kBase64[] = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})";
constexpr char kSSN[] = R"(\d{3}[- ]?\d{2}[- ]?\d{4})";
constexpr char kShortName[] = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr char kLongName[] = R"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)";
constexpr char kCreditCard[] =
    R"((?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}))";

bool IsSSN(std::string_view text) { return text.size() == 11 && Pattern<kSSN>(text); }
bool IsShortName(std::string_view text) { return text.size() <= 63 && Pattern<kShortName>(text); }
bool IsLongName(std::string_view text) { return text.size() <= 253 && Pattern<kLongName>(text); }

bool IsCreditCard(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (IsDigit(c)) digits += c;
  }
  if (!Pattern<kCreditCard>(digits)) return false;
  int sum = 0;
  bool twice = false;
  for (std::size_t i = digits.size(); i-- > 0; twice = !twice) {
    const int digit = (digits[i] - '0') * (twice ? 2 : 1);
    sum += digit >= 10 ? digit % 10 + 1 : digit;
  }
  return sum % 10 == 0;
}

std::string WithoutSpaceAndMinus(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c != '-' && c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f') kept += c;
  }
  return kept;
}

bool IsISBN10(std::string_view text) {
  const std::string digits = WithoutSpaceAndMinus(text);
  if (digits.size() != 10 || !std::ranges::all_of(std::string_view(digits).substr(0, 9), IsDigit)) return false;
  if (!IsDigit(digits[9]) && digits[9] != 'X') return false;
  int sum = 10 * (digits[9] == 'X' ? 10 : digits[9] - '0');
  for (int i = 0; i < 9; ++i) sum += (i + 1) * (digits[static_cast<std::size_t>(i)] - '0');
  return sum % 11 == 0;
}

bool IsISBN13(std::string_view text) {
  const std::string digits = WithoutSpaceAndMinus(text);
  if (digits.size() != 13 || !std::ranges::all_of(digits, IsDigit)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < 12; ++i) sum += (i % 2 == 0 ? 1 : 3) * (digits[i] - '0');
  return digits[12] - '0' == (10 - sum % 10) % 10;
}

bool IsISBN(std::string_view text) { return IsISBN10(text) || IsISBN13(text); }

bool IsDate(std::string_view text) {
  static const re2::RE2 kPattern(R"((\d{4})-(\d{2})-(\d{2}))");
  int year = 0, month = 0, day = 0;
  if (!re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), kPattern, &year, &month, &day)) return false;
  static constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1) return false;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= kDays[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

bool IsDateTime(std::string_view text) {
  if (text.size() < 4) return false;
  const std::string lower = base::ToLower(text);
  const auto parts = base::Split(lower, 't');
  if (parts.size() < 2 || !IsDate(parts[0])) return false;
  static const re2::RE2 kPattern(R"(([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2})))");
  int hour = 0, minute = 0, second = 0;
  if (!re2::RE2::FullMatch(re2::StringPiece(parts[1].data(), parts[1].size()), kPattern, &hour, &minute, &second)) {
    return false;
  }
  return hour <= 23 && minute <= 59 && second <= 59;
}

// time.ParseDuration, else Scala's words: a number and a unit anywhere in the text.
bool IsDuration(std::string_view text) {
  if (base::ParseDuration(text)) return true;
  static const re2::RE2 kPattern("(\\d+)\\s*([A-Za-zµ]+)");
  struct Unit {
    std::array<std::string_view, 4> names;  // the last one is a prefix
  };
  static constexpr std::array<Unit, 8> kUnits = {{{{"ns", "nano", "", ""}},
                                                  {{"us", "µs", "micro", ""}},
                                                  {{"ms", "milli", "", ""}},
                                                  {{"s", "sec", "", ""}},
                                                  {{"m", "min", "", ""}},
                                                  {{"h", "hr", "hour", ""}},
                                                  {{"d", "day", "", ""}},
                                                  {{"w", "wk", "week", ""}}}};
  re2::StringPiece rest(text.data(), text.size());
  re2::StringPiece number, word;
  bool found = false;
  while (re2::RE2::FindAndConsume(&rest, kPattern, &number, &word)) {
    if (number.size() > 18 && !base::ParseInt64(std::string_view(number.data(), number.size()))) return false;
    const std::string unit = base::ToLower(std::string_view(word.data(), word.size()));
    for (const Unit& candidate : kUnits) {
      std::size_t last = 0;
      while (last + 1 < candidate.names.size() && !candidate.names[last + 1].empty()) ++last;
      for (std::size_t i = 0; i <= last; ++i) {
        found = found || unit == candidate.names[i] || (i == last && unit.starts_with(candidate.names[i]));
      }
    }
  }
  return found;
}

bool Anything(std::string_view) { return true; }

struct Format {
  std::string_view name;  // without dashes
  Check check;
};
constexpr Format kFormats[] = {
    {"bsonobjectid", IsBSONObjectID},
    {"uri", IsRequestURI},
    {"email", IsEmail},
    {"hostname", IsHostname},
    {"ipv4", IsIPv4Text},
    {"ipv6", IsIPv6Text},
    {"cidr", IsCIDRText},
    {"mac", IsMAC},
    {"uuid", Pattern<kUUID>},
    {"uuid3", Pattern<kUUID3>},
    {"uuid4", Pattern<kUUID4>},
    {"uuid5", Pattern<kUUID5>},
    {"isbn", IsISBN},
    {"isbn10", IsISBN10},
    {"isbn13", IsISBN13},
    {"creditcard", IsCreditCard},
    {"ssn", IsSSN},
    {"hexcolor", Pattern<kHexColor>},
    {"rgbcolor", Pattern<kRGBColor>},
    {"byte", Pattern<kBase64>},
    {"password", Anything},
    {"date", IsDate},
    {"duration", IsDuration},
    {"datetime", IsDateTime},
    {"k8sshortname", IsShortName},
    {"k8slongname", IsLongName},
};

const Format* FindFormat(std::string_view name) {
  const std::string normalized = base::ReplaceAll(name, "-", "");
  const auto found = std::ranges::find(kFormats, std::string_view(normalized), &Format::name);
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace

bool IsKnownFormat(std::string_view type, std::string_view format) {
  if (type == "integer") return format == "int32" || format == "int64";
  if (type == "number") return format == "float" || format == "double";
  if (!type.empty() && type != "string") return false;
  return FindFormat(format) != nullptr;
}

bool MatchesFormat(std::string_view format, std::string_view text) {
  const Format* const known = FindFormat(format);
  return known == nullptr || known->check(text);
}

}  // namespace keelson::validation::structural
