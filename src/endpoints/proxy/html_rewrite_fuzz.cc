#include <cstdint>

#include "base/check.h"
#include "endpoints/proxy/html_rewrite.h"

// A page whose links are all left alone stays as it is, byte for byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view page(reinterpret_cast<const char*>(data), size);
  KS_CHECK(keelson::endpoints::proxy::RewriteHTML(page, [](std::string_view url) { return std::string(url); }) == page);
  const keelson::endpoints::proxy::RewriteRules rules{"https", "h", "/proxy", "b:80", "h"};
  keelson::endpoints::proxy::RewriteHTML(
      page, [&](std::string_view url) { return keelson::endpoints::proxy::RewriteURL(rules, url); });
  return 0;
}
