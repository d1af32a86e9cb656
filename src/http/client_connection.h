// The driver of one outgoing connection. For this folder only. Everything on the client's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>

#include "http/client_session.h"
#include "net/dialer.h"
#include "net/transport.h"

namespace keelson::http {

class ClientConnection final : public std::enable_shared_from_this<ClientConnection>, private ClientSessionHost {
 public:
  ClientConnection(asio::any_io_executor executor, base::Ref<WakeQueue> queue, net::StreamSocket socket,
                   std::unique_ptr<net::Transport> transport)
      : executor_(std::move(executor)),
        queue_(std::move(queue)),
        socket_(std::move(socket)),
        transport_(std::move(transport)) {
    transport_->DescribePeers();
  }
  // Calls under way fail; their session must not schedule a write any more, which would need a reference to this.
  ~ClientConnection() {
    closed_ = true;
    session_.reset();
  }

  // The TLS handshake; `done` gets "" or the error.
  void Handshake(std::function<void(const std::string& error)> done);
  bool alpn_h2() const { return alpn_h2_; }
  void Serve(std::function<std::unique_ptr<ClientSession>(ClientSessionHost&)> make_session);

  ClientSession& session() { return *session_; }
  bool open() const { return !closed_ && session_ != nullptr && !session_->finished(); }
  void Close(const ClientError& error);
  const std::string& close_reason() const { return close_reason_; }
  // HTTP/2: a PING after kReadIdleTimeout without a frame; without an answer the connection is closed, so that no call
  // waits for a dead peer (Go's ReadIdleTimeout and PingTimeout as client-go sets them).
  static constexpr std::chrono::seconds kReadIdleTimeout{30};
  static constexpr std::chrono::seconds kPingTimeout{15};
  void CheckHealth(std::chrono::steady_clock::time_point now);
  // After a 101: the raw stream.
  std::unique_ptr<Stream> TakeStream();

  std::chrono::steady_clock::time_point idle_since{};

 private:
  friend class ClientRawStream;
  void WantWrite() override;
  const base::Ref<WakeQueue>& wake_queue() const override { return queue_; }
  void WaitReadable();
  void WaitWritable();
  void OnReady();
  void Work();
  void HandshakeStep();

  asio::any_io_executor executor_;
  base::Ref<WakeQueue> queue_;
  net::StreamSocket socket_;
  std::unique_ptr<net::Transport> transport_;
  std::unique_ptr<ClientSession> session_;
  std::function<void(const std::string&)> handshake_done_;
  class ClientRawStream* raw_ = nullptr;
  std::chrono::steady_clock::time_point last_read_{};
  std::chrono::steady_clock::time_point ping_sent_{};  // zero: none under way
  bool raw_mode_ = false;
  bool alpn_h2_ = false;
  bool closed_ = false;
  std::string close_reason_;
  bool reading_ = false;
  bool writing_ = false;
  bool scheduled_ = false;
};

enum class ClientProtocol : std::uint8_t {
  kNegotiated,  // HTTP/2 where TLS agrees on it
  kHTTP1,       // h2 is not offered
  kHTTP2Known,  // HTTP/2 with prior knowledge: no TLS to negotiate it (gRPC)
};
// Dials, shakes hands and starts a session. `options` must outlive the call.
Awaitable<Outcome<std::shared_ptr<ClientConnection>, ClientError>> OpenConnection(asio::any_io_executor executor,
                                                                                  base::Ref<WakeQueue> queue,
                                                                                  const ClientOptions& options,
                                                                                  ClientProtocol protocol);

}  // namespace keelson::http
