// Go's names for TLS versions, cipher suites and curves, in OpenSSL's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/error.h"

namespace keelson::net {

// "" is TLS 1.2. Error: unknown tls version "x".
Result<int> TLSVersion(std::string_view name);
// TLS 1.2 suites for SSL_CTX_set_cipher_list; TLS 1.3 names are accepted and change nothing (they are not configurable,
// as upstream). Error: Cipher suite X not supported or doesn't exist.
Result<std::string> CipherList(const std::vector<std::string>& names);
// For SSL_CTX_set1_groups_list. X25519MLKEM768 is known but OpenSSL 3.0 has no such group: it is left out.
Result<std::string> GroupList(const std::vector<std::int32_t>& curves);

}  // namespace keelson::net
