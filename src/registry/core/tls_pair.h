// Errors of Go's tls.X509KeyPair about the PEM structure of a certificate and its key.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry::core {

// "" if both have the expected PEM blocks. The content of the blocks is not checked.
std::string KeyPairProblem(std::string_view certificate, std::string_view key);

}  // namespace keelson::registry::core
