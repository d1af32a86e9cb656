// JSON's tokens, read from a padded copy of the text. The copy ends with a NUL, which no token may contain, so the
// loops need no end check; strings without escapes stay where they are, others are unescaped in place. Every function
// is false where the text is not well formed. Inner part of the JSON decoder; not for other folders.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/arena.h"
#include "codec/decode.h"
#include "codec/scan.h"

namespace keelson::codec {

class JSONTokens {
 public:
  // REQUIRES: behind `text`, perhaps after other bytes, there is a NUL with kScanPadding bytes from it on.
  JSONTokens(base::Arena& arena, const char* text) : arena_(arena), at_(text) {}

  // Passes over a value, checking it; no recursion, a bit per open container.
  bool Skip();

 protected:
  static bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }

  void Space() {
    while (IsSpace(*at_)) ++at_;
  }

  bool Literal(const char* word, std::size_t size) {
    if (std::memcmp(at_, word, size) != 0) return false;
    at_ += size;
    return true;
  }

  // REQUIRES: at_ is behind the opening quote; afterwards it is behind the closing one.
  bool String(std::string_view& out) {
    const char* start = at_;
    const char* special = FindStringSpecial(at_);
    if (*special == '"') [[likely]] {
      out = {start, static_cast<std::size_t>(special - start)};
      at_ = special + 1;
      return true;
    }
    return StringSlow(start, special, out);
  }

  // A number's text; at_ is at its first byte.
  bool Number(std::string_view& out, bool& integer) {
    const char* start = at_;
    const char* at = at_;
    integer = true;
    if (*at == '-') ++at;
    if (*at == '0') {
      ++at;
    } else if (IsDigit(*at)) {
      while (IsDigit(*at)) ++at;
    } else {
      return false;
    }
    if (*at == '.') {
      integer = false;
      if (!IsDigit(*++at)) return false;
      while (IsDigit(*at)) ++at;
    }
    if (*at == 'e' || *at == 'E') {
      integer = false;
      ++at;
      if (*at == '+' || *at == '-') ++at;
      if (!IsDigit(*at)) return false;
      while (IsDigit(*at)) ++at;
    }
    out = {start, static_cast<std::size_t>(at - start)};
    at_ = at;
    return true;
  }

  base::Arena& arena_;
  const char* at_ = nullptr;
  int depth_ = 0;

 private:
  bool StringSlow(const char* start, const char* special, std::string_view& out);
  bool SkipKey();
  bool SkipString();
};

}  // namespace keelson::codec
