// Property: no server response crashes the parser.
#include <cstddef>
#include <cstdint>

#include "app/commands/metrics_text.h"
#include "app/commands/top_view.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto metrics = keelson::app::MetricsText::Parse({reinterpret_cast<const char*>(data), size});
  keelson::app::TopView(metrics, nullptr, 1, {.rows = 5});
  return 0;
}
