// Addresses as Go writes them: 127.0.0.1:6443, [::1]:6443.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace keelson::net {

std::string JoinHostPort(std::string_view host, std::uint16_t port);
std::string ToString(
    const boost::asio::ip::tcp::endpoint& endpoint);  // an IPv4 address in IPv6 form is written as IPv4

struct HostPort {
  std::string host;  // without brackets
  std::string port;
};
// Go's net.SplitHostPort: empty when the port is missing or brackets do not match.
std::optional<HostPort> SplitHostPort(std::string_view text);

bool IsIPAddress(std::string_view text);

}  // namespace keelson::net
