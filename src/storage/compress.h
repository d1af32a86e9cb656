// zstd for texts in memory. Thread safety: all functions from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace keelson::storage {

// Appends `plain` compressed; false, with `out` unchanged, when that is not smaller. Parts of `plain` that also occur in
// `prefix` take next to no space; Decompress() needs the same prefix.
bool AppendCompressed(std::string& out, std::string_view plain, std::string_view prefix = {});
// Fills [out, out + size); false when `packed` is damaged or has another size.
bool Decompress(std::string_view packed, char* out, std::size_t size, std::string_view prefix = {});

}  // namespace keelson::storage
