#include "object/json_scan.h"

#include <emmintrin.h>

namespace keelson::object {
namespace {

constexpr std::size_t kBlockBytes = 64;

// A bit for each byte of a block.
struct Masks {
  std::uint64_t quotes = 0, backslashes = 0, opening = 0, closing = 0;
};

Masks MasksOf(const char* block) {
  Masks masks;
  const auto add = [](std::uint64_t& mask, __m128i found, unsigned shift) {
    mask |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(found))) << shift;
  };
  for (unsigned i = 0; i < kBlockBytes; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const __m128i braces = _mm_or_si128(bytes, _mm_set1_epi8(0x20));  // [ and ] as { and }
    add(masks.quotes, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), i);
    add(masks.backslashes, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')), i);
    add(masks.opening, _mm_cmpeq_epi8(braces, _mm_set1_epi8('{')), i);
    add(masks.closing, _mm_cmpeq_epi8(braces, _mm_set1_epi8('}')), i);
  }
  return masks;
}

// Carries the state of strings and brackets from block to block.
class ContainerScan {
 public:
  explicit ContainerScan(int depth_max) : depth_max_(depth_max) {}

  enum class Found : std::uint8_t { kNothing, kEnd, kTooDeep };
  // kEnd: the container ends before byte `end()` of this block.
  Found Next(const char* block) {
    Masks masks = MasksOf(block);
    if (masks.backslashes != 0 || escaped_) masks.quotes &= ~Escaped(masks.backslashes);
    const std::uint64_t strings = InStrings(masks.quotes);
    return Count(masks.opening & ~strings, masks.closing & ~strings);
  }
  std::size_t end() const { return end_; }

 private:
  // Bytes behind a backslash that is not itself escaped: runs of backslashes by the parity of their begin and end.
  std::uint64_t Escaped(std::uint64_t backslashes) {
    constexpr std::uint64_t kEven = 0x5555555555555555;
    const std::uint64_t carried = escaped_ ? 1 : 0;
    backslashes &= ~carried;
    const std::uint64_t behind = backslashes << 1 | carried;
    const std::uint64_t odd_begins = backslashes & ~kEven & ~behind;
    std::uint64_t runs = 0;
    escaped_ = __builtin_add_overflow(odd_begins, backslashes, &runs);
    return (kEven ^ (runs << 1)) & behind;
  }

  // Bytes from an opening quote on up to its closing quote.
  std::uint64_t InStrings(std::uint64_t quotes) {
    for (unsigned shift = 1; shift < 64; shift *= 2) quotes ^= quotes << shift;
    const std::uint64_t strings = in_string_ ? ~quotes : quotes;
    in_string_ = strings >> 63 != 0;
    return strings;
  }

  Found Count(std::uint64_t opening, std::uint64_t closing) {
    const int opens = std::popcount(opening), closes = std::popcount(closing);
    if (closes < depth_ && opens <= depth_max_ - depth_) {
      depth_ += opens - closes;
      return Found::kNothing;
    }
    for (std::uint64_t left = opening | closing; left != 0; left &= left - 1) {
      const bool opens_one = (opening & left & -left) != 0;
      depth_ += opens_one ? 1 : -1;
      if (depth_ > depth_max_) return Found::kTooDeep;
      if (depth_ > 0) continue;
      end_ = static_cast<std::size_t>(std::countr_zero(left)) + 1;
      return Found::kEnd;
    }
    return Found::kNothing;
  }

  const int depth_max_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;  // the first byte of the next block
  std::size_t end_ = 0;
};

}  // namespace

std::size_t FindContainerEnd(std::string_view text, std::size_t at, int depth_max) {
  ContainerScan scan(depth_max);
  char last[kBlockBytes];
  while (at < text.size()) {
    const char* block = text.data() + at;
    if (text.size() - at < kBlockBytes) {
      std::memset(last, 0, sizeof(last));
      std::memcpy(last, block, text.size() - at);
      block = last;
    }
    switch (scan.Next(block)) {
      case ContainerScan::Found::kNothing:
        break;
      case ContainerScan::Found::kEnd:
        return at + scan.end();
      case ContainerScan::Found::kTooDeep:
        return std::string_view::npos;
    }
    at += kBlockBytes;
  }
  return std::string_view::npos;
}

}  // namespace keelson::object
