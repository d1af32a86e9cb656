// A bound, listening stream socket: TCP, or one of the file system.
#pragma once

#include <cstdint>
#include <string>

#include "net/error.h"

namespace keelson::net {

struct ListenOptions {
  std::string address =
      "0.0.0.0";           // 0.0.0.0 and :: mean both families where the machine has IPv6 (Go's "tcp" listener)
  std::uint16_t port = 0;  // 0: any free one
  bool permit_port_sharing = false;     // SO_REUSEPORT
  bool permit_address_sharing = false;  // SO_REUSEADDR beyond what every Go listener sets: binding beside a wildcard
  int backlog = 4096;                   // cut by net.core.somaxconn
};

// Owns the descriptor. Move only.
class Listener {
 public:
  // The error names the address and the reason: `listen tcp 127.0.0.1:6443: bind: address already in use`.
  static Result<Listener> Listen(const ListenOptions& options);
  // A Unix domain socket; an existing file at `path` is removed. The umask decides who can connect.
  static Result<Listener> ListenUnix(const std::string& path);

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  std::uint16_t port() const { return port_; }
  const std::string& address() const { return address_; }  // 127.0.0.1:6443
  bool ipv6() const { return ipv6_; }
  int Release();  // gives the descriptor away

 private:
  Listener(int fd, bool ipv6, std::uint16_t port, std::string address);
  int fd_;
  bool ipv6_;
  std::uint16_t port_;
  std::string address_;
};

// Settings of every TCP connection: no delay, keep-alive probes every 3 minutes (upstream's 3 min).
void ConfigureConnection(int fd);

}  // namespace keelson::net
