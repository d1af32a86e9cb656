#include <cstdint>

#include "base/check.h"
#include "proxy/html_rewrite.h"

// Property: a page without rewritten links stays as it is, byte for byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view page(reinterpret_cast<const char*>(data), size);
  KS_CHECK(keelson::proxy::RewriteHTML(page, [](std::string_view url) { return std::string(url); }) == page);
  const keelson::proxy::RewriteRules rules{"https", "h", "/proxy", "b:80", "h"};
  keelson::proxy::RewriteHTML(page, [&](std::string_view url) { return keelson::proxy::RewriteURL(rules, url); });
  return 0;
}
