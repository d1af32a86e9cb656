#include "codec/json_tokens.h"

#include "base/strings.h"

namespace keelson::codec {
namespace {

bool Hex4(const char* at, std::uint32_t& out) {
  out = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      digit = static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      return false;
    }
    out = out << 4 | digit;
  }
  return true;
}

char* PutRune(char* out, std::uint32_t rune) {
  if (rune < 0x80) {
    *out++ = static_cast<char>(rune);
  } else if (rune < 0x800) {
    *out++ = static_cast<char>(0xC0 | rune >> 6);
    *out++ = static_cast<char>(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    *out++ = static_cast<char>(0xE0 | rune >> 12);
    *out++ = static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    *out++ = static_cast<char>(0x80 | (rune & 0x3F));
  } else {
    *out++ = static_cast<char>(0xF0 | rune >> 18);
    *out++ = static_cast<char>(0x80 | (rune >> 12 & 0x3F));
    *out++ = static_cast<char>(0x80 | (rune >> 6 & 0x3F));
    *out++ = static_cast<char>(0x80 | (rune & 0x3F));
  }
  return out;
}

bool Escape(const char*& read, char*& write) {
  switch (read[1]) {
    case 'n':
      *write++ = '\n';
      break;
    case 't':
      *write++ = '\t';
      break;
    case 'r':
      *write++ = '\r';
      break;
    case 'b':
      *write++ = '\b';
      break;
    case 'f':
      *write++ = '\f';
      break;
    case '"':
      *write++ = '"';
      break;
    case '\\':
      *write++ = '\\';
      break;
    case '/':
      *write++ = '/';
      break;
    case 'u': {
      std::uint32_t rune = 0, low = 0;
      if (!Hex4(read + 2, rune)) return false;
      read += 6;
      if (rune >= 0xD800 && rune < 0xE000) {
        if (rune < 0xDC00 && read[0] == '\\' && read[1] == 'u' && Hex4(read + 2, low) && low >= 0xDC00 &&
            low < 0xE000) {
          rune = 0x10000 + ((rune - 0xD800) << 10) + (low - 0xDC00);
          read += 6;
        } else {
          rune = 0xFFFD;  // half of a pair
        }
      }
      write = PutRune(write, rune);
      return true;
    }
    default:
      return false;
  }
  read += 2;
  return true;
}

}  // namespace

[[gnu::noinline]] bool JSONTokens::StringSlow(const char* start, const char* special, std::string_view& out) {
  bool ascii = true;
  while (static_cast<unsigned char>(*special) >= 0x80) {
    ascii = false;
    special = FindStringEnd(special);
  }
  if (*special == '"') {
    out = {start, static_cast<std::size_t>(special - start)};
    at_ = special + 1;
    if (!ascii && !base::IsValidUTF8(out)) out = arena_.Copy(base::ToValidUTF8(out));
    return true;
  }
  if (*special != '\\') return false;
  // The text shrinks as escapes are resolved, so it is written over itself.
  char* write = const_cast<char*>(special);
  const char* read = special;
  for (;;) {
    if (*read == '\\') {
      if (!Escape(read, write)) return false;
    } else if (*read == '"') {
      break;
    } else if (static_cast<unsigned char>(*read) < 0x20) {
      return false;
    } else {
      ascii = ascii && static_cast<unsigned char>(*read) < 0x80;
      *write++ = *read++;
    }
  }
  at_ = read + 1;
  out = {start, static_cast<std::size_t>(write - start)};
  if (!ascii && !base::IsValidUTF8(out)) out = arena_.Copy(base::ToValidUTF8(out));
  return true;
}

bool JSONTokens::Skip() {
  std::uint64_t objects[kDepthMax / 64 + 2];
  int open = 0;
  for (;;) {
    Space();
    switch (*at_) {
      case '{':
      case '[': {
        const bool object = *at_++ == '{';
        if (depth_ + ++open > kDepthMax) return false;
        std::uint64_t& word = objects[open / 64];
        const std::uint64_t bit = std::uint64_t{1} << (open % 64);
        word = object ? word | bit : word & ~bit;
        Space();
        if (*at_ == (object ? '}' : ']')) {
          ++at_;
          --open;
          break;
        }
        if (object && !SkipKey()) return false;
        continue;
      }
      case '"': {
        ++at_;
        if (!SkipString()) return false;
        break;
      }
      case 't':
        if (!Literal("true", 4)) return false;
        break;
      case 'f':
        if (!Literal("false", 5)) return false;
        break;
      case 'n':
        if (!Literal("null", 4)) return false;
        break;
      default: {
        std::string_view number;
        bool integer = false;
        if (!Number(number, integer)) return false;
      }
    }
    for (;;) {
      if (open == 0) return true;
      Space();
      const bool object = (objects[open / 64] >> (open % 64) & 1) != 0;
      if (*at_ == ',') {
        ++at_;
        if (object) {
          Space();
          if (!SkipKey()) return false;
        }
        break;
      }
      if (*at_ != (object ? '}' : ']')) return false;
      ++at_;
      --open;
    }
  }
}

bool JSONTokens::SkipKey() {
  if (*at_ != '"') return false;
  ++at_;
  if (!SkipString()) return false;
  Space();
  return *at_++ == ':';
}

bool JSONTokens::SkipString() {
  const char* at = at_;
  for (;;) {
    at = FindStringEnd(at);
    if (*at == '"') {
      at_ = at + 1;
      return true;
    }
    if (*at != '\\') return false;
    if (at[1] == 'u') {
      std::uint32_t rune = 0;
      if (!Hex4(at + 2, rune)) return false;
      at += 6;
    } else {
      if (at[1] == '\0' || std::strchr("bfnrt\\/\"", at[1]) == nullptr) return false;
      at += 2;
    }
  }
}

}  // namespace keelson::codec
