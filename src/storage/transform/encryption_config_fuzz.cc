#include <cstddef>
#include <cstdint>
#include <string_view>

#include "storage/transform/encryption_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)keelson::storage::ParseEncryptionConfiguration("f", {reinterpret_cast<const char*>(data), size}, true).ok();
  return 0;
}
