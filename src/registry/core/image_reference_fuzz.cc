// Image references: any text is answered, and a digest never pulls "latest".
#include "base/check.h"
#include "registry/core/image_reference.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool latest = keelson::registry::core::PullsLatest(text);
  KS_CHECK(!latest || text.find('@') == text.npos);
  return 0;
}
