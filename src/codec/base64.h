// Base64 as values carry it: checked and made canonical on the way in, turned to bytes and back for protobuf and CBOR.
#pragma once

#include <cstdint>
#include <string_view>

namespace keelson::codec {

struct Base64Check {
  bool canonical = false;    // decodes, and is exactly what encoding would give
  bool valid = false;        // decodes (line breaks in it, or spare bits set)
  std::size_t error_at = 0;  // where it does not: Go's "illegal base64 data at input byte N"
};
Base64Check CheckBase64(std::string_view text);

constexpr std::size_t Base64Size(std::size_t bytes) { return (bytes + 2) / 3 * 4; }
// REQUIRES: out has room for Base64Size(size).
void WriteBase64(const char* bytes, std::size_t size, char* out);
// The bytes of a valid text. REQUIRES: out has room for text.size() / 4 * 3. Returns their number.
std::size_t ReadBase64(std::string_view text, char* out);

}  // namespace keelson::codec
