// Property: a parsed archive is written and parsed again as the same.
#include <cstddef>
#include <cstdint>

#include "app/backup/tar.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto first = keelson::app::ParseTarHeader({reinterpret_cast<const char*>(data), size});
  if (!first) return 0;
  const auto block = keelson::app::MakeTarHeader(*first);
  const auto second = keelson::app::ParseTarHeader({block.data(), block.size()});
  KS_CHECK(second && second->name == first->name && second->size == first->size && second->mode == first->mode);
  return 0;
}
