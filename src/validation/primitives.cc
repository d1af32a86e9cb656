#include "validation/primitives.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "meta/label_syntax.h"
#include "meta/name_syntax.h"

namespace keelson::validation {
namespace {

using meta::MatchesDNS1123Label;
using meta::MatchesDNS1123Subdomain;
using meta::RegexError;

constexpr std::size_t kSubdomainLengthMax = 253;
constexpr std::size_t kPortNameLengthMax = 15;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsLowerOrDigit(char c) { return IsLower(c) || IsDigit(c); }
bool IsAlphanumeric(char c) { return IsLetter(c) || IsDigit(c); }

std::string TooManyCharacters(std::size_t max) { return "must be no more than " + std::to_string(max) + " characters"; }

// _?[a-z0-9]([-_a-z0-9]*[a-z0-9])?
bool MatchesLabelWithUnderscore(std::string_view text) {
  if (text.starts_with('_')) text.remove_prefix(1);
  if (text.empty() || !IsLowerOrDigit(text.front()) || !IsLowerOrDigit(text.back())) return false;
  return std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-' || c == '_'; });
}

}  // namespace

Messages IsDNS1123Label(std::string_view text) { return meta::IsDNS1123Label(text); }
Messages IsDNS1123Subdomain(std::string_view text) { return meta::IsDNS1123Subdomain(text); }
Messages IsDNS1035Label(std::string_view text) { return meta::IsDNS1035Label(text); }

Messages IsDNS1123SubdomainWithUnderscore(std::string_view text) {
  Messages errors;
  if (text.size() > kSubdomainLengthMax) errors.push_back(TooManyCharacters(kSubdomainLengthMax));
  if (!std::ranges::all_of(base::Split(text, '.'), MatchesLabelWithUnderscore)) {
    errors.push_back(
        RegexError("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or "
                   "'.', and must start and end with "
                   "an alphanumeric character",
                   "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*", {"example.com"}));
  }
  return errors;
}

Messages IsWildcardDNS1123Subdomain(std::string_view text) {
  Messages errors;
  if (text.size() > kSubdomainLengthMax) errors.push_back(TooManyCharacters(kSubdomainLengthMax));
  if (!text.starts_with("*.") || !MatchesDNS1123Subdomain(text.substr(2))) {
    errors.push_back(
        RegexError("a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
                   "consist of lower case "
                   "alphanumeric characters, '-' or '.' and end with an alphanumeric character",
                   "\\*\\." + std::string(meta::kDNS1123SubdomainFormat), {"*.example.com"}));
  }
  return errors;
}

Messages IsQualifiedName(std::string_view text) { return meta::IsLabelKey(text); }
Messages IsValidLabelValue(std::string_view text) { return meta::IsLabelValue(text); }

Messages IsInRange(std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return {};
  return {"must be between " + std::to_string(min) + " and " + std::to_string(max) + ", inclusive"};
}

Messages IsValidPortNum(std::int64_t port) { return IsInRange(port, 1, 65535); }
Messages IsValidUserID(std::int64_t id) { return IsInRange(id, 0, std::numeric_limits<std::int32_t>::max()); }

Messages IsValidPortName(std::string_view text) {
  Messages errors;
  if (text.size() > kPortNameLengthMax) errors.push_back(TooManyCharacters(kPortNameLengthMax));
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; })) {
    errors.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::ranges::any_of(text, IsLower)) errors.push_back("must contain at least one letter (a-z)");
  if (text.find("--") != std::string_view::npos) errors.push_back("must not contain consecutive hyphens");
  if (text.starts_with('-') || text.ends_with('-')) errors.push_back("must not begin or end with a hyphen");
  return errors;
}

Messages IsValidPercent(std::string_view text) {
  if (text.size() > 1 && text.back() == '%' && std::ranges::all_of(text.substr(0, text.size() - 1), IsDigit)) return {};
  return {RegexError("a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%",
                     {"1%", "93%"})};
}

Messages IsHTTPHeaderName(std::string_view text) {
  if (!text.empty() && std::ranges::all_of(text, [](char c) { return IsAlphanumeric(c) || c == '-'; })) return {};
  return {RegexError("a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+",
                     {"X-Header-Name"})};
}

Messages IsEnvVarName(std::string_view text) {
  if (text.empty()) return {"environment variable name must be non-empty"};
  if (std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7e && c != '='; })) return {};
  return {"a valid environment variable name must consist only of printable ASCII characters other than '='"};
}

