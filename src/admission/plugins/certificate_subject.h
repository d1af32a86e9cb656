// Subject fields of a CertificateSigningRequest's PKCS #10 request, as admission needs them; hides the X.509 parser.
// Internal to admission.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::admission {

// The organizations (O=) in the subject of the first certificate request in `pem`; nothing where there is no request
// that can be read.
std::optional<std::vector<std::string>> OrganizationsOf(std::string_view pem);
// The common name (CN=) in it, the last one as in Go; "" where there is none.
std::optional<std::string> CommonNameOf(std::string_view pem);

}  // namespace keelson::admission
