#include "http/socks_dialer.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

#include "http/connect_dialer.h"
#include "net/address.h"

namespace keelson::http {
namespace {

constexpr char kVersion = 5;
constexpr char kConnect = 1;
constexpr char kAddressIPv4 = 1, kAddressName = 3, kAddressIPv6 = 4;
constexpr char kNoAuthentication = 0, kUsernamePassword = 2;
constexpr char kNoAcceptableMethod = static_cast<char>(0xff);
constexpr char kPasswordVersion = 1;
constexpr std::size_t kTextMax = 255;  // names, user names and passwords have one byte of length

std::string ReplyText(std::uint8_t code) {
  switch (code) {
    case 1:
      return "general SOCKS server failure";
    case 2:
      return "connection not allowed by ruleset";
    case 3:
      return "network unreachable";
    case 4:
      return "host unreachable";
    case 5:
      return "connection refused";
    case 6:
      return "TTL expired";
    case 7:
      return "command not supported";
    case 8:
      return "address type not supported";
    default:
      return "unknown code: " + std::to_string(code);
  }
}

std::string Number(char byte) { return std::to_string(static_cast<std::uint8_t>(byte)); }

// The request for a connection; host.size() <= kTextMax.
std::string ConnectRequest(const std::string& host, std::uint16_t port) {
  std::string out{kVersion, kConnect, 0};
  boost::system::error_code no_address;
  const auto address = asio::ip::make_address(host, no_address);
  const auto append = [&out](char type, const auto& bytes) {
    out += type;
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (no_address) {
    out += {kAddressName, static_cast<char>(host.size())};
    out += host;
  } else if (address.is_v4()) {
    append(kAddressIPv4, address.to_v4().to_bytes());
  } else {
    append(kAddressIPv6, address.to_v6().to_bytes());
  }
  out += {static_cast<char>(port >> 8), static_cast<char>(port)};
  return out;
}

// The conversation with the proxy over one socket, which the deadline's timer closes.
class Negotiation {
 public:
  Negotiation(net::StreamSocket& socket, const bool& expired) : socket_(socket), expired_(expired) {}

  // "" or Go's reason.
  Awaitable<std::string> Run(const SocksDialerOptions& options, std::string host, std::uint16_t port) {
    if (host.size() > kTextMax) co_return "FQDN too long";
    std::string greeting = options.credentials ? std::string{kVersion, 2, kNoAuthentication, kUsernamePassword}
                                               : std::string{kVersion, 1, kNoAuthentication};
    if (!co_await Write(std::move(greeting)) || !co_await Read(2)) co_return error_;
    if (read_[0] != kVersion) co_return "unexpected protocol version " + Number(read_[0]);
    const char method = read_[1];
    if (method == kNoAcceptableMethod) co_return "no acceptable authentication methods";
    if (options.credentials && method != kNoAuthentication) {
      if (method != kUsernamePassword) co_return "unsupported authentication method " + Number(method);
      const std::string refused = co_await Authenticate(*options.credentials);
      if (!refused.empty()) co_return refused;
    }
    if (!co_await Write(ConnectRequest(host, port)) || !co_await Read(4)) co_return error_;
    if (read_[0] != kVersion) co_return "unexpected protocol version " + Number(read_[0]);
    if (read_[1] != 0) co_return "unknown error " + ReplyText(static_cast<std::uint8_t>(read_[1]));
    if (read_[2] != 0) co_return "non-zero reserved field";
    co_return co_await SkipBoundAddress(read_[3]);
  }

 private:
  Awaitable<std::string> Authenticate(const SocksDialerOptions::Credentials& credentials) {
    const auto& [username, password] = credentials;
    if (username.empty() || username.size() > kTextMax || password.size() > kTextMax)
      co_return "invalid username/password";
    std::string request{kPasswordVersion, static_cast<char>(username.size())};
    request += username;
    request += static_cast<char>(password.size());
    request += password;
    if (!co_await Write(std::move(request)) || !co_await Read(2)) co_return error_;
    if (read_[0] != kPasswordVersion) co_return "invalid username/password version";
    if (read_[1] != 0) co_return "username/password authentication failed";
    co_return "";
  }

  Awaitable<std::string> SkipBoundAddress(char type) {
    std::size_t size = 0;
    if (type == kAddressIPv4) {
      size = 4;
    } else if (type == kAddressIPv6) {
      size = 16;
    } else if (type == kAddressName) {
      if (!co_await Read(1)) co_return error_;
      size = static_cast<std::uint8_t>(read_[0]);
    } else {
      co_return "unknown address type " + Number(type);
    }
    if (!co_await Read(size + 2)) co_return error_;
    co_return "";
  }

  Awaitable<bool> Write(std::string bytes) {
    auto written = co_await asio::async_write(socket_, asio::buffer(bytes), kNoThrow);
    co_return Good(std::get<0>(written), 0);
  }
  Awaitable<bool> Read(std::size_t size) {
    read_.resize(size);
    auto got = co_await asio::async_read(socket_, asio::buffer(read_), kNoThrow);
    co_return Good(std::get<0>(got), std::get<1>(got));
  }
  bool Good(const boost::system::error_code& error, std::size_t got) {
    if (!error && !expired_) return true;
    error_ = expired_                    ? "i/o timeout"
             : error != asio::error::eof ? error.message()
             : got != 0                  ? "unexpected EOF"
                                         : "EOF";
    return false;
  }

  net::StreamSocket& socket_;
  const bool& expired_;
  std::string read_;
  std::string error_;
};

std::string PeerOf(const net::StreamSocket& socket) {
  boost::system::error_code error;
  const auto remote = socket.remote_endpoint(error);
  asio::ip::tcp::endpoint endpoint;
  if (error || remote.size() > endpoint.capacity()) return {};
  std::memcpy(endpoint.data(), remote.data(), remote.size());
  return net::ToString(endpoint);
}

}  // namespace

SocksDialer::SocksDialer(SocksDialerOptions options)
    : options_(std::make_shared<const SocksDialerOptions>(std::move(options))) {}

Awaitable<net::Result<net::StreamSocket>> SocksDialer::Dial(net::DialTarget target,
                                                            std::chrono::steady_clock::time_point deadline) {
  const auto options = options_;
  auto host = co_await AllowedHost(target, deadline);
  if (!host.ok()) co_return host.error();
  auto dialled = options->dialer != nullptr ? co_await options->dialer->Dial(options->proxy, deadline)
                                            : co_await net::Dial(options->proxy, deadline);
  if (!dialled.ok()) co_return net::Error{"proxyconnect tcp: " + dialled.error().message};
  const auto socket = std::make_shared<net::StreamSocket>(*std::move(dialled));
  const auto expired = std::make_shared<bool>(false);
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  timer.async_wait([socket, expired](const boost::system::error_code& error) {
    if (error) return;
    *expired = true;
    boost::system::error_code ignored;
    socket->close(ignored);
  });
  const std::string proxy = PeerOf(*socket);
  Negotiation negotiation(*socket, *expired);
  std::string error = co_await negotiation.Run(*options, *host, target.port);
  timer.cancel();
  if (error.empty() && *expired) error = "i/o timeout";
  if (!error.empty())
    co_return net::Error{"socks connect tcp " + proxy + "->" + net::JoinHostPort(*host, target.port) + ": " + error};
  co_return std::move(*socket);
}

}  // namespace keelson::http
