// Finding the end of a JSON string eight bytes at a time and the end of an object or list 64 bytes at a time, in text of
// any length. codec/scan.h has similar loops for buffers with padding. For JSON readers only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace keelson::object {
namespace internal {

static_assert(std::endian::native == std::endian::little);  // the lowest bit belongs to the first byte
constexpr std::uint64_t kEachByte = 0x0101010101010101;

// The high bit of every byte of `word` that is below `bound` (at most 128). Bits above the first one may be wrong.
constexpr std::uint64_t BytesBelow(std::uint64_t word, std::uint8_t bound) {
  return (word - kEachByte * bound) & ~word & (kEachByte * 0x80);
}
constexpr std::uint64_t BytesEqual(std::uint64_t word, char c) {
  return BytesBelow(word ^ (kEachByte * static_cast<std::uint8_t>(c)), 1);
}

}  // namespace internal

// Position of the first quote, backslash or byte below `control` at or after `from`; text.size() if there is none.
template <std::uint8_t control>
std::size_t FindInString(std::string_view text, std::size_t from) {
  for (; from + sizeof(std::uint64_t) <= text.size(); from += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + from, sizeof(word));
    std::uint64_t found = internal::BytesEqual(word, '"') | internal::BytesEqual(word, '\\');
    if constexpr (control > 0) found |= internal::BytesBelow(word, control);
    if (found != 0) return from + static_cast<std::size_t>(std::countr_zero(found)) / 8;
  }
  while (from < text.size() && text[from] != '"' && text[from] != '\\' &&
         static_cast<std::uint8_t>(text[from]) >= control)
    ++from;
  return from;
}

// The quote that ends a string or the backslash of an escape.
inline std::size_t FindStringEnd(std::string_view text, std::size_t from) { return FindInString<0>(text, from); }
// The same, or a control character, which a string must not have.
inline std::size_t FindStringSpecial(std::string_view text, std::size_t from) { return FindInString<0x20>(text, from); }

// Position behind the object or list that begins at `at`; npos if it does not end, or has more than `depth_max` levels.
// Brackets are counted, whatever is between them. REQUIRES: text[at] is '{' or '['.
std::size_t FindContainerEnd(std::string_view text, std::size_t at, int depth_max);

}  // namespace keelson::object
