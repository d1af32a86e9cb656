#include "http/client_connection.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/park.h"
#include "net/address.h"

namespace keelson::http {
namespace {
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr int kReadsPerTurn = 16;
constexpr std::size_t kWriteBytes = 64 * 1024;
constexpr std::size_t kWriteBytesPerTurn = 512 * 1024;
}  // namespace

// A connection that has left HTTP, used from a coroutine that may run on another thread: each call goes to the client's
// thread and back.
class ClientRawStream final : public Stream {
 public:
  ClientRawStream(std::shared_ptr<ClientConnection> connection, std::string leftover)
      : shared_(std::make_shared<Shared>()) {
    shared_->connection = std::move(connection);
    shared_->leftover = std::move(leftover);
    shared_->connection->raw_ = this;
  }
  ~ClientRawStream() override { Close(); }

  Awaitable<Outcome<SharedBytes, BodyError>> Read() override {
    auto here = ReadHere(shared_);
    return asio::co_spawn(shared_->connection->executor_, std::move(here), asio::use_awaitable);
  }
  Awaitable<Outcome<void, BodyError>> Write(SharedBytes bytes) override {
    auto here = WriteHere(shared_, std::move(bytes));
    return asio::co_spawn(shared_->connection->executor_, std::move(here), asio::use_awaitable);
  }
  void Close() override {
    asio::post(shared_->connection->executor_, [shared = shared_] {
      shared->connection->raw_ = nullptr;
      shared->connection->Close({ClientError::Kind::kClosed, "closed"});
      Wake(shared->reader);
      Wake(shared->writer);
    });
  }

  void OnReady() {
    Wake(shared_->reader);
    Wake(shared_->writer);
  }

 private:
  struct Shared {
    std::shared_ptr<ClientConnection> connection;
    std::string leftover;
    std::function<void()> reader;
    std::function<void()> writer;
  };
  static Awaitable<Outcome<SharedBytes, BodyError>> ReadHere(std::shared_ptr<Shared> shared) {
    if (!shared->leftover.empty()) co_return SharedBytes::FromString(std::exchange(shared->leftover, std::string()));
    for (;;) {
      ClientConnection& connection = *shared->connection;
      if (connection.closed_) co_return BodyError::kClientGone;
      std::array<char, kReadBytes> buffer;
      std::size_t got = 0;
      const auto status = connection.transport_->Read(buffer.data(), buffer.size(), &got);
      if (status == net::IOStatus::kOk) co_return SharedBytes(std::string_view(buffer.data(), got));
      if (status == net::IOStatus::kClosed) co_return SharedBytes();
      if (status == net::IOStatus::kError) {
        connection.Close({ClientError::Kind::kClosed, "closed"});
        co_return BodyError::kClientGone;
      }
      connection.WaitReadable();
      co_await Park(shared->reader);
    }
  }
  static Awaitable<Outcome<void, BodyError>> WriteHere(std::shared_ptr<Shared> shared, SharedBytes bytes) {
    ClientConnection& connection = *shared->connection;
    if (connection.closed_) co_return BodyError::kClientGone;
    const std::string_view piece = bytes.view();
    if (connection.transport_->Write({&piece, 1}) == net::IOStatus::kError) {
      connection.Close({ClientError::Kind::kClosed, "closed"});
      co_return BodyError::kClientGone;
    }
    while (!connection.closed_ && connection.transport_->unsent() != 0) {
      connection.WaitWritable();
      co_await Park(shared->writer);
    }
    if (connection.closed_) co_return BodyError::kClientGone;
    co_return Outcome<void, BodyError>();
  }

