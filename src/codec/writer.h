// Appends to a string through a plain pointer: room is asked for once per piece, then bytes are stored without checks.
// The string holds rubbish behind what was written until Finish(). Inner part of the encoders; not for other folders.
#pragma once

#include <emmintrin.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "codec/scan.h"

namespace keelson::codec {

class Writer {
 public:
  // Room that may always be written beyond what was asked for, so that short copies can store sixteen bytes.
  static constexpr std::size_t kSlack = 64;

  explicit Writer(std::string& out) : out_(out), at_(out.data() + out.size()), limit_(at_) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { Finish(); }

  void Finish() { out_.resize(size()), at_ = limit_ = out_.data() + out_.size(); }
  std::size_t size() const { return static_cast<std::size_t>(at_ - out_.data()); }
  char* data() { return out_.data(); }
  void Cut(std::size_t size) { at_ = out_.data() + size; }

  // Makes room for `bytes` (and kSlack).
  void Reserve(std::size_t bytes) {
    if (static_cast<std::size_t>(limit_ - at_) < bytes + kSlack || limit_ == at_) [[unlikely]]
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
    Reserve(text.size() + 2);
    *at_++ = '"';
    const char* from = text.data();
    std::size_t left = text.size();
    while (left >= 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at_), block);
      const unsigned mask = EscapeMask(block);
      if (mask != 0) [[unlikely]]
        return Escaped(from, left, static_cast<std::size_t>(__builtin_ctz(mask)));
      from += 16, at_ += 16, left -= 16;
    }
    if (left > 0) {
      const __m128i block = LoadTail(from, left);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at_), block);
      const unsigned mask = EscapeMask(block) & ((1u << left) - 1);
      if (mask != 0) [[unlikely]]
        return Escaped(from, left, static_cast<std::size_t>(__builtin_ctz(mask)));
      at_ += left;
    }
    *at_++ = '"';
  }

  // JSON text that was kept as it came: white space out, HTML characters escaped, as Go treats a Marshaler's output.
  void AppendCompact(std::string_view json);
  // A float64 as Go's encoder writes it.
  void AppendDouble(double value);

 private:
  void Grow(std::size_t bytes);
  void Escaped(const char* from, std::size_t left, std::size_t clean);

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

  std::string& out_;
  char* at_;
  char* limit_;
};

}  // namespace keelson::codec
