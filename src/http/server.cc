#include "http/server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <future>

#include "http/server_connection.h"
#include "net/address.h"

namespace keelson::http {
namespace {
constexpr std::chrono::milliseconds kAcceptRetry{50};  // out of descriptors: wait, do not spin
constexpr std::chrono::milliseconds kShutdownLook{20};
constexpr std::chrono::seconds kDestroyPatience{10};  // for handlers that ignore that their client is gone
}  // namespace

struct Server::Impl : std::enable_shared_from_this<Impl> {
  struct Accepting {
    Accepting(const asio::any_io_executor& executor) : acceptor(executor) {}
    asio::ip::tcp::acceptor acceptor;
    std::shared_ptr<net::TLSServerContext> tls;
  };
  // A shard with its timer, shared with the callbacks that run on its thread.
  struct Worker : std::enable_shared_from_this<Worker> {
    Worker(asio::any_io_executor executor, std::shared_ptr<ServerShared> server)
        : shard(executor), timer(executor), server(std::move(server)) {}
    void Tick() {
      timer.expires_after(server->options.tick);
      timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (error || self->shard.closed) return;
        const auto now = self->server->options.clock->Monotonic();
        for (auto it = self->shard.connections.begin(); it != self->shard.connections.end();) {
          auto connection = *it++;  // Tick may close it
          connection->Tick(now);
        }
        self->Tick();
      });
    }
    Shard shard;
    asio::steady_timer timer;
    std::shared_ptr<ServerShared> server;
  };

  explicit Impl(async::IOPool& pool) : pool(pool) {}

  async::IOPool& pool;
  std::shared_ptr<ServerShared> shared = std::make_shared<ServerShared>();
  std::vector<std::shared_ptr<Worker>> workers;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // over the acceptors
  std::vector<std::shared_ptr<Accepting>> acceptors;
  bool stopped = false;

  static Awaitable<void> Accept(std::shared_ptr<Impl> self, std::shared_ptr<Accepting> accepting) {
    asio::steady_timer retry(co_await asio::this_coro::executor);
    for (;;) {
      auto& worker = self->workers[self->next++ % self->workers.size()];
      auto accepted = co_await accepting->acceptor.async_accept(worker->shard.executor, kNoThrow);
      auto& [error, socket] = accepted;
      if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
      if (error == asio::error::connection_aborted) continue;
      if (error) {
        retry.expires_after(kAcceptRetry);
        co_await retry.async_wait(kNoThrow);
        continue;
      }
      if (self->shared->connections >= self->shared->options.connections_max) continue;  // closes it
      asio::post(worker->shard.executor, [worker, tls = accepting->tls, socket = std::move(socket)]() mutable {
        Admit(worker, tls, std::move(socket));
      });
    }
  }

  static void Admit(const std::shared_ptr<Worker>& worker, const std::shared_ptr<net::TLSServerContext>& tls,
                    asio::ip::tcp::socket socket) {
    if (worker->shard.closed) return;
    boost::system::error_code error;
    const auto endpoint = socket.remote_endpoint(error);
    if (error) return;
    socket.non_blocking(true, error);
    net::ConfigureConnection(socket.native_handle());
    const int fd = socket.native_handle();
    auto transport = tls != nullptr ? tls->Accept(fd) : net::NewPlainTransport(fd);
    std::shared_ptr<Shard> shard(worker, &worker->shard);
    auto connection = std::make_shared<ServerConnection>(worker->server, std::move(shard), std::move(socket),
                                                         net::ToString(endpoint), std::move(transport));
    connection->position = worker->shard.connections.insert(worker->shard.connections.end(), connection);
    if (worker->shard.draining) connection->ShutdownGracefully();
    connection->Start();
  }

  bool Quiet() const { return shared->connections == 0 && shared->handlers == 0; }
};

Server::Server(async::IOPool& pool, Handler handler, ServerOptions options) : impl_(std::make_shared<Impl>(pool)) {
  impl_->shared->handler = std::move(handler);
  impl_->shared->options = std::move(options);
  for (std::size_t i = 0; i < pool.size(); ++i) {
    auto worker = std::make_shared<Impl::Worker>(pool.executor(i), impl_->shared);
    asio::post(worker->shard.executor, [worker] { worker->Tick(); });
    impl_->workers.push_back(std::move(worker));
  }
}

Server::~Server() {
  Close();
  std::unique_lock lock(impl_->shared->mutex);
  impl_->shared->quiet.wait_for(lock, kDestroyPatience, [&] { return impl_->Quiet(); });
}

void Server::Start(net::Listener listener, std::shared_ptr<net::TLSServerContext> tls) {
  const auto executor = impl_->pool.executor(0);
  auto accepting = std::make_shared<Impl::Accepting>(executor);
  accepting->tls = std::move(tls);
  const bool ipv6 = listener.ipv6();
  accepting->acceptor.assign(ipv6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), listener.Release());
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopped) return;
    impl_->acceptors.push_back(accepting);
  }
  auto accept = Impl::Accept(impl_, accepting);
  asio::co_spawn(executor, std::move(accept), asio::detached);
}

void Server::StopListening() {
  std::vector<std::shared_ptr<Impl::Accepting>> acceptors;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    acceptors.swap(impl_->acceptors);
  }
  for (auto& accepting : acceptors) {
    asio::dispatch(accepting->acceptor.get_executor(), [accepting] {
      boost::system::error_code ignored;
      accepting->acceptor.close(ignored);
    });
  }
}

Awaitable<bool> Server::Shutdown(std::chrono::milliseconds timeout) {
  auto impl = impl_;
  StopListening();
  for (auto& worker : impl->workers) {
    asio::post(worker->shard.executor, [worker] {
      worker->shard.draining = true;
      for (auto it = worker->shard.connections.begin(); it != worker->shard.connections.end();) {
        auto connection = *it++;
        connection->ShutdownGracefully();
      }
    });
  }
  asio::steady_timer timer(co_await asio::this_coro::executor);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  bool drained = false;
  for (;;) {
    timer.expires_after(kShutdownLook);
    co_await timer.async_wait(kNoThrow);
    drained = impl->Quiet();
    if (drained || std::chrono::steady_clock::now() >= deadline) break;
  }
  Close();
  co_return drained;
}

void Server::Close() {
  StopListening();
  for (auto& worker : impl_->workers) {
    asio::post(worker->shard.executor, [worker] {
      worker->shard.closed = true;
      worker->timer.cancel();
      worker->shard.delay_timer.cancel();
      while (!worker->shard.connections.empty()) {
        auto connection = worker->shard.connections.front();
        connection->Close();
      }
    });
  }
}

ServerStats Server::stats() const {
  const ServerShared& shared = *impl_->shared;
  return {.connections = shared.connections,
          .connections_total = shared.connections_total,
          .requests_total = shared.requests_total,
          .handlers = shared.handlers,
          .tls_handshake_errors_total = shared.tls_errors};
}

}  // namespace keelson::http
