// Headers of tar archives (ustar) with plain files only: the container of backups.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace keelson::app {

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTarNameMax = 99;

struct TarEntry {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t mode = 0600;
  std::int64_t mtime = 0;  // seconds since 1970
};

// REQUIRES: the name has at most kTarNameMax bytes.
std::array<char, kTarBlock> MakeTarHeader(const TarEntry& entry);

// Nothing when the block is not the header of a plain file, or its checksum does not match.
std::optional<TarEntry> ParseTarHeader(std::string_view block);

// Bytes after a file's contents up to the next header.
constexpr std::size_t TarPadding(std::uint64_t size) {
  return static_cast<std::size_t>((kTarBlock - size % kTarBlock) % kTarBlock);
}

}  // namespace keelson::app
