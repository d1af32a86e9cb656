// AuthenticationConfiguration from any bytes: parsed, then validated.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "auth/oidc/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = keelson::auth::ParseAuthenticationConfig({reinterpret_cast<const char*>(data), size});
  if (config.ok()) keelson::auth::ValidateAuthenticationConfig(*config, {"https://kubernetes.default.svc"});
  return 0;
}
