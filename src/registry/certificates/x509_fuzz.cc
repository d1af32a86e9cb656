// PEM and DER of users: no input may crash the readers.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "registry/certificates/x509.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pem(reinterpret_cast<const char*>(data), size);
  (void)keelson::registry::CertificateRequestProblem(pem);
  (void)keelson::registry::CertificateChainProblem(pem);
  return 0;
}
