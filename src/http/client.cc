#include "http/client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <vector>

#include "http/client_connection.h"
#include "http/park.h"

namespace keelson::http {
namespace {

constexpr int kAttemptsMax = 3;
constexpr std::chrono::seconds kHealthInterval{5};

using Clock = std::chrono::steady_clock;
using ConnectionPtr = std::shared_ptr<ClientConnection>;

// Resources held during a call: its connection, its deadline and its cancellation.
struct Ticket : std::enable_shared_from_this<Ticket> {
  explicit Ticket(const asio::any_io_executor& executor) : timer(executor), executor(executor) {}
  base::Ref<Call> call;  // null until there is a connection
  ConnectionPtr connection;
  asio::steady_timer timer;
  asio::any_io_executor executor;
  async::Cancellation::Registration registration;
  std::optional<ClientError> ended;  // by its deadline or its cancellation
  std::function<void()> waiter;      // of the call while it waits for a connection

  void Watch(const ClientRequest& request) {
    if (request.deadline) {
      timer.expires_at(*request.deadline);
      timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error) self->End({ClientError::Kind::kTimeout, "context deadline exceeded"});
      });
    }
    if (request.cancellation == nullptr) return;
    registration = request.cancellation->OnCancel([weak = weak_from_this(), to = executor] {
      asio::post(to, [weak] {
        if (auto self = weak.lock()) self->End({ClientError::Kind::kCanceled, "context canceled"});
      });
    });
  }
  void Release() {
    timer.cancel();
    registration = {};
  }
  void End(const ClientError& error) {
    if (ended) return;
    ended = error;
    if (call) {
      call->Fail(error);
      call->exchange->FailBody(error.kind == ClientError::Kind::kTimeout ? BodyError::kTimeout
                                                                         : BodyError::kClientGone);
      if (connection->open()) connection->session().Cancel(*call);
    }
    Wake();
  }
  void Wake() { http::Wake(waiter); }
};

// The answer's body for a coroutine that may run on another thread.
class ClientBody final : public BodyReader {
 public:
  explicit ClientBody(std::shared_ptr<Ticket> ticket) : ticket_(std::move(ticket)) {}
  ~ClientBody() override {
    asio::post(ticket_->executor, [ticket = ticket_] {
      ticket->Release();
      if (ticket->connection->open()) ticket->connection->session().Cancel(*ticket->call);
    });
  }
  Awaitable<Outcome<SharedBytes, BodyError>> Read() override {
    auto here = ReadHere(ticket_);
    return asio::co_spawn(ticket_->executor, std::move(here), asio::use_awaitable);
  }

 private:
  static Awaitable<Outcome<SharedBytes, BodyError>> ReadHere(std::shared_ptr<Ticket> ticket) {
    co_return co_await ticket->call->exchange->Read();
  }
  std::shared_ptr<Ticket> ticket_;
};

// A connection being opened for a call. The call may end first (deadline, cancellation); the connection then goes to
// the pool for the next one, as in Go.
struct Opening {
  std::weak_ptr<Ticket> ticket;
  std::optional<Outcome<ConnectionPtr, ClientError>> result;
};

}  // namespace

