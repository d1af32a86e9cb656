// CRC-32C in hardware for RocksDB. Debian builds the library without SSE 4.2, so that its own checksum of the log goes
// through tables: a tenth of what a commit costs the writer. crc32c.cc defines RocksDB's three functions; it is linked
// before the archive, whose own are then left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace keelson::kv::rocks {

// The checksum of what `crc` is of, followed by `bytes`; 0 is that of nothing.
std::uint32_t ExtendCRC32C(std::uint32_t crc, std::string_view bytes);
// The same by tables, as on machines without the instruction.
std::uint32_t ExtendCRC32CByTable(std::uint32_t crc, std::string_view bytes);
// The checksum of two texts one after the other, from theirs; `size` is the second's.
std::uint32_t CombineCRC32C(std::uint32_t first, std::uint32_t second, std::size_t size);

}  // namespace keelson::kv::rocks
