// Calls one server: HTTP/1.1 or HTTP/2 (what TLS agrees on), connections pooled, answers streamed.
// Never follows a redirect: a 3xx is an answer like any other. An upgrade that is refused ends its connection.
// Thread safety: Do() from any coroutine; the answer's body and stream are used from the coroutine that got it.
// Ownership: the pool must outlive the client. Calls under way keep what they need when the client is destroyed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "async/cancellation.h"
#include "async/io_pool.h"
#include "http/message.h"
#include "net/dialer.h"
#include "net/tls_client.h"

namespace keelson::http {

struct ClientOptions {
  net::DialTarget target;
  net::DialerPtr dialer;                       // null: net::Dial
  std::shared_ptr<net::TLSClientContext> tls;  // null: plain text, HTTP/1.1
  std::string server_name;                     // in the certificate; empty: target.host
  std::string host_header;                     // empty: target.host[:port]
  bool http1_only = false;                     // h2 is not offered
  std::chrono::milliseconds dial_timeout{30'000};
  std::chrono::milliseconds tls_handshake_timeout{10'000};
  std::chrono::milliseconds idle_timeout{90'000};
  std::size_t idle_connections_max = 25;  // HTTP/1.1 connections kept for later
  std::size_t response_header_bytes_max = 1024 * 1024;
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";  // path and query
  Headers headers;           // Host, Content-Length and Transfer-Encoding are made here
  std::variant<SharedBytes, std::unique_ptr<BodySource>> body;
  std::optional<std::chrono::steady_clock::time_point> deadline;  // for everything up to the end of the answer's body
  async::CancellationPtr cancellation;  // ends the call with kCanceled, also while its body is read
  bool upgrade = false;  // the headers request an upgrade (Connection: Upgrade): a separate connection, HTTP/1.1
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  int http_major = 1;
  std::unique_ptr<BodyReader> body;  // never null; dropping it unread gives up the rest of the answer
  std::unique_ptr<Stream> stream;    // with 101: the raw connection
};

struct ClientError {
  enum class Kind : std::uint8_t {
    kDial,      // no connection: refused, unreachable, no such host, dial timeout
    kTLS,       // the handshake failed
    kTimeout,   // the call's own deadline: "context deadline exceeded"
    kCanceled,  // "context canceled"
    kClosed,    // the connection ended before an answer: EOF, reset
    kProtocol,  // the answer is not HTTP
  };
  Kind kind;
  std::string message;
};

class Client {
 public:
  Client(async::IOPool& pool, ClientOptions options);
  ~Client();  // idle connections are closed

  Awaitable<Outcome<ClientResponse, ClientError>> Do(ClientRequest request);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::http
