// Arguments, one a line: parsing, completing and validating them never crashes, and a value that was read prints as
// something that reads as the same again.
#include <cstdint>
#include <string>
#include <vector>

#include "app/completed_options.h"
#include "app/options.h"
#include "base/check.h"
#include "base/strings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson;
  constexpr std::size_t kArgumentsMax = 64;
  std::vector<std::string> arguments;
  for (const std::string_view line : base::Split({reinterpret_cast<const char*>(data), size}, '\n')) {
    if (arguments.size() == kArgumentsMax) break;
    arguments.emplace_back(line);
  }
  app::ServerRunOptions options;
  app::FlagSet flags = app::MakeFlags(options);
  if (!flags.Parse(arguments).ok()) return 0;
  for (const char* const name : {"request-timeout", "service-node-port-range", "secure-port", "v"}) {
    app::ServerRunOptions other;
    app::FlagSet again = app::MakeFlags(other);
    const std::string text = flags.Find(name)->value->String();
    KS_CHECK(again.Parse({"--" + std::string(name) + "=" + text}).ok());
    KS_CHECK(again.Find(name)->value->String() == text);
  }
  // Files named by flags are not read here.
  options.extra.service_account_signing_key_file.clear();
  options.authentication.client_ca_file.clear();
  app::FeatureGates features;
  if (!features.Set(options.generic.feature_gates).ok()) return 0;
  auto completed = app::Complete(options, flags, features, {.hostname = "h", .default_ipv4 = "192.0.2.2"});
  if (completed.ok()) (void)app::AggregateErrors(app::Validate(*completed));
  return 0;
}
