#include "http/server_connection.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include "async/start.h"
#include "http/upgraded_stream.h"

namespace keelson::http {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;   // one TLS record
constexpr int kReadsPerTurn = 16;               // then other connections have their turn
constexpr std::size_t kWriteBytes = 64 * 1024;  // produced at once; what the socket does not take of it waits in memory
constexpr std::size_t kWriteBytesPerTurn = 512 * 1024;
constexpr std::size_t kSpareRequestsMax = 64;  // room that a thread keeps for requests that wait to be started

// Buffers of the thread, not of the connection: between turns a connection holds none.
char* ReadScratch() {
  thread_local std::unique_ptr<char[]> scratch = std::make_unique<char[]>(kReadBytes);
  return scratch.get();
}
Output& WriteScratch() {
  thread_local Output scratch;
  return scratch;
}

}  // namespace

void ServerShared::Leave(std::atomic<std::uint64_t>& count) {
  if (count.fetch_sub(1) != 1) return;
  std::lock_guard lock(mutex);
  quiet.notify_all();
}

// Responses that become ready in one turn of the loop are written together: one pass per connection, not one per
// response.
void Shard::ScheduleWrite(const std::shared_ptr<ServerConnection>& connection) {
  scheduled.push_back(connection);
  if (run_posted) return;
  run_posted = true;
  asio::post(executor, [this] { RunScheduled(); });
}

void Shard::RunScheduled() {
  run_posted = false;
  running.swap(scheduled);
  for (const auto& connection : running) connection->RunScheduled();
  running.clear();
}

void Shard::DelayWrite(const std::shared_ptr<ServerConnection>& connection, std::chrono::nanoseconds delay) {
  delayed.push_back(connection);
  if (delayed.size() != 1) return;  // the timer runs
  delay_timer.expires_after(delay);
  delay_timer.async_wait([this](const boost::system::error_code&) { RunDelayed(); });
}

void Shard::RunDelayed() {
  // Connections hold the shard: moved out first, so that the last of them may go here.
  const auto due = std::exchange(delayed, {});
  for (const auto& connection : due) connection->RunDelayed();
}

ServerConnection::ServerConnection(std::shared_ptr<ServerShared> server, std::shared_ptr<Shard> shard,
                                   asio::ip::tcp::socket socket, std::string remote,
                                   std::unique_ptr<net::Transport> transport)
    : server_(std::move(server)),
      shard_(std::move(shard)),
      socket_(std::move(socket)),
      remote_(std::move(remote)),
      transport_(std::move(transport)) {
  phase_since_ = Now();
  ++server_->connections;
  ++server_->connections_total;
}

ServerConnection::~ServerConnection() { server_->Leave(server_->connections); }

base::Clock::SteadyTime ServerConnection::Now() const { return server_->options.clock->Monotonic(); }

void ServerConnection::Start() {
  if (transport_->encrypted()) {
    Handshake();
  } else {
    WaitReadable();
  }
}

void ServerConnection::WaitReadable() {
  if (reading_ || state_ == State::kClosed) return;
  reading_ = true;
  socket_.async_wait(asio::socket_base::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->reading_ = false;
    if (error || self->state_ == State::kClosed) return;
    self->OnReadable();
  });
}

void ServerConnection::WaitWritable() {
  if (writing_ || state_ == State::kClosed) return;
  writing_ = true;
  write_since_ = Now();
  socket_.async_wait(asio::socket_base::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->writing_ = false;
                       if (error || self->state_ == State::kClosed) return;
                       self->OnWritable();
                     });
}

void ServerConnection::OnReadable() {
  switch (state_) {
    case State::kHandshake:
      if (transport_->encrypted()) {
        Handshake();
      } else {
        BeginServing();
      }
      break;
    case State::kServing:
      Read();
      break;
    case State::kUpgraded:
      if (upgraded_ != nullptr) upgraded_->OnReadable();
      break;
    case State::kLingering: {
      std::size_t got = 0;
      for (int i = 0; i < kReadsPerTurn; ++i) {
        const auto status = transport_->Read(ReadScratch(), kReadBytes, &got);
        if (status == net::IOStatus::kWouldBlock) break;
        if (status != net::IOStatus::kOk) return Close();
      }
      WaitReadable();
      break;
    }
    case State::kClosed:
      break;
  }
}

void ServerConnection::OnWritable() {
  const auto status = transport_->Flush();
  if (status == net::IOStatus::kError) return Close();
  if (status == net::IOStatus::kWouldBlock) return WaitWritable();
  if (state_ == State::kHandshake) return Handshake();
  if (state_ == State::kServing) return Work();
  if (state_ == State::kUpgraded && upgraded_ != nullptr) upgraded_->OnWritable();
}