Messages IsConfigMapKey(std::string_view text) {
  Messages errors;
  if (text.size() > kSubdomainLengthMax) errors.push_back(TooManyCharacters(kSubdomainLengthMax));
  if (text.empty() ||
      !std::ranges::all_of(text, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '.' || c == '_'; })) {
    errors.push_back(RegexError("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                                "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  if (text == ".") {
    errors.push_back("must not be '.'");
  } else if (text == "..") {
    errors.push_back("must not be '..'");
  } else if (text.starts_with("..")) {
    errors.push_back("must not start with '..'");
  }
  return errors;
}

Messages IsValidPathSegmentName(std::string_view text) {
  if (text == "." || text == "..") return {"may not be '" + std::string(text) + "'"};
  return NameIsPathSegment(text, true);
}

Messages IsCIdentifier(std::string_view text) {
  if (!text.empty() && !IsDigit(text[0]) &&
      std::ranges::all_of(text, [](char c) { return IsAlphanumeric(c) || c == '_'; }))
    return {};
  return {
      RegexError("a valid C identifier must start with alphabetic character or '_', followed by a string of "
                 "alphanumeric characters "
                 "or '_'",
                 "[A-Za-z_][A-Za-z0-9_]*", {"my_name", "MY_NAME", "MyName"})};
}

void ValidateFullyQualifiedDomainName(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  if (const Messages wrong = IsDNS1123Subdomain(text); !wrong.empty()) {
    errors.push_back(Invalid(path, text, base::Join(wrong, ",")));
    return;
  }
  const auto labels = base::Split(text, '.');
  if (labels.size() < 2) {
    errors.push_back(Invalid(path, text, "should be a domain with at least two segments separated by dots"));
    return;
  }
  for (const std::string_view label : labels) {
    if (const Messages wrong = IsDNS1123Label(label); !wrong.empty()) {
      errors.push_back(Invalid(path, label, base::Join(wrong, ",")));
      return;
    }
  }
}

void ValidateFullyQualifiedName(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
  } else if (const Messages wrong = IsDNS1123Subdomain(text); !wrong.empty()) {
    errors.push_back(Invalid(path, text, base::Join(wrong, ",")));
  } else if (std::ranges::count(text, '.') < 2) {
    errors.push_back(Invalid(path, text, "should be a domain with at least three segments separated by dots"));
  }
}

void ValidateDomainPrefixedPath(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) {
    errors.push_back(Invalid(path, text, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    return;
  }
  const std::string_view host = text.substr(0, slash);
  for (const std::string& wrong : IsDNS1123Subdomain(host)) errors.push_back(Invalid(path, host, wrong));
  const std::string_view rest = text.substr(slash + 1);
  static constexpr std::string_view kPunctuation = "/-._~%!$&'()*+,;=:";
  if (!std::ranges::all_of(
          rest, [](char c) { return IsAlphanumeric(c) || kPunctuation.find(c) != std::string_view::npos; })) {
    errors.push_back(Invalid(path, rest, RegexError("Invalid path", "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+", {})));
  }
}

void ValidateDomainPrefixedKey(std::string_view text, const FieldPath& path, FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (const Messages wrong = IsQualifiedName(text); !wrong.empty()) {
    for (const std::string& message : wrong) errors.push_back(Invalid(path, text, message));
  } else if (text.find('/') == std::string_view::npos) {
    errors.push_back(Invalid(path, text, "must be a domain-prefixed key (such as \"acme.io/foo\")"));
  }
}

void ValidateNonnegative(std::int64_t value, const FieldPath& path, FieldErrors& errors) {
  if (value < 0) errors.push_back(Invalid(path, Value(value), "must be greater than or equal to 0"));
}

void ValidatePositive(std::int64_t value, const FieldPath& path, FieldErrors& errors) {
  if (value <= 0) errors.push_back(Invalid(path, Value(value), "must be greater than zero"));
}

namespace {

// Null, an empty list, or a map of nothing but such: what Go's zero values come from and go to.
bool IsNothing(const Value& value) {
  if (value.is_map())
    return std::ranges::all_of(value.members(), [](const object::Member& member) { return IsNothing(member.value); });
  return value.is_null() || (value.is_list() && value.empty());
}

}  // namespace

// Visits each member of both sides once: comparing in both directions at every level would double the work per level.
bool SemanticEqual(const Value& a, const Value& b) {
  if (a.is_list() && b.is_list()) return std::ranges::equal(a.items(), b.items(), SemanticEqual);
  if (!a.is_map() || !b.is_map()) {
    if (IsNothing(a) || IsNothing(b)) return IsNothing(a) && IsNothing(b);
    return a == b;
  }
  for (const object::Member& member : a.members()) {
    const Value* other = b.Find(member.key);
    if (other != nullptr ? !SemanticEqual(member.value, *other) : !IsNothing(member.value)) return false;
  }
  return std::ranges::all_of(
      b.members(), [&](const object::Member& member) { return a.Has(member.key) || IsNothing(member.value); });
}

void ValidateImmutableField(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors) {
  if (!SemanticEqual(now, old)) errors.push_back(Invalid(path, now, "field is immutable"));
}

Messages NameIsDNSSubdomain(std::string_view name, bool prefix) { return meta::NameIsDNSSubdomain(name, prefix); }
Messages NameIsDNSLabel(std::string_view name, bool prefix) { return meta::NameIsDNSLabel(name, prefix); }
Messages NameIsDNS1035Label(std::string_view name, bool prefix) { return meta::NameIsDNS1035Label(name, prefix); }

Messages NameIsPathSegment(std::string_view name, bool prefix) {
  if (!prefix) return IsValidPathSegmentName(name);
  Messages errors;
  for (const char c : {'/', '%'}) {
    if (name.find(c) != std::string_view::npos) errors.push_back(std::string("may not contain '") + c + "'");
  }
  return errors;
}

}  // namespace keelson::validation
