#include "meta/options.h"

#include <string>

#include "base/strings.h"

namespace keelson::meta {
namespace {

// Go's %U.
std::string CodePoint(char32_t rune) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string digits;
  for (auto rest = static_cast<std::uint32_t>(rune); rest != 0 || digits.size() < 4; rest >>= 4) digits.insert(0, 1, kHex[rest & 15]);
  return "U+" + digits;
}

}  // namespace

void ValidateFieldManager(std::string_view manager, std::string_view field, FieldErrors& errors) {
  using Type = FieldError::Type;
  if (manager.size() > kFieldManagerBytesMax) {
    errors.push_back({Type::kTooLong, std::string(field), "", "may not be more than " + std::to_string(kFieldManagerBytesMax) + " bytes"});
  }
  for (std::size_t at = 0; at < manager.size();) {
    const auto rune = base::DecodeRune(manager.substr(at));
    if (!base::IsPrint(rune.value)) {
      errors.push_back({Type::kInvalid, std::string(field), base::GoQuote(manager),
                        "invalid character " + CodePoint(rune.value) + " (at position " + std::to_string(at) + ")"});
    }
    at += static_cast<std::size_t>(rune.length);
  }
}

}  // namespace keelson::meta
