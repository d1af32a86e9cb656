// Property: a decoded value encodes to bytes that decode to the same value.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "codec/cbor.h"

using namespace keelson;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  base::Arena arena;
  const auto decoded = codec::DecodeCBOR(arena, {reinterpret_cast<const char*>(data), size});
  if (!decoded.ok()) return 0;
  std::string once, twice;
  codec::EncodeCBOR(arena, decoded->value, once);
  const auto again = codec::DecodeCBOR(arena, once);
  KS_CHECK(again.ok());
  codec::EncodeCBOR(arena, again->value, twice);
  KS_CHECK(once == twice);
  return 0;
}
