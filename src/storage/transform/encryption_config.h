// EncryptionConfiguration (apiserver.config.k8s.io/v1): which resources are encrypted how. Parsed strictly, validated
// as upstream does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"

namespace keelson::storage {

struct EncryptionKey {
  std::string name;
  std::string secret;  // decoded
};

struct EncryptionProvider {
  enum class Kind : std::uint8_t { kIdentity, kAESGCM, kAESCBC, kSecretbox, kKMS };
  Kind kind = Kind::kIdentity;
  std::vector<EncryptionKey> keys;
  // Of kKMS.
  std::string api_version = "v1";
  std::string name;
  std::string endpoint;
  std::int32_t cache_size = 1000;
  std::int64_t timeout_ms = 3000;
};

struct EncryptionResources {
  std::vector<std::string> resources;  // secrets, deployments.apps, *.apps, *., *.*
  std::vector<EncryptionProvider> providers;
};

struct EncryptionConfiguration {
  std::vector<EncryptionResources> resources;
};

// `text` is YAML or JSON, read from the file `path`. The error is one line, all faults in it. `reload`: the file is
// reloaded while running, which KMS names must allow.
Outcome<EncryptionConfiguration, std::string> ParseEncryptionConfiguration(std::string_view path, std::string_view text,
                                                                           bool reload);

}  // namespace keelson::storage
