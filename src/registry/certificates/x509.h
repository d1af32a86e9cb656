// Fields of X.509 certificates and requests that validation needs; hides the parser.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

// The error if `pem` is not a certificate request with a valid self-signature; empty if it is.
std::string CertificateRequestProblem(std::string_view pem);
// The error if `pem` is not a certificate chain: one CERTIFICATE block or more, without headers. Empty text is valid.
std::string CertificateChainProblem(std::string_view pem);

}  // namespace keelson::registry
