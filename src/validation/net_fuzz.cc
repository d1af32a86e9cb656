// IP addresses and CIDRs: what parses prints in canonical form, and that parses to the same address.
#include "base/check.h"
#include "validation/net.h"

using namespace keelson::validation;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto address = ParseIPSloppy(text)) {
    const auto again = ParseIPSloppy(address->ToString());
    KS_CHECK(again && *again == *address);
    HasLeadingZeros(text);
  }
  if (const auto cidr = ParseCIDRSloppy(text)) {
    KS_CHECK(cidr->Contains(cidr->address));
    const auto again = ParseCIDRSloppy(cidr->ToString());
    KS_CHECK(again && again->Network() == cidr->Network());
    CIDRHasLeadingZeros(text);
  }
  return 0;
}
