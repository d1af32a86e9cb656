#include "codec/writer.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::codec {
namespace {
constexpr char kHex[] = "0123456789abcdef";
}

void Writer::Finish() {
  if (begin_ == first_) {
    out_.append(first_, size());
  } else {
    out_.resize(static_cast<std::size_t>(at_ - out_.data()));
  }
  begin_ = at_ = first_;
  limit_ = first_ + kFirst;
}

void Writer::Grow(std::size_t bytes) {
  const std::size_t used = size();
  const bool first = begin_ == first_;
  const std::size_t before = first ? out_.size() : static_cast<std::size_t>(begin_ - out_.data());
  const std::size_t wanted = before + std::max(used + bytes + kSlack, used * 2);
  // Not resize(): that would write zeros that are written over at once.
  out_.resize_and_overwrite(wanted, [](char*, std::size_t size) { return size; });
  begin_ = out_.data() + before;
  if (first) std::memcpy(begin_, first_, used);
  at_ = begin_ + used;
  limit_ = out_.data() + out_.size();
}

// `clean` bytes of `from` were already stored at `at`; goes on from there byte by byte.
[[gnu::noinline]] char* Writer::Escaped(char* at, const char* from, std::size_t left, std::size_t clean) {
  const char* const end = from + left;
  const char* in = from + clean;
  char* out = Need(at + clean, static_cast<std::size_t>(end - in) * 6 + 2);
  while (in < end) {
    const auto c = static_cast<unsigned char>(*in);
    if (c >= 0x80) {
      const base::Rune rune = base::DecodeRune({in, static_cast<std::size_t>(end - in)});
      if (rune.value == 0xFFFD && rune.length == 1) {
        std::memcpy(out, "\\ufffd", 6);
        out += 6;
      } else if (rune.value == 0x2028 || rune.value == 0x2029) {
        std::memcpy(out, rune.value == 0x2028 ? "\\u2028" : "\\u2029", 6);
        out += 6;
      } else {
        std::memcpy(out, in, static_cast<std::size_t>(rune.length));
        out += rune.length;
      }
      in += rune.length;
      continue;
    }
    ++in;
    if (c >= 0x20 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&') {
      *out++ = static_cast<char>(c);
      continue;
    }
    *out++ = '\\';
    switch (c) {
      case '"':
      case '\\':
        *out++ = static_cast<char>(c);
        break;
      case '\n':
        *out++ = 'n';
        break;
      case '\r':
        *out++ = 'r';
        break;
      case '\t':
        *out++ = 't';
        break;
      case '\b':
        *out++ = 'b';
        break;
      case '\f':
        *out++ = 'f';
        break;
      default:
        std::memcpy(out, "u00", 3);
        out[3] = kHex[c >> 4];
        out[4] = kHex[c & 15];
        out += 5;
    }
  }
  *out++ = '"';
  return out;
}

namespace {

// State of a scan of JSON text at one byte: inside a string, and whether a backslash escapes the byte.
struct StringState {
  bool in_string = false;
  bool escaped = false;
};

StringState StateAt(std::string_view json, const char* from) {
  StringState state;
  for (const char* at = json.data(); at < from; ++at) {
    if (*at == '\\') {
      ++at;
    } else if (*at == '"') {
      state.in_string = !state.in_string;
    }
  }
  std::size_t backslashes = 0;
  for (const char* at = from; at > json.data() && at[-1] == '\\'; --at) ++backslashes;
  state.escaped = state.in_string && backslashes % 2 == 1;
  return state;
}

}  // namespace

void Writer::AppendCompact(std::string_view json) {
  Reserve(json.size());
  const char* from = json.data();
  std::size_t left = json.size();
  while (left >= 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    if (CompactMask(block) != 0) break;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at_), block);
    from += 16, at_ += 16, left -= 16;
  }
  if (left < 16) {
    // The last few bytes: nothing in them to change either, mostly.
    bool plain = true;
    for (std::size_t i = 0; i < left; ++i) {
      const auto c = static_cast<unsigned char>(from[i]);
      plain = plain && c > 0x20 && c != '<' && c != '>' && c != '&' && c != 0xE2;
    }
    if (plain) {
      std::memcpy(at_, from, left);
      at_ += left;
      return;
    }
  }
  auto [in_string, escaped] = StateAt(json, from);
  for (const char* end = from + left; from < end; ++from) {
    Reserve(6);
    const char c = *from;
    if (!in_string) {
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
      in_string = c == '"';
      *at_++ = c;
      continue;
    }
    if (c == '<' || c == '>' || c == '&') {
      std::memcpy(at_, "\\u00", 4);
      at_[4] = kHex[static_cast<unsigned char>(c) >> 4];
      at_[5] = kHex[static_cast<unsigned char>(c) & 15];
      at_ += 6;
      escaped = false;
      continue;
    }
    if (c == '\xE2' && end - from >= 3 && from[1] == '\x80' && (from[2] == '\xA8' || from[2] == '\xA9')) {
      std::memcpy(at_, from[2] == '\xA8' ? "\\u2028" : "\\u2029", 6);
      at_ += 6;
      from += 2;
      escaped = false;
      continue;
    }
    if (escaped) {
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
    } else if (c == '"') {
      in_string = false;
    }
    *at_++ = c;
  }
}

void Writer::AppendDouble(double value) {
  Reserve(40);
  const double magnitude = std::fabs(value);
  const bool exponent = magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21);
  if (!exponent) {
    if (magnitude < 0x1p53) {
      at_ = std::to_chars(at_, at_ + 40, value, std::chars_format::fixed).ptr;
      return;
    }
    // The shortest digits, then zeros: fixed notation would write digits that say nothing.
    std::string text;
    object::AppendJSONDouble(text, value);
    at_ = std::copy(text.begin(), text.end(), at_);
    return;
  }
  char* start = at_;
  char* end = std::to_chars(at_, at_ + 40, value, std::chars_format::scientific).ptr;
  // Go takes the leading zero off negative exponents only: 1e-09 is 1e-9, 1e+21 stays.
  if (end - start >= 4 && end[-4] == 'e' && end[-3] == '-' && end[-2] == '0') {
    end[-2] = end[-1];
    --end;
  }
  at_ = end;
}

}  // namespace keelson::codec
