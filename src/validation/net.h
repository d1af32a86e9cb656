// IP addresses and CIDRs as Kubernetes reads them: lenient (leading zeros allowed, as Go before 1.17) and strict (as
// netip).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/field_path.h"
#include "validation/errors.h"

namespace keelson::validation {

struct IPAddress {
  std::array<std::uint8_t, 16> bytes{};  // IPv4 in the last four, behind ::ffff:
  bool mapped = false;                   // written as an IPv6 text that holds an IPv4 address (::ffff:1.2.3.4)

  bool Is4() const;  // also when mapped
  bool IsUnspecified() const;
  bool IsLoopback() const;
  bool IsLinkLocalUnicast() const;
  bool IsLinkLocalMulticast() const;
  std::string ToString() const;  // canonical: dotted for IPv4, RFC 5952 for IPv6
  bool operator==(const IPAddress& other) const { return bytes == other.bytes; }
};

struct CIDR {
  IPAddress address;          // as written
  int prefix = 0;             // of 32 or 128
  bool v6 = false;            // written in IPv6 form
  IPAddress Network() const;  // bits beyond the prefix cleared
  bool Contains(const IPAddress& other) const;
  std::string ToString() const;  // of the network
};

std::optional<IPAddress> ParseIPSloppy(std::string_view text);
std::optional<CIDR> ParseCIDRSloppy(std::string_view text);
// Forms that the lenient parser accepts and the strict one refuses.
bool HasLeadingZeros(std::string_view ip);  // also groups of more than four digits in IPv6
bool CIDRHasLeadingZeros(std::string_view cidr);

// Address fields of older kinds: the lenient reader, then the strict rules (gate StrictIPCIDRValidation). Values of the
// old object in `old_values` are accepted as they are.
enum class AddressRules : std::uint8_t { kStrict, kLenient };
void ValidateIPForLegacyField(std::string_view text, const FieldPath& path,
                              const std::vector<std::string_view>& old_values, AddressRules rules, FieldErrors& errors);
void ValidateCIDRForLegacyField(std::string_view text, const FieldPath& path,
                                const std::vector<std::string_view>& old_values, AddressRules rules,
                                FieldErrors& errors);

}  // namespace keelson::validation
