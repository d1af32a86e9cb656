// Accepts connections and serves HTTP/1.1 and HTTP/2 on them with one Handler.
// A connection lives on one I/O thread, where its handlers run too. Thread safety: all members from any thread.
// Ownership: the pool must outlive the server and must run until the server is destroyed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "async/io_pool.h"
#include "base/clock.h"
#include "http/message.h"
#include "http/session.h"
#include "net/listener.h"
#include "net/tls_server.h"

namespace keelson::http {

struct ServerOptions {
  SessionLimits limits;
  std::chrono::milliseconds header_timeout{
      32'000};  // from the first byte of a request (or the connection) to the end of its head
  std::chrono::milliseconds idle_timeout{90'000};    // a connection without a request
  std::chrono::milliseconds body_timeout{60'000};    // a handler waits for a body and nothing comes: it gets kTimeout
  std::chrono::milliseconds write_timeout{300'000};  // the socket takes nothing
  std::chrono::milliseconds linger{5'000};  // for the peer to read the last answer and close; a reset would destroy it
  std::chrono::milliseconds tick{1'000};    // how often timeouts are looked at
  std::size_t connections_max = 100'000;    // further ones are closed at once
  // Longest wait of a watch event whose connection was written to within this time: events of that time leave in one
  // write. 0: none waits.
  std::chrono::nanoseconds event_delay{0};
  const base::Clock* clock = &base::Clock::Real();  // for timeouts and event_delay; must outlive the server
  // On any I/O thread. `remote` is 127.0.0.1:41234.
  std::function<void(const std::string& remote, const std::string& error)> on_tls_error;
};

struct ServerStats {
  std::uint64_t connections = 0;  // open now
  std::uint64_t connections_total = 0;
  std::uint64_t requests_total = 0;
  std::uint64_t handlers = 0;  // running now
  std::uint64_t tls_handshake_errors_total = 0;
};

class Server {
 public:
  Server(async::IOPool& pool, Handler handler, ServerOptions options = {});
  ~Server();  // Close(), then waits until every connection and handler is gone

  // Accepts on `listener` from now on; may be called for several. Without `tls` plain text is spoken (HTTP/2 by prior
  // knowledge).
  void Start(net::Listener listener, std::shared_ptr<net::TLSServerContext> tls);

  // Graceful shutdown: closes the listeners, notifies clients (GOAWAY, Connection: close), waits for requests in
  // progress until `timeout`, then closes what is left. True when everything had ended by itself.
  Awaitable<bool> Shutdown(std::chrono::milliseconds timeout);
  void StopListening();
  void Close();  // everything now

  ServerStats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::http
