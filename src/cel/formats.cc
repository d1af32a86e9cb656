// Named formats: format.dns1123Label() and so on.
#include <algorithm>

#include "base/strings.h"
#include "cel/library_values.h"
#include "meta/label_syntax.h"
#include "meta/name_syntax.h"
#include "object/go_url.h"
#include "object/time.h"

namespace keelson::cel {
namespace {

using Messages = std::vector<std::string>;

// Patterns of kube-openapi's strfmt; their lengths are part of the cost.
constexpr std::string_view kUUIDPattern = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
constexpr std::string_view kDateTimePattern = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
constexpr std::uint64_t kBase64PatternSize = 84;
constexpr std::uint64_t kURLPatternSize = 1103;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

Messages ValidateURI(std::string_view text) {
  const auto parsed = object::ParseRequestURI(text);
  return parsed.ok() ? Messages() : Messages{parsed.error()};
}

bool IsUUID(std::string_view text) {
  for (const int digits : {8, 4, 4, 4, 12}) {
    if (digits != 8 && text.starts_with('-')) text.remove_prefix(1);
    for (int i = 0; i < digits; ++i) {
      if (text.empty() || !IsHex(text[0])) return false;
      text.remove_prefix(1);
    }
  }
  return text.empty();
}

Messages ValidateUUID(std::string_view text) {
  return IsUUID(text) ? Messages() : Messages{"does not match the UUID format"};
}

// ^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$
bool IsBase64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return false;
  if (text.ends_with("==")) {
    text.remove_suffix(2);
  } else if (text.ends_with('=')) {
    text.remove_suffix(1);
  }
  return std::ranges::all_of(text, [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '/';
  });
}

Messages ValidateByte(std::string_view text) { return IsBase64(text) ? Messages() : Messages{"invalid base64"}; }

bool IsDate(std::string_view text) {
  return text.size() == 10 && object::ParseZonedTime(std::string(text) + "T00:00:00Z").ok();
}

Messages ValidateDate(std::string_view text) { return IsDate(text) ? Messages() : Messages{"invalid date"}; }

// kDateTimePattern by hand; the unescaped dot before the fraction matches any character but a newline.
bool IsClock(std::string_view text) {
  for (const char* shape = "00:00:00"; *shape != 0; ++shape) {
    if (text.empty() || (*shape == '0' ? !IsDigit(text[0]) : text[0] != ':')) return false;
    text.remove_prefix(1);
  }
  const auto zone = [](std::string_view rest) {
    return rest == "z" || (rest.size() == 6 && (rest[0] == '+' || rest[0] == '-') && IsDigit(rest[1]) &&
                           IsDigit(rest[2]) && rest[3] == ':' && IsDigit(rest[4]) && IsDigit(rest[5]));
  };
  if (zone(text)) return true;
  if (text.empty() || text[0] == '\n') return false;
  text.remove_prefix(static_cast<std::size_t>(base::DecodeRune(text).length));
  std::size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  return digits > 0 && zone(text.substr(digits));
}

bool IsDateTime(std::string_view text) {
  if (text.size() < 4) return false;
  const std::string lower = base::ToLower(text);
  const auto parts = base::Split(lower, 't');
  if (parts.size() < 2 || !IsDate(parts[0]) || !IsClock(parts[1])) return false;
  return parts[1].substr(0, 2) <= "23" && parts[1].substr(3, 2) <= "59" && parts[1].substr(6, 2) <= "59";
}

Messages ValidateDateTime(std::string_view text) {
  return IsDateTime(text) ? Messages() : Messages{"invalid datetime"};
}

template <Messages (*rule)(std::string_view, bool), bool prefix>
Messages ValidateName(std::string_view text) {
  return rule(text, prefix);
}

constexpr NamedFormat kFormats[] = {
    {"dns1123Label", "DNS1123Label", ValidateName<meta::NameIsDNSLabel, false>, 30},
    {"dns1123Subdomain", "DNS1123Subdomain", ValidateName<meta::NameIsDNSSubdomain, false>, 60},
    {"dns1035Label", "DNS1035Label", ValidateName<meta::NameIsDNS1035Label, false>, 30},
    {"qualifiedName", "QualifiedName", meta::IsLabelKey, 60},
    {"dns1123LabelPrefix", "DNS1123LabelPrefix", ValidateName<meta::NameIsDNSLabel, true>, 30},
    {"dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", ValidateName<meta::NameIsDNSSubdomain, true>, 60},
    {"dns1035LabelPrefix", "DNS1035LabelPrefix", ValidateName<meta::NameIsDNS1035Label, true>, 30},
    {"labelValue", "LabelValue", meta::IsLabelValue, 40},
    {"uri", "URI", ValidateURI, kURLPatternSize},
    {"uuid", "uuid", ValidateUUID, kUUIDPattern.size()},
    {"byte", "byte", ValidateByte, kBase64PatternSize},
    {"date", "date", ValidateDate, kDateTimePattern.size()},
    {"datetime", "datetime", ValidateDateTime, kDateTimePattern.size()},
};

}  // namespace

const NamedFormat* FindNamedFormat(std::string_view key) {
  const auto* found = std::ranges::find(kFormats, key, &NamedFormat::key);
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace keelson::cel
