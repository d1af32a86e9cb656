// Text as Kubernetes and Go write it. All functions take bytes; none assumes valid UTF-8 unless it says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::base {

std::vector<std::string_view> Split(std::string_view text,
                                    char separator);  // "" gives one empty piece, as Go's strings.Split
std::string_view Trim(std::string_view text);         // white space at both ends
std::string Join(const std::vector<std::string>& pieces, std::string_view separator);
std::string ToLower(std::string_view text);                     // ASCII only
bool EqualsIgnoreCase(std::string_view a, std::string_view b);  // ASCII only
std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);

bool IsPrint(char32_t rune);                                      // Go's unicode.IsPrint
std::string GoQuote(std::string_view text);                       // %q: double quotes, Go's escapes
std::optional<std::int64_t> ParseInt64(std::string_view text);    // strict base 10: optional sign, digits, nothing else
std::optional<std::uint64_t> ParseUint64(std::string_view text);  // strict base 10 digits

std::string Base64Encode(std::string_view bytes);     // standard alphabet with padding
std::string Base64URLEncode(std::string_view bytes);  // URL alphabet without padding (Go's RawURLEncoding)
std::optional<std::string> Base64Decode(
    std::string_view text);  // standard, padding required; newlines skipped as Go does
std::optional<std::string> Base64URLDecode(std::string_view text);  // URL alphabet, no padding
std::string HexEncode(std::string_view bytes);

// One code point from the start of `text`; invalid bytes give U+FFFD and length 1, as Go's utf8.DecodeRune.
struct Rune {
  char32_t value;
  int length;
};
Rune DecodeRune(std::string_view text);
void AppendUTF8(std::string& out, char32_t rune);
bool IsValidUTF8(std::string_view text);
std::string ToValidUTF8(std::string_view text);  // every invalid byte becomes U+FFFD

// Compares in a time that depends on the lengths only; for tokens and keys.
bool ConstantTimeEquals(std::string_view a, std::string_view b);

}  // namespace keelson::base
