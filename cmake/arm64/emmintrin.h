// The eight SSE2 operations that the codecs use, in NEON. Only builds for arm64 find this header (cmake/arm64.cmake);
// others have the compiler's.
#pragma once

#include <arm_neon.h>

#include <cstdint>

using __m128i = uint8x16_t;

inline __m128i _mm_loadu_si128(const __m128i* from) { return vld1q_u8(reinterpret_cast<const std::uint8_t*>(from)); }
inline void _mm_storeu_si128(__m128i* to, __m128i bytes) { vst1q_u8(reinterpret_cast<std::uint8_t*>(to), bytes); }
inline __m128i _mm_set1_epi8(char byte) { return vdupq_n_u8(static_cast<std::uint8_t>(byte)); }
inline __m128i _mm_cmpeq_epi8(__m128i a, __m128i b) { return vceqq_u8(a, b); }
// Signed, as SSE2 has it.
inline __m128i _mm_cmplt_epi8(__m128i a, __m128i b) { return vcltq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)); }
inline __m128i _mm_min_epu8(__m128i a, __m128i b) { return vminq_u8(a, b); }
inline __m128i _mm_or_si128(__m128i a, __m128i b) { return vorrq_u8(a, b); }
// The top bit of each byte, byte 0 lowest: each half is one sum of distinct powers of two.
inline int _mm_movemask_epi8(__m128i bytes) {
  constexpr std::uint8_t kPowers[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t top = vreinterpretq_u8_s8(vshrq_n_s8(vreinterpretq_s8_u8(bytes), 7));
  const uint8x16_t bits = vandq_u8(top, vld1q_u8(kPowers));
  return vaddv_u8(vget_low_u8(bits)) | (vaddv_u8(vget_high_u8(bits)) << 8);
}
