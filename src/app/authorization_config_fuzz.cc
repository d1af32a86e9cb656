#include <cstddef>
#include <cstdint>
#include <string_view>

#include "app/authorization_config.h"
#include "base/check.h"

// No text crashes the reader, and an accepted one has authorizers with names and types.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = keelson::app::ParseAuthorizationConfiguration({reinterpret_cast<const char*>(data), size},
                                                                    [](const std::string&) { return std::string(); });
  if (!config.ok()) {
    KS_CHECK(!config.error().empty());
    return 0;
  }
  KS_CHECK(!config->authorizers.empty());
  for (const auto& entry : config->authorizers) {
    KS_CHECK(!entry.name.empty() && !entry.type.empty());
    KS_CHECK(entry.webhook.has_value() == (entry.type == "Webhook"));
  }
  return 0;
}