void ServerConnection::Handshake() {
  const auto status = transport_->Handshake();
  if (transport_->unsent() != 0) WaitWritable();
  if (status == net::IOStatus::kOk) return BeginServing();
  if (status == net::IOStatus::kWouldBlock) return WaitReadable();
  ++server_->tls_errors;
  if (server_->options.on_tls_error) server_->options.on_tls_error(remote_, transport_->error_text());
  if (transport_->plain_http_seen()) {
    transport_->WriteRaw("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
  }
  Finish();
}

void ServerConnection::BeginServing() {
  bool http2 = false;
  if (transport_->encrypted()) {
    auto tls = transport_->TakeTLSState();
    http2 = tls.alpn_h2;
    if (!tls.peer_chain_der.empty()) {
      auto peer = std::make_shared<PeerCertificate>();
      peer->chain_der = std::move(tls.peer_chain_der);
      peer_ = std::move(peer);
    }
  } else {
    char first = 0;
    http2 = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK) == 1 && first == 'P' && [&] {
      char preface[3] = {};
      return ::recv(socket_.native_handle(), preface, 3, MSG_PEEK) == 3 && std::string_view(preface, 3) == "PRI";
    }();
  }
  state_ = State::kServing;
  session_ = http2 ? NewHttp2Session(*this, server_->options.limits) : NewHttp1Session(*this, server_->options.limits);
  phase_since_ = Now();
  if (draining_) session_->ShutdownGracefully();
  Read();
}

void ServerConnection::Read() {
  auto self = shared_from_this();
  for (int i = 0; i < kReadsPerTurn && state_ == State::kServing && session_->wants_input(); ++i) {
    std::size_t got = 0;
    const auto status = transport_->Read(ReadScratch(), kReadBytes, &got);
    if (status == net::IOStatus::kOk) {
      body_since_ = Now();
      session_->Receive({ReadScratch(), got});
      if (!transport_->drained() || !session_->wants_input()) continue;
      WaitReadable();
      break;
    }
    if (status == net::IOStatus::kWouldBlock) {
      WaitReadable();
      break;
    }
    if (status == net::IOStatus::kError) return Close();
    session_->ReceiveEnd();
    break;
  }
  // A turn's worth was read and there may be more, also inside the TLS layer where the socket does not show it.
  if (!reading_) WantWrite();
  Work();
}

void ServerConnection::WantWrite() {
  if (working_) {
    again_ = true;
    return;
  }
  if (scheduled_ || state_ != State::kServing) return;
  scheduled_ = true;
  shard_->ScheduleWrite(shared_from_this());
}

// A connection that was quiet is written to at once. One that was written to within the delay waits for the thread's
// next round; whatever else is written to it meanwhile takes the waiting data along.
void ServerConnection::WantWriteSoon() {
  const auto delay = server_->options.event_delay;
  const auto since = delay.count() == 0 ? delay : Now() - written_;
  if (since >= delay || working_) return WantWrite();
  if (delayed_ || scheduled_ || state_ != State::kServing) return;
  delayed_ = true;
  shard_->DelayWrite(shared_from_this(), delay - since);
}

void ServerConnection::RunDelayed() {
  delayed_ = false;
  RunScheduled();
}

void ServerConnection::RunScheduled() {
  scheduled_ = false;
  if (state_ != State::kServing) return;
  if (!reading_ && session_->wants_input()) return Read();
  Work();
}

// Starts handlers and writes what is ready, in one go: a handler that does not wait is answered in the turn that read
// its request.
void ServerConnection::Work() {
  if (working_ || state_ != State::kServing) return;
  auto self = shared_from_this();
  working_ = true;
  again_ = false;
  auto requests = std::exchange(requests_, {});
  for (auto& [exchange, request] : requests) {
    auto run = RunHandler(self, std::move(exchange), std::move(request));
    async::Start(shard_->executor, std::move(run));
  }
  requests.clear();
  if (requests.capacity() <= kSpareRequestsMax) shard_->spare_requests.swap(requests);
  again_ = false;  // answers so far are written now
  Pump();
  working_ = false;
  if (again_ || !requests_.empty()) WantWrite();
}

void ServerConnection::Pump() {
  std::size_t total = 0;
  while (transport_->unsent() == 0) {
    Output& out = WriteScratch();
    session_->Produce(out, kWriteBytes);
    if (out.empty()) break;
    total += out.size();
    if (server_->options.event_delay.count() != 0) written_ = Now();
    const auto status = transport_->Write(out.pieces());
    out.Clear();
    if (status == net::IOStatus::kError) return Close();
    if (total >= kWriteBytesPerTurn) {
      again_ = true;
      break;
    }
  }
  if (transport_->unsent() != 0) return WaitWritable();
  if (auto upgrade = session_->TakeUpgrade()) return Upgrade(std::move(upgrade));
  if (session_->finished()) Finish();
}

