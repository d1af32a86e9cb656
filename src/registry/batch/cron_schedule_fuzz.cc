#include <cstddef>
#include <cstdint>
#include <string_view>

#include "registry/batch/cron_schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(keelson::registry::batch::CronScheduleProblem({reinterpret_cast<const char*>(data), size}));
  return 0;
}
