#include "meta/name_syntax.h"

#include "meta/label_syntax.h"

namespace keelson::meta {
namespace {

constexpr std::size_t kLabelLengthMax = 63;
constexpr std::size_t kSubdomainLengthMax = 253;

std::string TooManyCharacters(std::size_t max) { return "must be no more than " + std::to_string(max) + " characters"; }

std::string Mask(std::string_view name) {
  // As upstream: the dash and the character before it go, one "a" comes.
  if (name.size() > 1 && name.ends_with('-')) return std::string(name.substr(0, name.size() - 2)) + "a";
  return std::string(name);
}

}  // namespace

std::vector<std::string> IsDNS1123Label(std::string_view text) {
  std::vector<std::string> errors;
  if (text.size() > kLabelLengthMax) errors.push_back(TooManyCharacters(kLabelLengthMax));
  if (MatchesDNS1123Label(text)) return errors;
  if (MatchesDNS1123Subdomain(text)) {
    errors.push_back("must not contain dots");
  } else {
    errors.push_back(
        RegexError("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
                   "start and end with an "
                   "alphanumeric character",
                   kDNS1123LabelFormat, {"my-name", "123-abc"}));
  }
  return errors;
}

std::vector<std::string> IsDNS1123Subdomain(std::string_view text) {
  std::vector<std::string> errors;
  if (text.size() > kSubdomainLengthMax) errors.push_back(TooManyCharacters(kSubdomainLengthMax));
  if (!MatchesDNS1123Subdomain(text)) {
    errors.push_back(RegexError(kDNS1123SubdomainMessage, kDNS1123SubdomainFormat, {"example.com"}));
  }
  return errors;
}

std::vector<std::string> IsDNS1035Label(std::string_view text) {
  std::vector<std::string> errors;
  if (text.size() > kLabelLengthMax) errors.push_back(TooManyCharacters(kLabelLengthMax));
  if (!MatchesDNS1123Label(text) || text.front() < 'a' || text.front() > 'z') {
    errors.push_back(
        RegexError("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                   "alphabetic character, and end with an "
                   "alphanumeric character",
                   "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return errors;
}

std::vector<std::string> NameIsDNSSubdomain(std::string_view name, bool prefix) {
  return prefix ? IsDNS1123Subdomain(Mask(name)) : IsDNS1123Subdomain(name);
}
std::vector<std::string> NameIsDNSLabel(std::string_view name, bool prefix) {
  return prefix ? IsDNS1123Label(Mask(name)) : IsDNS1123Label(name);
}
std::vector<std::string> NameIsDNS1035Label(std::string_view name, bool prefix) {
  return prefix ? IsDNS1035Label(Mask(name)) : IsDNS1035Label(name);
}

}  // namespace keelson::meta
