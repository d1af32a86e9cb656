// Fields of X.509 certificates and requests that validation needs; hides the parser.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

// Why `pem` is no certificate request with a valid signature of its own key; empty when it is one.
std::string CertificateRequestProblem(std::string_view pem);
// Why `pem` is no chain of certificates: one CERTIFICATE block or more, without headers. Nothing at all is fine.
std::string CertificateChainProblem(std::string_view pem);

}  // namespace keelson::registry
