// A server that does exactly what a test says, also what no server should: resets, silence, trickles, lies about
// lengths. One thread per connection, blocking sockets, on 127.0.0.1 and a port of the system's choice.
// Thread safety: a Script runs on the connection's thread. Ownership: the destructor closes everything and waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/testing/certificates.h"

namespace keelson::net::testing {

class ScriptedConnection {
 public:
  virtual ~ScriptedConnection() = default;
  // Everything up to and with `mark`; what there was when the client ends the connection.
  virtual std::string ReadUntil(std::string_view mark) = 0;
  virtual std::string ReadSome(std::size_t bytes_max) = 0;  // at least one byte; "" at the end
  virtual bool Write(std::string_view bytes) = 0;
  virtual void Reset() = 0;       // RST
  virtual void WaitForEnd() = 0;  // until the client closes or the peer is destroyed
  // Carries bytes between the client and 127.0.0.1:`port` until one of them ends, or until `bytes_max` bytes have gone
  // to the client. For peers without TLS.
  virtual void Relay(std::uint16_t port, std::size_t bytes_max = SIZE_MAX) = 0;
  // Reads one HTTP/1.1 request with its body.
  std::string ReadRequest();
};

struct ScriptedPeerOptions {
  bool tls = false;
  KeyPair certificate;
  std::string client_ca_pem;  // clients must have a certificate of it
  bool http2 = false;         // agrees on h2
};

class ScriptedPeer {
 public:
  using Script = std::function<void(ScriptedConnection&)>;
  explicit ScriptedPeer(Script script, ScriptedPeerOptions options = {});
  ~ScriptedPeer();

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_.load(); }

 private:
  void Accept();
  void Serve(int fd);

  Script script_;
  ScriptedPeerOptions options_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
  std::shared_ptr<void> tls_context_;
};

// A port on 127.0.0.1 without a listener.
std::uint16_t RefusingPort();

}  // namespace keelson::net::testing
