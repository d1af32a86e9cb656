#include "app/backup/tar.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace keelson::app {
namespace {

// Offsets and sizes of the fields that are used.
constexpr std::size_t kModeAt = 100, kUIDAt = 108, kGIDAt = 116, kIDBytes = 8;
constexpr std::size_t kSizeAt = 124, kTimeAt = 136, kNumberBytes = 12;
constexpr std::size_t kChecksumAt = 148, kChecksumBytes = 8, kTypeAt = 156, kMagicAt = 257;
constexpr std::string_view kMagic("ustar\00000", 8);
constexpr std::uint64_t kOctalMax = 077777777777;  // of eleven digits

void PutOctal(char* out, std::size_t bytes, std::uint64_t number) {
  out[bytes - 1] = '\0';
  for (std::size_t i = bytes - 1; i-- > 0; number >>= 3) out[i] = static_cast<char>('0' + (number & 7));
}

// Sizes from 8 GiB on are written as binary numbers with the first bit set, as GNU tar does.
void PutSize(char* out, std::uint64_t number) {
  if (number <= kOctalMax) {
    PutOctal(out, kNumberBytes, number);
    return;
  }
  for (std::size_t i = kNumberBytes; i-- > 0; number >>= 8) out[i] = static_cast<char>(number & 0xff);
  out[0] = static_cast<char>(0x80);
}

std::optional<std::uint64_t> GetNumber(std::string_view field) {
  std::uint64_t number = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    for (const char c : field.substr(1)) {
      if (number >> 55 != 0) return std::nullopt;
      number = number << 8 | static_cast<unsigned char>(c);
    }
    return number;
  }
  bool digits = false;
  for (const char c : field) {
    if (c == '\0' || c == ' ') {
      if (digits) break;
      continue;
    }
    if (c < '0' || c > '7') return std::nullopt;
    number = number << 3 | static_cast<std::uint64_t>(c - '0');
    digits = true;
  }
  return number;
}

std::uint64_t Checksum(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    const bool own = i >= kChecksumAt && i < kChecksumAt + kChecksumBytes;  // counts as spaces
    sum += own ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

}  // namespace

std::array<char, kTarBlock> MakeTarHeader(const TarEntry& entry) {
  KS_CHECK(entry.name.size() <= kTarNameMax);
  std::array<char, kTarBlock> block{};
  std::ranges::copy(entry.name, block.begin());
  PutOctal(&block[kModeAt], kIDBytes, entry.mode);
  PutOctal(&block[kUIDAt], kIDBytes, 0);
  PutOctal(&block[kGIDAt], kIDBytes, 0);
  PutSize(&block[kSizeAt], entry.size);
  PutOctal(&block[kTimeAt], kNumberBytes, static_cast<std::uint64_t>(std::max<std::int64_t>(0, entry.mtime)));
  block[kTypeAt] = '0';
  std::ranges::copy(kMagic, block.begin() + kMagicAt);
  PutOctal(&block[kChecksumAt], kChecksumBytes - 1, Checksum({block.data(), kTarBlock}));
  block[kChecksumAt + kChecksumBytes - 1] = ' ';
  return block;
}

std::optional<TarEntry> ParseTarHeader(std::string_view block) {
  if (block.size() != kTarBlock) return std::nullopt;
  const auto checksum = GetNumber(block.substr(kChecksumAt, kChecksumBytes));
  if (!checksum || *checksum != Checksum(block)) return std::nullopt;
  if (block[kTypeAt] != '0' && block[kTypeAt] != '\0') return std::nullopt;
  TarEntry entry;
  const std::string_view name = block.substr(0, kTarNameMax + 1);
  entry.name = name.substr(0, name.find('\0'));
  if (entry.name.empty() || entry.name.size() > kTarNameMax) return std::nullopt;
  const auto size = GetNumber(block.substr(kSizeAt, kNumberBytes));
  const auto mode = GetNumber(block.substr(kModeAt, kIDBytes));
  const auto time = GetNumber(block.substr(kTimeAt, kNumberBytes));
  if (!size || !mode || !time) return std::nullopt;
  entry.size = *size;
  entry.mode = static_cast<std::uint32_t>(*mode & 0777);
  entry.mtime = static_cast<std::int64_t>(*time);
  return entry;
}

}  // namespace keelson::app
