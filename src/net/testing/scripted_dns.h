// A scripted DNS server: addresses, no such name, or nothing at all. One thread, UDP on
// 127.0.0.1 and a port of the system's choice.
// Thread safety: the Script runs on the server's thread. Ownership: the destructor ends it and waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace keelson::net::testing {

class ScriptedDNS {
 public:
  // The IPv4 and IPv6 addresses of a name (lower case, without the last dot): empty is "no such name", none is silence.
  using Script = std::function<std::optional<std::vector<std::string>>(const std::string& name)>;
  explicit ScriptedDNS(Script script);
  ~ScriptedDNS();
  ScriptedDNS(const ScriptedDNS&) = delete;
  ScriptedDNS& operator=(const ScriptedDNS&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void Serve();

  const Script script_;
  int socket_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

// A listener on `address` and `port` whose queue is full: connecting to it hangs, as to a host behind a firewall that
// drops packets. Holds its sockets until it is destroyed.
class DeadListener {
 public:
  DeadListener(const std::string& address, std::uint16_t port);
  ~DeadListener();
  DeadListener(const DeadListener&) = delete;
  DeadListener& operator=(const DeadListener&) = delete;
  bool ok() const { return ok_; }  // false: the address does not exist here (no IPv6)

 private:
  std::vector<int> sockets_;
  bool ok_ = false;
};

}  // namespace keelson::net::testing
