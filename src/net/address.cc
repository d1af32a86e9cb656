#include "net/address.h"

#include <boost/asio/ip/address.hpp>

namespace keelson::net {
namespace asio = boost::asio;

std::string JoinHostPort(std::string_view host, std::uint16_t port) {
  std::string out;
  const bool brackets = host.find(':') != std::string_view::npos;
  if (brackets) out += '[';
  out += host;
  if (brackets) out += ']';
  out += ':';
  out += std::to_string(port);
  return out;
}

std::string ToString(const asio::ip::tcp::endpoint& endpoint) {
  auto address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return JoinHostPort(address.to_string(), endpoint.port());
}

std::optional<HostPort> SplitHostPort(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') return std::nullopt;
    host = host.substr(1, host.size() - 2);
    if (host.find_first_of("[]") != std::string_view::npos) return std::nullopt;
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return std::nullopt;
  }
  return HostPort{std::string(host), std::string(port)};
}

bool IsIPAddress(std::string_view text) {
  boost::system::error_code error;
  asio::ip::make_address(std::string(text), error);
  return !error;
}

}  // namespace keelson::net