struct Client::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::any_io_executor executor, ClientOptions options)
      : executor(executor),
        options(std::move(options)),
        queue(base::MakeRef<WakeQueue>(executor)),
        idle_timer(executor) {}

  asio::any_io_executor executor;
  ClientOptions options;
  base::Ref<WakeQueue> queue;
  asio::steady_timer idle_timer;
  bool idle_armed = false;
  std::vector<ConnectionPtr> connections;

  // Drops what is closed; closes what has been idle too long, or more than should be kept.
  void Sweep() {
    const auto now = Clock::now();
    std::size_t idle = 0;
    for (const auto& connection : connections) {
      if (!connection->open() || !connection->session().Idle()) continue;
      if (connection->idle_since == Clock::time_point{}) connection->idle_since = now;
      if (now - connection->idle_since >= options.idle_timeout || ++idle > options.idle_connections_max) {
        connection->Close({ClientError::Kind::kClosed, "idle"});
      }
    }
    std::erase_if(connections, [](const ConnectionPtr& connection) { return !connection->open(); });
  }

  void ArmIdle() {
    if (idle_armed || connections.empty()) return;
    idle_armed = true;
    idle_timer.expires_after(std::min<Clock::duration>(options.idle_timeout / 4, kHealthInterval));
    idle_timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (error || self == nullptr) return;
      self->idle_armed = false;
      for (const auto& connection : std::vector<ConnectionPtr>(self->connections))
        connection->CheckHealth(Clock::now());
      self->Sweep();
      self->ArmIdle();
    });
  }

  static Awaitable<void> OpenFor(std::shared_ptr<Impl> self, std::shared_ptr<Opening> opening, bool upgrade) {
    auto opened = co_await OpenConnection(self->executor, self->queue, self->options,
                                          upgrade ? ClientProtocol::kHTTP1 : ClientProtocol::kNegotiated);
    auto ticket = opening->ticket.lock();
    if (ticket == nullptr || ticket->ended) {
      if (opened.ok()) self->Keep(*opened, upgrade);
      co_return;
    }
    opening->result = std::move(opened);
    ticket->Wake();
  }

  // Puts a connection into the pool; one for an upgrade is never shared.
  void Keep(const ConnectionPtr& connection, bool upgrade) {
    if (upgrade) return connection->Close({ClientError::Kind::kClosed, "request canceled"});
    connections.push_back(connection);
    ArmIdle();
  }

  // A connection of the pool that takes a call now, or a new one.
  static Awaitable<Outcome<ConnectionPtr, ClientError>> ConnectionFor(std::shared_ptr<Impl> self,
                                                                      std::shared_ptr<Ticket> ticket, bool upgrade) {
    self->Sweep();
    if (!upgrade) {
      for (const auto& candidate : self->connections) {
        if (candidate->open() && candidate->session().Available()) co_return candidate;
      }
    }
    auto opening = std::make_shared<Opening>(Opening{ticket, std::nullopt});
    asio::co_spawn(self->executor, OpenFor(self, opening, upgrade), asio::detached);
    while (!opening->result && !ticket->ended) co_await Park(ticket->waiter);
    if (ticket->ended) {
      if (opening->result && opening->result->ok()) self->Keep(**opening->result, upgrade);
      co_return *ticket->ended;
    }
    auto opened = *std::move(opening->result);
    if (!opened.ok()) co_return opened;
    if (!(*opened)->open()) {  // ended between the handshake and the call
      const std::string& reason = (*opened)->close_reason();
      co_return ClientError{ClientError::Kind::kClosed, reason.empty() ? "EOF" : reason};
    }
    if (!upgrade) self->Keep(*opened, upgrade);
    co_return opened;
  }

  static Awaitable<Outcome<ClientResponse, ClientError>> DoHere(std::shared_ptr<Impl> self, ClientRequest request) {
    const bool upgrade = request.upgrade;
    ClientError last{ClientError::Kind::kClosed, "no attempt"};
    auto ticket = std::make_shared<Ticket>(self->executor);
    ticket->Watch(request);
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      auto connected = co_await ConnectionFor(self, ticket, upgrade);
      if (!connected.ok()) {
        ticket->Release();
        co_return connected.error();
      }
      ticket->connection = *std::move(connected);
      ticket->connection->idle_since = {};
      auto call = base::MakeRef<Call>(std::move(request), self->queue);
      ticket->call = call;
      ticket->connection->session().Start(call);
      if (!call->head && !call->error) co_await Park(call->waiter);
      if (call->error) {
        if (upgrade) ticket->connection->Close(*call->error);
        last = ticket->ended.value_or(*call->error);
        if (!call->retriable || ticket->ended) break;
        request = std::move(call->request);
        continue;
      }
      ClientResponse response;
      response.status = call->head->status;
      response.headers = std::move(call->head->headers);
      response.http_major = call->head->major;
      if (call->upgraded) {
        ticket->Release();
        response.stream = ticket->connection->TakeStream();
      }
      response.body = std::make_unique<ClientBody>(std::move(ticket));
      co_return response;
    }
    ticket->Release();
    co_return last;
  }
};

Client::Client(async::IOPool& pool, ClientOptions options)
    : impl_(std::make_shared<Impl>(pool.Next(), std::move(options))) {}

Client::~Client() {
  asio::post(impl_->executor, [impl = impl_] {
    impl->idle_timer.cancel();
    for (const auto& connection : std::vector<ConnectionPtr>(impl->connections)) {
      if (connection->open() && connection->session().Idle())
        connection->Close({ClientError::Kind::kClosed, "client is gone"});
    }
    impl->connections.clear();
  });
}

Awaitable<Outcome<ClientResponse, ClientError>> Client::Do(ClientRequest request) {
  auto here = Impl::DoHere(impl_, std::move(request));
  return asio::co_spawn(impl_->executor, std::move(here), asio::use_awaitable);
}

}  // namespace keelson::http
