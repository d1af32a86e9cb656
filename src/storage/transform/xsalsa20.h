// XSalsa20 (Bernstein, "Extending the Salsa20 nonce"): Salsa20 with a nonce of 24 bytes. The system's OpenSSL has none
// of it. Adds, rotates and xors only: its time depends on the length alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace keelson::storage {

constexpr std::size_t kXSalsa20KeyBytes = 32;
constexpr std::size_t kXSalsa20NonceBytes = 24;

// Xors the key stream for (key, nonce) onto `data`, from the stream's first byte on.
void XSalsa20(std::string_view key, std::string_view nonce, std::span<char> data);

}  // namespace keelson::storage
