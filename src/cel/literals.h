// Values of literal tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/arena.h"

namespace keelson::cel {

// The value of an integer literal, decimal or 0x, with an optional sign in front of the digits.
std::optional<std::int64_t> ParseIntLiteral(std::string_view digits, bool negative);
std::optional<std::uint64_t> ParseUintLiteral(std::string_view text);  // with its u
std::optional<double> ParseDoubleLiteral(std::string_view text, bool negative);

struct Unescaped {
  std::string_view value;
  std::string_view error;  // "" = none
};
// The text of a string literal with its quotes and r prefix (bytes: without the b). Allocates in `arena` only where
// there is something to change.
Unescaped Unescape(std::string_view literal, bool bytes, base::Arena& arena);

bool IsReservedIdentifier(std::string_view name);

}  // namespace keelson::cel
