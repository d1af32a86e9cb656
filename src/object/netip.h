// IP addresses and prefixes as Go's net/netip reads and writes them: strict, with netip's error texts.
// (validation/net.h reads the lenient forms of older API fields.) Value types; pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::object {

struct Addr {
  std::array<std::uint8_t, 16> bytes{};  // IPv4 in the last four, behind ::ffff:
  bool v4 = false;                       // written as IPv4; an IPv4-mapped IPv6 address is not
  bool zoned = false;                    // had a %zone, which is not kept

  bool Is4() const { return v4; }
  bool Is4In6() const;
  int BitLen() const { return v4 ? 32 : 128; }
  bool IsUnspecified() const;
  bool IsLoopback() const;
  bool IsMulticast() const;
  bool IsLinkLocalMulticast() const;
  bool IsLinkLocalUnicast() const;
  bool IsGlobalUnicast() const;
  std::string ToString() const;  // dotted for IPv4, RFC 5952 for IPv6
  friend bool operator==(const Addr&, const Addr&) = default;
};

struct Prefix {
  Addr addr;  // as written, bits below the prefix included
  int bits = 0;

  Prefix Masked() const;
  bool Contains(const Addr& other) const;
  bool Overlaps(const Prefix& other) const;
  std::string ToString() const;
  friend bool operator==(const Prefix&, const Prefix&) = default;
};

Outcome<Addr, std::string> ParseAddr(std::string_view text);
Outcome<Prefix, std::string> ParsePrefix(std::string_view text);

}  // namespace keelson::object