  std::shared_ptr<Shared> shared_;
};

void ClientConnection::Handshake(std::function<void(const std::string& error)> done) {
  handshake_done_ = std::move(done);
  HandshakeStep();
}

void ClientConnection::HandshakeStep() {
  const auto status = transport_->Handshake();
  if (transport_->unsent() != 0) WaitWritable();
  if (status == net::IOStatus::kWouldBlock) return WaitReadable();
  auto done = std::exchange(handshake_done_, nullptr);
  if (status != net::IOStatus::kOk) {
    const std::string text = transport_->error_text().empty() ? "EOF" : transport_->error_text();
    Close({ClientError::Kind::kTLS, text});
    return done(text);
  }
  alpn_h2_ = transport_->TakeTLSState().alpn_h2;
  done({});
}

void ClientConnection::CheckHealth(std::chrono::steady_clock::time_point now) {
  if (closed_ || session_ == nullptr || raw_mode_) return;
  if (ping_sent_ != std::chrono::steady_clock::time_point{}) {
    if (now - ping_sent_ >= kPingTimeout) Close({ClientError::Kind::kClosed, "http2: client connection lost"});
    return;
  }
  if (now - last_read_ < kReadIdleTimeout || !session_->Ping()) return;
  ping_sent_ = now;
}

void ClientConnection::Serve(std::function<std::unique_ptr<ClientSession>(ClientSessionHost&)> make_session) {
  session_ = make_session(*this);
  last_read_ = std::chrono::steady_clock::now();
  WaitReadable();
}

void ClientConnection::WaitReadable() {
  if (reading_ || closed_) return;
  reading_ = true;
  socket_.async_wait(asio::socket_base::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->reading_ = false;
    if (!error) self->OnReady();
  });
}

void ClientConnection::WaitWritable() {
  if (writing_ || closed_) return;
  writing_ = true;
  socket_.async_wait(asio::socket_base::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->writing_ = false;
                       if (!error) self->OnReady();
                     });
}

void ClientConnection::OnReady() {
  if (closed_) return;
  if (transport_->unsent() != 0) {
    const auto status = transport_->Flush();
    if (status == net::IOStatus::kError) return Close({ClientError::Kind::kClosed, transport_->error_text()});
    if (status == net::IOStatus::kWouldBlock) WaitWritable();
  }
  if (handshake_done_) return HandshakeStep();
  if (raw_mode_) {
    if (raw_ != nullptr) raw_->OnReady();
    return;
  }
  Work();
}

void ClientConnection::WantWrite() {
  if (scheduled_ || closed_) return;
  scheduled_ = true;
  asio::post(executor_, [self = shared_from_this()] {
    self->scheduled_ = false;
    if (!self->closed_ && !self->raw_mode_) self->Work();
  });
}

void ClientConnection::Work() {
  if (session_ == nullptr) return;
  auto self = shared_from_this();
  std::array<char, kReadBytes> buffer;
  for (int i = 0; i < kReadsPerTurn && !reading_ && !closed_ && session_->wants_input(); ++i) {
    std::size_t got = 0;
    const auto status = transport_->Read(buffer.data(), buffer.size(), &got);
    if (status == net::IOStatus::kOk) {
      last_read_ = std::chrono::steady_clock::now();
      ping_sent_ = {};  // any frame is a sign of life
      session_->Receive({buffer.data(), got});
      if (transport_->drained()) WaitReadable();  // another read would find nothing
    } else if (status == net::IOStatus::kWouldBlock) {
      WaitReadable();
    } else if (status == net::IOStatus::kClosed) {
      session_->ReceiveEnd();
      return Close({ClientError::Kind::kClosed, "EOF"});
    } else {
      return Close({ClientError::Kind::kClosed, transport_->error_text()});
    }
  }
  std::size_t total = 0;
  Output out;
  while (!closed_ && !raw_mode_ && transport_->unsent() == 0) {
    session_->Produce(out, kWriteBytes);
    if (out.empty()) break;
    total += out.size();
    const auto status = transport_->Write(out.pieces());
    out.Clear();
    if (status == net::IOStatus::kError) return Close({ClientError::Kind::kClosed, transport_->error_text()});
    if (total >= kWriteBytesPerTurn) {
      WantWrite();
      break;
    }
  }
  if (closed_) return;
  if (transport_->unsent() != 0) WaitWritable();
  if (!reading_ && session_->wants_input()) WantWrite();
  if (session_->finished() && transport_->unsent() == 0 && !raw_mode_) Close({ClientError::Kind::kClosed, "closed"});
}

