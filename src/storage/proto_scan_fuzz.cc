#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "storage/json_splice.h"
#include "storage/proto_scan.h"

// Setting a resourceVersion and taking it off again comes to rest, whatever the bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::storage;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto set = SetProtoResourceVersion(bytes, "123456789")) {
    const auto cleared = SetProtoResourceVersion(set->view(), "");
    KS_CHECK(cleared);
    const auto again = SetProtoResourceVersion(cleared->view(), "123456789");
    KS_CHECK(again && *again == *set);
  }
  (void)SetJSONResourceVersion(bytes, "1", MetadataOrder::kSorted);
  (void)SetJSONResourceVersion(bytes, "", MetadataOrder::kStruct);
  return 0;
}
