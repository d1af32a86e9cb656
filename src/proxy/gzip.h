// Compression and decompression of whole bodies (gzip, deflate), for pages whose links are rewritten.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace keelson::proxy {

enum class Compression { kGzip, kDeflate };  // kDeflate: raw, as Go's compress/flate

// Empty when the data is broken or longer than `limit` once it is decompressed.
std::optional<std::string> Decompress(Compression compression, std::string_view data, std::size_t limit);
std::string Compress(Compression compression, std::string_view data);

}  // namespace keelson::proxy
