#include "base/random.h"

#include <sys/random.h>

#include <cstring>

#include "base/check.h"

namespace keelson::base {
namespace {

constexpr std::size_t kPooledMax = 16;  // a UUID; what is larger may be a key and comes from the kernel itself
constexpr std::size_t kPoolBytes = 512;

void FillFromKernel(std::span<std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got > 0) done += static_cast<std::size_t>(got);
  }
}

// Random bytes of this thread, fetched with one system call for many requests. A byte is given out once and erased.
class Pool {
 public:
  void Take(std::span<std::uint8_t> out) {
    if (left_ < out.size()) {
      FillFromKernel(bytes_);
      left_ = kPoolBytes;
    }
    std::uint8_t* const from = bytes_ + left_ - out.size();
    std::memcpy(out.data(), from, out.size());
    std::memset(from, 0, out.size());
    left_ -= out.size();
  }

 private:
  std::uint8_t bytes_[kPoolBytes];
  std::size_t left_ = 0;
};

class SystemRandom final : public Random {
 public:
  void Fill(std::span<std::uint8_t> bytes) override {
    thread_local Pool pool;
    if (bytes.size() > kPooledMax) return FillFromKernel(bytes);
    pool.Take(bytes);
  }
};

}  // namespace

std::uint64_t Random::Next() {
  std::uint8_t bytes[8];
  Fill(bytes);
  std::uint64_t value = 0;
  for (const auto byte : bytes) value = value << 8 | byte;
  return value;
}

std::uint64_t Random::Below(std::uint64_t bound) {
  KS_CHECK(bound > 0);
  // Values at or above the largest multiple of `bound` would make small results likelier: draw again.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    const std::uint64_t value = Next();
    if (value < limit) return value % bound;
  }
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

std::string Random::UUID() {
  std::uint8_t bytes[16];
  Fill(bytes);
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[bytes[i] >> 4];
    text += kHex[bytes[i] & 15];
  }
  return text;
}

Random& Random::Real() {
  static SystemRandom random;
  return random;
}

}  // namespace keelson::base
