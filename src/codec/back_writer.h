// A buffer that is written from its end to its beginning, as gogo's marshalers do: a message's length is known when its
// content is done, so nothing is measured beforehand or moved afterwards. The write position is passed from call to
// call (`at`: the output begins there) and not kept here, so that it stays in a register. Inner part of the
// protobuf encoder; not for other folders.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "schema/schema.h"

namespace keelson::codec {

// A field's tag, in the last `size` of its four bytes.
struct WireTag {
  std::uint32_t bytes;
  std::uint32_t size;
};

class BackWriter {
 public:
  BackWriter() = default;
  BackWriter(const BackWriter&) = delete;
  BackWriter& operator=(const BackWriter&) = delete;

  char* end() const { return end_; }
  std::size_t Size(const char* at) const { return static_cast<std::size_t>(end_ - at); }
  std::string_view View(const char* at) const { return {at, Size(at)}; }

  // Room for `bytes` in front of `at`, and kSlack besides. Moves what is there when it grows.
  [[nodiscard]] char* Need(char* at, std::size_t bytes = 0) {
    if (static_cast<std::size_t>(at - begin_) < bytes + kSlack) [[unlikely]]
      return Grow(at, bytes);
    return at;
  }

  // Any bytes; leaves kSlack.
  [[nodiscard]] char* Append(char* at, std::string_view text) {
    at = Need(at, text.size()) - text.size();
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return at;
  }

  // The following need kSlack and take at most kFieldMax of it, beside texts longer than kShort, for which they make
  // room. The writer of a field reserves room once.

  // A part of a table, which has kBlock readable bytes in front of it.
  [[nodiscard]] char* Zeros(char* at, const char* end, std::size_t size) {
    if (size > kBlock) [[unlikely]] {
      at = Need(at, size);
      std::memcpy(at - size, end - size, size);
    } else {
      Store(at - kBlock, Load(end - kBlock));
    }
    return at - size;
  }
  [[nodiscard, gnu::always_inline]] char* String(char* at, WireTag tag, std::string_view text) {
    if (text.size() > kShort) [[unlikely]]
      return Long(at, tag, text);
    at = Copy(at, text.data(), text.size()) - 1;
    *at = static_cast<char>(text.size());
    return Tag(at, tag);
  }
  [[nodiscard]] char* Integer(char* at, WireTag tag, std::int64_t value) {
    if (static_cast<std::uint64_t>(value) < 0x80) [[likely]] {
      at[-1] = static_cast<char>(value);
      return Tag(at - 1, tag);
    }
    return Tag(Varint(at, static_cast<std::uint64_t>(value)), tag);
  }
  [[nodiscard]] char* Double(char* at, WireTag tag, double value) {
    std::memcpy(at - 8, &value, 8);
    return Tag(at - 8, tag);
  }
  // Length and tag of what was written since the buffer had `before` bytes.
  [[nodiscard]] char* Close(char* at, WireTag tag, std::size_t before) { return Length(at, tag, Size(at) - before); }

 private:
  static constexpr std::size_t kBlock = 16;
  static constexpr std::size_t kShort = 64;
  static constexpr std::size_t kFieldMax = kBlock + kShort + 2 * kBlock;  // zeros, a text, a number, a length, a tag
  static constexpr std::size_t kSlack = 2 * kFieldMax;                    // a map's entry has two
  static constexpr std::size_t kFirst = 16 * 1024;
  static_assert(kBlock == schema::kZeroPadding);

  static __m128i Load(const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
  static void Store(char* to, __m128i block) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), block); }

  // REQUIRES: at most kShort.
  [[gnu::always_inline]] static char* Copy(char* at, const char* from, std::size_t size) {
    char* to = at - size;
    if (size <= kBlock) {
      if (size == 0) return at;
      // Bytes stored in front of the text are overwritten by the next piece.
      Store(at - kBlock, LoadBefore(from + size, size));
    } else if (size <= 2 * kBlock) {
      const __m128i first = Load(from);
      Store(at - kBlock, Load(from + size - kBlock));
      Store(to, first);
    } else {
      Store(to, Load(from));
      Store(to + kBlock, Load(from + kBlock));
      Store(at - 2 * kBlock, Load(from + size - 2 * kBlock));
      Store(at - kBlock, Load(from + size - kBlock));
    }
    return to;
  }
  [[gnu::noinline]] char* Long(char* at, WireTag tag, std::string_view text) {
    return Length(Append(at, text), tag, text.size());
  }

  // A length without a branch where it is below 2^14, and the tag.
  static char* Length(char* at, WireTag tag, std::size_t size) {
    if (size >= 1u << 14) [[unlikely]]
      return Tag(Varint(at, size), tag);
    const bool two = size >= 0x80;
    const auto bytes = static_cast<std::uint16_t>(two ? (size & 0x7f) | 0x80 | (size >> 7) << 8 : size << 8);
    std::memcpy(at - 2, &bytes, 2);
    return Tag(at - 1 - two, tag);
  }
  [[gnu::noinline]] static char* Varint(char* at, std::uint64_t value) {
    at -= (std::bit_width(value | 1) + 6) / 7;
    char* to = at;
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
    *to = static_cast<char>(value);
    return at;
  }
  static char* Tag(char* at, WireTag tag) {
    std::memcpy(at - 4, &tag.bytes, 4);
    return at - tag.size;
  }

  // Sixteen bytes of which the last `left` are those before `end`.
  static __m128i LoadBefore(const char* end, std::size_t left) {
    if ((reinterpret_cast<std::uintptr_t>(end - 1) & 4095) >= 15) [[likely]]
      return LoadOver(end - 16);
    char copy[16] = {};
    std::memcpy(copy + 16 - left, end - left, left);
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(copy));
  }
  // Reading over the beginning within a page is harmless to the machine, but not to the sanitizers.
  [[clang::no_sanitize("address", "thread", "memory", "undefined")]] static __m128i LoadOver(const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }

  [[gnu::noinline]] char* Grow(char* at, std::size_t bytes) {
    const std::size_t used = Size(at);
    const std::size_t next = std::max(static_cast<std::size_t>(end_ - begin_) * 4, used + bytes + kSlack);
    auto grown = std::make_unique_for_overwrite<char[]>(next);
    std::memcpy(grown.get() + next - used, at, used);
    heap_ = std::move(grown);
    begin_ = heap_.get();
    end_ = begin_ + next;
    return end_ - used;
  }

  char first_[kFirst];
  std::unique_ptr<char[]> heap_;
  char* begin_ = first_;
  char* end_ = first_ + kFirst;
};

}  // namespace keelson::codec