void ClientConnection::Close(const ClientError& error) {
  if (closed_) return;
  auto self = shared_from_this();
  closed_ = true;
  close_reason_ = error.message;
  if (session_ != nullptr) session_->Abort(error);
  if (transport_ != nullptr && !handshake_done_ && error.kind != ClientError::Kind::kTLS) transport_->CloseWrite();
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (raw_ != nullptr) raw_->OnReady();
  if (auto done = std::exchange(handshake_done_, nullptr)) done(error.message);
}

std::unique_ptr<Stream> ClientConnection::TakeStream() {
  raw_mode_ = true;
  return std::make_unique<ClientRawStream>(shared_from_this(), session_->TakeLeftover());
}

namespace {

// The TLS handshake of a connection; "" or the error.
Awaitable<std::string> HandshakeWithin(asio::any_io_executor executor, std::shared_ptr<ClientConnection> connection,
                                       std::chrono::milliseconds timeout) {
  auto timer = std::make_shared<asio::steady_timer>(executor, timeout);
  timer->async_wait([connection, timer](const boost::system::error_code& error) {
    if (!error && !connection->open()) connection->Close({ClientError::Kind::kTLS, "net/http: TLS handshake timeout"});
  });
  const std::string error = co_await async::ParkFor<std::string>(
      [connection](std::function<void(std::string)> done) { connection->Handshake(std::move(done)); });
  timer->cancel();
  co_return error;
}

std::string HostHeader(const ClientOptions& options) {
  if (!options.host_header.empty()) return options.host_header;
  const bool usual = options.target.port == (options.tls != nullptr ? 443 : 80) || options.target.port == 0;
  return usual ? options.target.host : net::JoinHostPort(options.target.host, options.target.port);
}

}  // namespace

Awaitable<Outcome<std::shared_ptr<ClientConnection>, ClientError>> OpenConnection(asio::any_io_executor executor,
                                                                                  base::Ref<WakeQueue> queue,
                                                                                  const ClientOptions& options,
                                                                                  ClientProtocol protocol) {
  const auto deadline = std::chrono::steady_clock::now() + options.dial_timeout;
  auto socket = options.dialer != nullptr ? co_await options.dialer->Dial(options.target, deadline)
                                          : co_await net::Dial(options.target, deadline);
  if (!socket.ok()) co_return ClientError{ClientError::Kind::kDial, socket.error().message};
  const int fd = socket->native_handle();
  const std::string name = options.server_name.empty() ? options.target.host : options.server_name;
  auto transport = options.tls != nullptr
                       ? options.tls->Connect(fd, name, protocol == ClientProtocol::kHTTP1 || options.http1_only)
                       : net::NewPlainTransport(fd);
  auto connection = std::make_shared<ClientConnection>(executor, queue, *std::move(socket), std::move(transport));
  if (options.tls != nullptr) {
    const std::string error = co_await HandshakeWithin(executor, connection, options.tls_handshake_timeout);
    if (!error.empty()) co_return ClientError{ClientError::Kind::kTLS, error};
  }
  const bool tls = options.tls != nullptr;
  const bool h2 = tls ? connection->alpn_h2() : protocol == ClientProtocol::kHTTP2Known;
  const std::string host = HostHeader(options);
  connection->Serve([&](ClientSessionHost& session_host) {
    return h2 ? NewHttp2ClientSession(session_host, host, tls, options.response_header_bytes_max)
              : NewHttp1ClientSession(session_host, host, options.response_header_bytes_max);
  });
  co_return connection;
}

}  // namespace keelson::http
