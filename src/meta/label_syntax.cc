#include "meta/label_syntax.h"

#include <algorithm>

namespace keelson::meta {
namespace {

constexpr std::size_t kLabelLengthMax = 63;
constexpr std::size_t kSubdomainLengthMax = 253;
constexpr std::string_view kLabelNameFormat = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kLabelNameMessage =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
constexpr std::string_view kLabelValueFormat = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
constexpr std::string_view kLabelValueMessage =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an "
    "alphanumeric character";

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

std::string TooManyBytes(std::size_t max) { return "must be no more than " + std::to_string(max) + " bytes"; }
std::string LabelNameError() {
  return RegexError(kLabelNameMessage, kLabelNameFormat, {"MyName", "my.name", "123-abc"});
}

}  // namespace

std::string RegexError(std::string_view message, std::string_view format,
                       std::initializer_list<std::string_view> examples) {
  std::string out(message);
  out += " (";
  if (examples.size() > 0) out += "e.g. ";
  bool first = true;
  for (const std::string_view example : examples) {
    if (!first) out += " or ";
    first = false;
    out += '\'';
    out += example;
    out += "', ";
  }
  out += "regex used for validation is '";
  out += format;
  out += "')";
  return out;
}

bool MatchesDNS1123Label(std::string_view text) {
  if (text.empty() || !IsLowerOrDigit(text.front()) || !IsLowerOrDigit(text.back())) return false;
  return std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool MatchesDNS1123Subdomain(std::string_view text) {
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!MatchesDNS1123Label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool MatchesLabelName(std::string_view text) {
  if (text.empty() || !IsAlphanumeric(text.front()) || !IsAlphanumeric(text.back())) return false;
  return std::ranges::all_of(text, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::vector<std::string> IsLabelKey(std::string_view text) {
  std::vector<std::string> errors;
  std::string_view name = text;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return {"a valid label key " + LabelNameError() +
              " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
    }
    if (prefix.empty()) {
      errors.push_back("prefix part must be non-empty");
    } else {
      if (prefix.size() > kSubdomainLengthMax) errors.push_back("prefix part " + TooManyBytes(kSubdomainLengthMax));
      if (!MatchesDNS1123Subdomain(prefix)) {
        errors.push_back("prefix part " +
                         RegexError(kDNS1123SubdomainMessage, kDNS1123SubdomainFormat, {"example.com"}));
      }
    }
  }
  if (name.empty()) {
    errors.push_back("name part must be non-empty");
  } else if (name.size() > kLabelLengthMax) {
    errors.push_back("name part " + TooManyBytes(kLabelLengthMax));
  }
  if (!MatchesLabelName(name)) errors.push_back("name part " + LabelNameError());
  return errors;
}

std::vector<std::string> IsLabelValue(std::string_view text) {
  std::vector<std::string> errors;
  if (text.size() > kLabelLengthMax) errors.push_back(TooManyBytes(kLabelLengthMax));
  if (!text.empty() && !MatchesLabelName(text)) {
    errors.push_back(RegexError(kLabelValueMessage, kLabelValueFormat, {"MyValue", "my_value", "12345"}));
  }
  return errors;
}

}  // namespace keelson::meta
