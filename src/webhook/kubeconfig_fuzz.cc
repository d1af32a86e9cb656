// Kubeconfig files from any bytes: parsed, and turned into a client configuration where they name no other file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "webhook/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::webhook;
  const auto config = ParseKubeconfig({reinterpret_cast<const char*>(data), size}, "");
  if (!config.ok()) return 0;
  for (const auto& [name, cluster] : config->clusters) {
    if (!cluster.certificate_authority.empty()) return 0;
  }
  for (const auto& [name, user] : config->users) {
    if (!user.client_certificate.empty() || !user.client_key.empty() || !user.token_file.empty()) return 0;
  }
  static_cast<void>(RESTConfigFrom(*config).ok());
  return 0;
}
