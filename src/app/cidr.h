// An IP network, as --service-cluster-ip-range names it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace keelson::app {

class CIDR {
 public:
  static std::optional<CIDR> Parse(std::string_view text);  // host bits are masked off; leading zeros are decimal

  bool is_ipv4() const { return bits_ == 32; }
  int prefix() const { return prefix_; }
  int host_bits() const { return bits_ - prefix_; }
  std::string String() const;                      // 10.0.0.0/24
  std::string Address(std::uint32_t index) const;  // the network's address plus `index`

 private:
  std::array<std::uint8_t, 16> bytes_{};  // the first 4 for IPv4
  int bits_ = 32;
  int prefix_ = 0;
};

bool IsIPv4(std::string_view address);
bool IsLoopback(std::string_view address);
bool IsUnspecified(std::string_view address);  // 0.0.0.0 or ::

}  // namespace keelson::app
