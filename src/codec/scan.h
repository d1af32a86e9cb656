// Finding the next interesting byte sixteen at a time. Inner loops of the JSON reader and writers; not for other
// folders.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/arena.h"

namespace keelson::codec {

// The reader's buffer has this many readable bytes behind its end, so that blocks may be read whole.
constexpr std::size_t kScanPadding = 32;

// Whether text is one JSON value. REQUIRES: it lies in a buffer that ends with kScanPadding NUL bytes, perhaps after
// other bytes.
bool IsJSONInPlace(base::Arena& arena, std::string_view text);

// The first quote, backslash, control character or non-ASCII byte at or after `at`. REQUIRES: one exists before the
// padding ends.
inline const char* FindStringSpecial(const char* at) {
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(0x20);
  for (;; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // Signed: bytes from 0x80 on are negative, so below the space like control characters.
    const __m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)),
                                         _mm_cmplt_epi8(block, space));
    if (const int mask = _mm_movemask_epi8(special); mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
  }
}

// The same, passing over non-ASCII bytes.
inline const char* FindStringEnd(const char* at) {
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
  for (;; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)),
                                         _mm_cmpeq_epi8(_mm_min_epu8(block, control), block));
    if (const int mask = _mm_movemask_epi8(special); mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
  }
}

// Mask of the bytes, of sixteen, that JSON output must escape: quote, backslash, <, >, &, control characters and
// non-ASCII.
inline unsigned EscapeMask(__m128i block) {
  const __m128i special = _mm_or_si128(
      _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))),
      _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('&')), _mm_cmplt_epi8(block, _mm_set1_epi8(0x20))),
                   // '<' and '>' differ in one bit.
                   _mm_cmpeq_epi8(_mm_or_si128(block, _mm_set1_epi8(2)), _mm_set1_epi8('>'))));
  return static_cast<unsigned>(_mm_movemask_epi8(special));
}

// Mask of the bytes that compacting JSON text cannot copy: white space, <, >, &, and the first byte of U+2028.
inline unsigned CompactMask(__m128i block) {
  const __m128i special =
      _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x20)), block),
                                _mm_cmpeq_epi8(block, _mm_set1_epi8('\xE2'))),
                   _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('&')),
                                _mm_cmpeq_epi8(_mm_or_si128(block, _mm_set1_epi8(2)), _mm_set1_epi8('>'))));
  return static_cast<unsigned>(_mm_movemask_epi8(special));
}

}  // namespace keelson::codec
