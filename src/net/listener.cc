#include "net/listener.h"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/address.h"

namespace keelson::net {
namespace {

constexpr int kKeepAliveSeconds = 180;

std::string ErrorText(int error) {
  switch (error) {  // Go's texts
    case EADDRINUSE:
      return "address already in use";
    case EADDRNOTAVAIL:
      return "cannot assign requested address";
    case ENOENT:
      return "no such file or directory";
    case EACCES:
      return "permission denied";
    default:
      return std::generic_category().message(error);
  }
}

int OpenSocket(int family) { return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

void SetOption(int fd, int level, int name, int value) { (void)::setsockopt(fd, level, name, &value, sizeof(value)); }

}  // namespace

Listener::Listener(int fd, bool ipv6, std::uint16_t port, std::string address)
    : fd_(fd), ipv6_(ipv6), port_(port), address_(std::move(address)) {}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), ipv6_(other.ipv6_), port_(other.port_), address_(std::move(other.address_)) {}

Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(fd_, other.fd_);
  ipv6_ = other.ipv6_;
  port_ = other.port_;
  address_ = std::move(other.address_);
  return *this;
}

Listener::~Listener() {
  if (fd_ >= 0) ::close(fd_);
}

int Listener::Release() { return std::exchange(fd_, -1); }

Result<Listener> Listener::Listen(const ListenOptions& options) {
  const std::string shown = JoinHostPort(options.address, options.port);
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  socklen_t length = 0;
  bool dual = false;
  if (::inet_pton(AF_INET, options.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(options.port);
    length = sizeof(sockaddr_in);
    dual = v4->sin_addr.s_addr == INADDR_ANY;
  } else if (::inet_pton(AF_INET6, options.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(options.port);
    length = sizeof(sockaddr_in6);
    dual = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
  } else {
    return Error{"listen tcp " + shown + ": invalid IP address"};
  }

  int fd = -1;
  if (dual) {
    fd = OpenSocket(AF_INET6);
    if (fd >= 0) {
      SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
      std::memset(&storage, 0, sizeof(storage));
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(options.port);
      length = sizeof(sockaddr_in6);
    } else {  // a machine without IPv6
      std::memset(&storage, 0, sizeof(storage));
      v4->sin_family = AF_INET;
      v4->sin_port = htons(options.port);
      length = sizeof(sockaddr_in);
    }
  }
  if (fd < 0) fd = OpenSocket(storage.ss_family);
  if (fd < 0) return Error{"listen tcp " + shown + ": socket: " + ErrorText(errno)};

  // Go's listeners always set SO_REUSEADDR on Linux, so that a restart need not wait for TIME_WAIT.
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (options.permit_port_sharing) SetOption(fd, SOL_SOCKET, SO_REUSEPORT, 1);

  const auto fail = [&](const char* step) {
    Error error{"listen tcp " + shown + ": " + step + ": " + ErrorText(errno)};
    ::close(fd);
    return error;
  };
  if (::bind(fd, reinterpret_cast<sockaddr*>(&storage), length) != 0) return fail("bind");
  if (::listen(fd, options.backlog) != 0) return fail("listen");
  sockaddr_storage bound{};
  length = sizeof(bound);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return fail("getsockname");
  const bool ipv6 = bound.ss_family == AF_INET6;
  const std::uint16_t port = ntohs(ipv6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return Listener(fd, ipv6, port, JoinHostPort(dual ? "::" : options.address, port));
}

Result<Listener> Listener::ListenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Error{"listen unix " + path + ": bind: invalid argument"};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = OpenSocket(AF_UNIX);
  if (fd < 0) return Error{"listen unix " + path + ": socket: " + ErrorText(errno)};
  (void)::unlink(path.c_str());
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || ::listen(fd, SOMAXCONN) != 0) {
    Error error{"listen unix " + path + ": bind: " + ErrorText(errno)};
    ::close(fd);
    return error;
  }
  return Listener(fd, false, 0, path);
}

void ConfigureConnection(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveSeconds);
}

}  // namespace keelson::net