// Ends the connection so that the peer can read our last bytes: a reset would throw them away.
void ServerConnection::Finish() {
  if (state_ == State::kLingering || state_ == State::kClosed) return;
  state_ = State::kLingering;
  phase_since_ = Now();
  if (session_ != nullptr) session_->Abort();
  DropRequests();
  transport_->CloseWrite();
  if (transport_->unsent() != 0) WaitWritable();
  WaitReadable();
}

void ServerConnection::Close() {
  if (state_ == State::kClosed) return;
  auto self = shared_from_this();
  state_ = State::kClosed;
  if (session_ != nullptr) session_->Abort();
  if (upgraded_ != nullptr) upgraded_->OnGone();
  boost::system::error_code ignored;
  socket_.close(ignored);
  DropRequests();
  shard_->connections.erase(position);
}

// Of handlers that will never start.
void ServerConnection::DropRequests() {
  for (std::size_t i = 0; i < requests_.size(); ++i) server_->Leave(server_->handlers);
  requests_.clear();
}

void ServerConnection::ShutdownGracefully() {
  draining_ = true;
  if (state_ == State::kServing) session_->ShutdownGracefully();
}

void ServerConnection::Tick(base::Clock::SteadyTime now) {
  const ServerOptions& options = server_->options;
  if (writing_ && now - write_since_ >= options.write_timeout) return Close();
  switch (state_) {
    case State::kHandshake:
      if (now - phase_since_ >= options.header_timeout) Close();
      return;
    case State::kLingering:
      if (now - phase_since_ >= options.linger) Close();
      return;
    case State::kUpgraded:
    case State::kClosed:
      return;
    case State::kServing:
      break;
  }
  session_->Tick(now);
  const Phase phase = session_->phase();
  if (phase != phase_ || session_->requests() != phase_request_) {
    phase_ = phase;
    phase_request_ = session_->requests();
    phase_since_ = now;
  }
  if (phase == Phase::kHeaders && now - phase_since_ >= options.header_timeout) return Close();
  if (phase == Phase::kIdle && now - phase_since_ >= options.idle_timeout) {
    session_->ShutdownGracefully();
    if (now - phase_since_ >= options.idle_timeout + options.linger) return Close();
  }
  const bool waiting = session_->body_waiting();
  if (waiting && !body_waiting_) body_since_ = now;
  body_waiting_ = waiting;
  if (waiting && now - body_since_ >= options.body_timeout) session_->FailStalledBodies();
}

void ServerConnection::OnRequest(base::Ref<Exchange> exchange, std::unique_ptr<Request> request) {
  request->tls = transport_->encrypted();
  request->remote_address = remote_;
  request->peer = peer_;
  request->received = Now();
  request->body = exchange->NewBodyReader();
  request->on_close = [exchange](std::function<void()> callback) { exchange->OnClose(std::move(callback)); };
  ++server_->requests_total;
  ++server_->handlers;
  if (requests_.capacity() == 0) requests_.swap(shard_->spare_requests);
  requests_.emplace_back(std::move(exchange), std::move(request));
  WantWrite();
}

async::Entry ServerConnection::RunHandler(std::shared_ptr<ServerConnection> self, base::Ref<Exchange> exchange,
                                          std::unique_ptr<Request> request) {
  Response response;
  try {
    auto answered = server_->handler(std::move(*request));
    request.reset();
    response = co_await std::move(answered);
  } catch (...) {  // a handler's own filter answers exceptions properly; this only keeps the process alive
    response = Response();
    response.status = 500;
  }
  if (session_ != nullptr) session_->Respond(*exchange, std::move(response));
  server_->Leave(server_->handlers);
}

void ServerConnection::Upgrade(UpgradeHandler handler) {
  state_ = State::kUpgraded;
  ++server_->handlers;
  auto run = RunUpgrade(shared_from_this(), std::move(handler), session_->TakeLeftover());
  asio::co_spawn(shard_->executor, std::move(run), asio::detached);
}

Awaitable<void> ServerConnection::RunUpgrade(std::shared_ptr<ServerConnection> self, UpgradeHandler handler,
                                             std::string leftover) {
  try {
    auto stream = std::make_unique<UpgradedStream>(self, std::move(leftover));
    co_await handler(std::move(stream));
  } catch (...) {
  }
  if (state_ == State::kUpgraded) Finish();
  server_->Leave(server_->handlers);
}

}  // namespace keelson::http
