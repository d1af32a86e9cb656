// Certificates in PEM text, read as Kubernetes reads them (client-go's cert.ParseCertsPEM).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"

namespace keelson::auth {

// The DER of every CERTIFICATE block without headers, in order. An error if one of them is not a certificate, and "data
// does not contain any valid RSA or ECDSA certificates" if there is none.
Outcome<std::vector<std::string>, std::string> ParseCertificates(std::string_view pem);

}  // namespace keelson::auth
