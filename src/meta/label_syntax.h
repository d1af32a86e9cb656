// The syntax of label keys and values, with apimachinery's messages. Selectors and validation both build on it.
// A check returns what is wrong, in words; nothing means valid. A valid text costs no allocation.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::meta {

std::vector<std::string> IsLabelKey(std::string_view text);  // also: qualified name
std::vector<std::string> IsLabelValue(std::string_view text);

// The bare matchers.
bool MatchesDNS1123Label(std::string_view text);      // any length
bool MatchesDNS1123Subdomain(std::string_view text);  // any length
bool MatchesLabelName(std::string_view text);         // ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9], any length

inline constexpr std::string_view kDNS1123LabelFormat = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
inline constexpr std::string_view kDNS1123SubdomainFormat =
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
inline constexpr std::string_view kDNS1123SubdomainMessage =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an "
    "alphanumeric character";

// `<message> (e.g. 'a',  or 'b', regex used for validation is '<format>')`.
std::string RegexError(std::string_view message, std::string_view format,
                       std::initializer_list<std::string_view> examples);

}  // namespace keelson::meta
