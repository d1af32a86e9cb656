#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "storage/continue_token.h"

// Property: a decoded token encodes and decodes to the same, and its key stays within the prefix.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::storage;
  const auto token = DecodeContinue({reinterpret_cast<const char*>(data), size}, "/pods/");
  if (!token.ok()) return 0;
  KS_CHECK(token->start_key.starts_with("/pods/") && token->start_key.find("/../") == std::string::npos);
  const auto again = DecodeContinue(EncodeContinue(token->start_key, "/pods/", token->resource_version), "/pods/");
  // A start of "/" alone leaves nothing to encode.
  KS_CHECK(token->start_key == "/pods/" ||
           (again.ok() && again->start_key == token->start_key && again->resource_version == token->resource_version));
  return 0;
}
