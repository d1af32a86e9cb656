#include "http/client.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <vector>

#include "http/client_connection.h"
#include "net/address.h"

namespace keelson::http {
namespace {

constexpr int kAttemptsMax = 3;
constexpr auto kForever = std::chrono::hours(24 * 365);

using Clock = std::chrono::steady_clock;
using ConnectionPtr = std::shared_ptr<ClientConnection>;

// What a call holds while it lasts: its connection and its deadline.
struct Ticket {
  Ticket(base::Ref<Call> call, ConnectionPtr connection, const asio::any_io_executor& executor)
      : call(std::move(call)), connection(std::move(connection)), timer(executor), executor(executor) {}
  base::Ref<Call> call;
  ConnectionPtr connection;
  asio::steady_timer timer;
  asio::any_io_executor executor;
};

// The answer's body for a coroutine that may run on another thread.
class ClientBody final : public BodyReader {
 public:
  explicit ClientBody(std::shared_ptr<Ticket> ticket) : ticket_(std::move(ticket)) {}
  ~ClientBody() override {
    asio::post(ticket_->executor, [ticket = ticket_] {
      ticket->timer.cancel();
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

Awaitable<void> WaitForAnswer(base::Ref<Call> call) {
  if (call->head || call->error) co_return;
  auto executor = co_await asio::this_coro::executor;
  auto token = asio::use_awaitable;
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [call, executor](auto handler) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        call->waiter = [shared, executor] { asio::post(executor, [shared] { (*shared)(); }); };
      },
      token);
}

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
    idle_timer.expires_after(options.idle_timeout / 4);
    idle_timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (error || self == nullptr) return;
      self->idle_armed = false;
      self->Sweep();
      self->ArmIdle();
    });
  }

  Awaitable<Outcome<ConnectionPtr, ClientError>> Open(bool http1_only, Clock::time_point deadline) {
    auto socket = co_await net::Dial(options.target, deadline);
    if (!socket.ok()) {
      const auto kind = Clock::now() >= deadline ? ClientError::Kind::kTimeout : ClientError::Kind::kDial;
      co_return ClientError{kind, socket.error().message};
    }
    const int fd = socket->native_handle();
    const std::string name = options.server_name.empty() ? options.target.host : options.server_name;
    auto transport = options.tls != nullptr ? options.tls->Connect(fd, name, http1_only) : net::NewPlainTransport(fd);
    auto connection = std::make_shared<ClientConnection>(executor, queue, *std::move(socket), std::move(transport));
    if (options.tls != nullptr) {
      auto timer = std::make_shared<asio::steady_timer>(executor, deadline);
      timer->async_wait([connection, timer](const boost::system::error_code& error) {
        if (!error && !connection->open()) connection->Close({ClientError::Kind::kTimeout, "TLS handshake timeout"});
      });
      auto token = asio::use_awaitable;
      const std::string error = co_await asio::async_initiate<const asio::use_awaitable_t<>, void(std::string)>(
          [connection, executor = executor](auto handler) {
            auto shared = std::make_shared<decltype(handler)>(std::move(handler));
            connection->Handshake([shared, executor](const std::string& text) {
              asio::post(executor, [shared, text] { (*shared)(text); });
            });
          },
          token);
      timer->cancel();
      if (!error.empty()) {
        const auto kind = Clock::now() >= deadline ? ClientError::Kind::kTimeout : ClientError::Kind::kTLS;
        co_return ClientError{kind, error};
      }
    }
    std::string host = options.host_header;
    if (host.empty()) {
      const bool usual = options.target.port == (options.tls != nullptr ? 443 : 80) || options.target.port == 0;
      host = usual ? options.target.host : net::JoinHostPort(options.target.host, options.target.port);
    }
    const bool h2 = connection->alpn_h2();
    connection->Serve([&](ClientSessionHost& session_host) {
      return h2 ? NewHttp2ClientSession(session_host, host, true, options.response_header_bytes_max)
                : NewHttp1ClientSession(session_host, host, options.response_header_bytes_max);
    });
    co_return connection;
  }

  static Awaitable<Outcome<ClientResponse, ClientError>> DoHere(std::shared_ptr<Impl> self, ClientRequest request) {
    const auto deadline = request.deadline.value_or(Clock::now() + kForever);
    const bool upgrade = request.upgrade;
    ClientError last{ClientError::Kind::kClosed, "no attempt"};
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      self->Sweep();
      ConnectionPtr connection;
      if (!upgrade) {
        for (const auto& candidate : self->connections) {
          if (candidate->open() && candidate->session().Available()) connection = candidate;
        }
      }
      if (connection == nullptr) {
        auto opened = co_await self->Open(upgrade, std::min(deadline, Clock::now() + self->options.dial_timeout));
        if (!opened.ok()) co_return opened.error();
        connection = *std::move(opened);
        if (!upgrade) self->connections.push_back(connection);
        self->ArmIdle();
      }
      connection->idle_since = {};
      auto call = base::MakeRef<Call>(std::move(request), self->queue);
      auto ticket = std::make_shared<Ticket>(call, connection, self->executor);
      if (call->request.deadline) {
        ticket->timer.expires_at(deadline);
        ticket->timer.async_wait([ticket](const boost::system::error_code& error) {
          if (error) return;
          ticket->call->Fail({ClientError::Kind::kTimeout, "context deadline exceeded"});
          ticket->call->exchange->FailBody(BodyError::kTimeout);
          if (ticket->connection->open()) ticket->connection->session().Cancel(*ticket->call);
        });
      }
      connection->session().Start(call);
      co_await WaitForAnswer(call);
      if (call->error) {
        ticket->timer.cancel();
        if (upgrade) connection->Close(*call->error);
        if (!call->retriable || Clock::now() >= deadline) co_return *call->error;
        last = *call->error;
        request = std::move(call->request);
        continue;
      }
      ClientResponse response;
      response.status = call->head->status;
      response.headers = std::move(call->head->headers);
      response.http_major = call->head->major;
      if (call->upgraded) {
        ticket->timer.cancel();
        response.stream = connection->TakeStream();
      }
      response.body = std::make_unique<ClientBody>(std::move(ticket));
      co_return response;
    }
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
