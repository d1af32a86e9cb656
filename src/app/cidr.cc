#include "app/cidr.h"

#include <arpa/inet.h>

#include "app/flag_values.h"
#include "base/strings.h"

namespace keelson::app {

std::optional<CIDR> CIDR::Parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = ParseIPSloppy(text.substr(0, slash));
  const auto prefix = base::ParseUint64(text.substr(slash + 1));
  if (!address || !prefix) return std::nullopt;
  CIDR made;
  made.bits_ = IsIPv4(*address) ? 32 : 128;
  if (*prefix > static_cast<std::uint64_t>(made.bits_)) return std::nullopt;
  made.prefix_ = static_cast<int>(*prefix);
  if (::inet_pton(made.bits_ == 32 ? AF_INET : AF_INET6, address->c_str(), made.bytes_.data()) != 1)
    return std::nullopt;
  for (int bit = made.prefix_; bit < made.bits_; ++bit) {
    made.bytes_[static_cast<std::size_t>(bit / 8)] &= static_cast<std::uint8_t>(~(0x80 >> (bit % 8)));
  }
  return made;
}

std::string CIDR::String() const { return Address(0) + "/" + std::to_string(prefix_); }

std::string CIDR::Address(std::uint32_t index) const {
  auto bytes = bytes_;
  std::uint64_t carry = index;
  for (int at = bits_ / 8 - 1; at >= 0 && carry > 0; --at) {
    carry += bytes[static_cast<std::size_t>(at)];
    bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(carry);
    carry >>= 8;
  }
  char text[INET6_ADDRSTRLEN];
  return ::inet_ntop(is_ipv4() ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
}

bool IsIPv4(std::string_view address) { return address.find(':') == std::string_view::npos; }
bool IsLoopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }
bool IsUnspecified(std::string_view address) { return address == "0.0.0.0" || address == "::"; }

}  // namespace keelson::app
