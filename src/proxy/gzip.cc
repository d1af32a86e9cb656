#include "proxy/gzip.h"

#include <zlib.h>

#include <array>

#include "base/check.h"

namespace keelson::proxy {
namespace {

int WindowBits(Compression compression) { return compression == Compression::kGzip ? MAX_WBITS + 16 : -MAX_WBITS; }
Bytef* Input(std::string_view data) { return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data())); }

}  // namespace

std::optional<std::string> Decompress(Compression compression, std::string_view data, std::size_t limit) {
  z_stream stream{};
  KS_CHECK(inflateInit2(&stream, WindowBits(compression)) == Z_OK);
  stream.next_in = Input(data);
  stream.avail_in = static_cast<uInt>(data.size());
  std::string out;
  std::array<char, 16384> buffer;
  int status = Z_OK;
  while (status == Z_OK && out.size() <= limit) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || out.size() > limit) return std::nullopt;
  return out;
}

std::string Compress(Compression compression, std::string_view data) {
  z_stream stream{};
  KS_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, WindowBits(compression), 8, Z_DEFAULT_STRATEGY) ==
           Z_OK);
  stream.next_in = Input(data);
  stream.avail_in = static_cast<uInt>(data.size());
  std::string out;
  std::array<char, 16384> buffer;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    status = deflate(&stream, Z_FINISH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace keelson::proxy
