// Token files from any bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "auth/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  keelson::auth::CSVReader reader({reinterpret_cast<const char*>(data), size});
  for (;;) {
    const auto record = reader.Next();
    if (!record.ok() || !*record) return 0;
  }
}
