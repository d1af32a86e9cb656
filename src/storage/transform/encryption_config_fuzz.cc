#include <cstddef>
#include <cstdint>
#include <string_view>

#include "storage/transform/encryption_at_rest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::storage;
  (void)EncryptionAtRest::New({reinterpret_cast<const char*>(data), size}, {.reload = true});
  return 0;
}
