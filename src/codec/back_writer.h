// A buffer that is written from its end to its beginning, as gogo's marshalers do: a message's length is known when its
// content is done, so nothing is measured beforehand or moved afterwards. Where the writing stands is handed from call
// to call (`at`: what is done begins there) rather than kept here, so that it stays in a register. Inner part of the
// protobuf encoder; not for other folders.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

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

  // Room for `bytes` in front of `at`, and for a number, a length and a tag besides. Moves what is there when it grows.
  [[nodiscard]] char* Need(char* at, std::size_t bytes) {
    if (static_cast<std::size_t>(at - begin_) < bytes + kSlack) [[unlikely]]
      return Grow(at, bytes);
    return at;
  }

  [[nodiscard]] char* Append(char* at, std::string_view text) {
    at = Need(at, text.size());
    const char* from = text.data() + text.size();
    std::size_t left = text.size();
    if (left > kCopyMax) [[unlikely]] {
      at -= left;
      std::memcpy(at, text.data(), left);
      return at;
    }
    for (; left > 16; left -= 16) {
      from -= 16, at -= 16;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }
    if (left == 0) return at;
    // What is stored in front of the text is written over by what comes next.
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at - 16), LoadBefore(from, left));
    return at - left;
  }
  [[nodiscard]] char* String(char* at, WireTag tag, std::string_view text) {
    at = Append(at, text);
    return Tag(Varint(at, text.size()), tag);
  }
  [[nodiscard]] char* Integer(char* at, WireTag tag, std::int64_t value) {
    at = Need(at, 0);
    return Tag(Varint(at, static_cast<std::uint64_t>(value)), tag);
  }
  [[nodiscard]] char* Double(char* at, WireTag tag, double value) {
    at = Need(at, 8) - 8;
    std::memcpy(at, &value, 8);
    return Tag(at, tag);
  }
  // Length and tag of what was written since the buffer had `before` bytes.
  [[nodiscard]] char* Close(char* at, WireTag tag, std::size_t before) {
    at = Need(at, 0);
    return Tag(Varint(at, Size(at) - before), tag);
  }

 private:
  static constexpr std::size_t kSlack = 32;
  static constexpr std::size_t kCopyMax = 256;  // the library's copy is faster above
  static constexpr std::size_t kFirst = 16 * 1024;

  static char* Varint(char* at, std::uint64_t value) {
    if (value < 0x80) [[likely]] {
      *--at = static_cast<char>(value);
      return at;
    }
    at -= (std::bit_width(value) + 6) / 7;
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
