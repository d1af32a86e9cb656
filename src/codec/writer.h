// Appends to a string through a plain pointer: room is reserved once per piece, then bytes are stored without checks.
// Short output is collected beside the string, so that the string grows once and to the right size; for longer output
// the string has unspecified bytes at its end until Finish(). Inner part of the encoders; not for other folders.
#pragma once

#include <emmintrin.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "codec/scan.h"
#include "schema/schema.h"

namespace keelson::codec {

class Writer {
 public:
  // Room that may always be written beyond the reserved bytes: enough for a key, a short text or a number, and for
  // copies that store whole blocks.
  static constexpr std::size_t kSlack = 192;
  static constexpr std::size_t kShort = 64;

  explicit Writer(std::string& out) : out_(out) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { Finish(); }

  void Finish();
  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }  // of what was written
  char* data() { return begin_; }
  void Cut(std::size_t size) { at_ = begin_ + size; }

  // Makes room for `bytes` (and kSlack).
  void Reserve(std::size_t bytes) {
    if (static_cast<std::size_t>(limit_ - at_) < bytes + kSlack) [[unlikely]]
      Grow(bytes);
  }
  char* at() { return at_; }
  void Advance(std::size_t bytes) { at_ += bytes; }

  void Put(char c) {
    Reserve(1);
    *at_++ = c;
  }
  // REQUIRES: reserved.
  void PutUnchecked(char c) { *at_++ = c; }
  void Append(std::string_view text) {
    Reserve(text.size());
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void Append(const char* text, std::size_t size) { Append(std::string_view(text, size)); }
  void AppendInt(std::int64_t value) {
    Reserve(24);
    at_ = std::to_chars(at_, at_ + 24, value).ptr;
  }

  // Quoted and escaped as Go's encoder does, HTML characters included.
  void AppendJSONString(std::string_view text) {
    Reserve(0);
    at_ = PutString(at_, text);
  }

  // Writes the separator before a member, and its key with the colon.
  void AppendKey(char before, const schema::Field& field) {
    Reserve(0);
    at_ = PutKey(at_, before, field.quoted, field.name.size());
  }

  // The same for callers that keep the write position in a register: the output ends at `at`, and Seek() passes it to
  // the functions above. Need() makes room for `bytes` and kSlack.
  [[nodiscard]] char* Need(char* at, std::size_t bytes = 0) {
    if (static_cast<std::size_t>(limit_ - at) < bytes + kSlack) [[unlikely]]
      return Moved(at, bytes);
    return at;
  }
  void Seek(char* at) { at_ = at; }
  // REQUIRES: kSlack. Of it a short text and a key take no more than kShort and a few bytes each.
  [[nodiscard, gnu::always_inline]] char* PutString(char* at, std::string_view text) {
    if (text.size() > kShort) [[unlikely]]
      at = Need(at, text.size() + 2);
    *at++ = '"';
    const char* from = text.data();
    std::size_t left = text.size();
    while (left > 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at), block);
      const unsigned mask = EscapeMask(block);
      if (mask != 0) [[unlikely]]
        return Escaped(at, from, left, static_cast<std::size_t>(__builtin_ctz(mask)));
      from += 16, at += 16, left -= 16;
    }
    if (left > 0) {
      const __m128i block = LoadTail(from, left);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at), block);
      const unsigned mask = EscapeMask(block) & ((1u << left) - 1);
      if (mask != 0) [[unlikely]]
        return Escaped(at, from, left, static_cast<std::size_t>(__builtin_ctz(mask)));
      at += left;
    }
    *at = '"';
    return at + 1;
  }
  [[nodiscard]] char* PutKey(char* at, char before, const char* quoted, std::size_t name_size) {
    constexpr std::size_t kBlock = schema::kQuotedPadding;
    static_assert(kBlock * 3 <= kSlack);
    const std::size_t size = name_size + 3;
    *at = before;
    std::memcpy(at + 1, quoted, kBlock);
    if (size > kBlock) [[unlikely]] {
      if (size > 2 * kBlock) at = Need(at, size);
      std::memcpy(at + 1 + kBlock, quoted + kBlock, size - kBlock);
    }
    return at + size + 1;
  }
  [[nodiscard]] static char* PutInt(char* at, std::int64_t value) {
    if (static_cast<std::uint64_t>(value) < 10) {
      *at = static_cast<char>('0' + value);
      return at + 1;
    }
    return std::to_chars(at, at + 24, value).ptr;
  }

  // JSON text that was kept as it came: white space out, HTML characters escaped, as Go treats a Marshaler's output.
  void AppendCompact(std::string_view json);
  // A float64 as Go's encoder writes it.
  void AppendDouble(double value);

 private:
  void Grow(std::size_t bytes);
  [[gnu::noinline]] char* Moved(char* at, std::size_t bytes) {
    at_ = at;
    Grow(bytes);
    return at_;
  }
  char* Escaped(char* at, const char* from, std::size_t left, std::size_t clean);

  // The last `left` (under 16) bytes of a text without reading over its end into another page.
  static __m128i LoadTail(const char* from, std::size_t left) {
    if ((reinterpret_cast<std::uintptr_t>(from) & 4095) <= 4096 - 16) [[likely]]
      return LoadPast(from);
    char copy[16] = {};
    std::memcpy(copy, from, left);
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(copy));
  }
  // Reading past the end within a page is harmless to the machine, but not to the sanitizers.
  [[clang::no_sanitize("address", "thread", "memory", "undefined")]] static __m128i LoadPast(const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }

  static constexpr std::size_t kFirst = 16 * 1024;

  std::string& out_;
  char first_[kFirst];
  char* begin_ = first_;
  char* at_ = first_;
  char* limit_ = first_ + kFirst;
};

}  // namespace keelson::codec
