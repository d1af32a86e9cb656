// What Go's tls.X509KeyPair says about the PEM structure of a certificate and its key.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry::core {

// "" when both hold the blocks they should. What is inside the blocks is not looked at.
std::string KeyPairProblem(std::string_view certificate, std::string_view key);

}  // namespace keelson::registry::core
