// The driver of one accepted connection: a socket, its transport and the session that speaks on it. For server.cc only.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "async/start.h"
#include "http/server.h"
#include "net/transport.h"

namespace keelson::http {

class ServerConnection;

// State shared by all connections of a server.
struct ServerShared {
  Handler handler;
  ServerOptions options;
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> connections_total{0};
  std::atomic<std::uint64_t> requests_total{0};
  std::atomic<std::uint64_t> handlers{0};
  std::atomic<std::uint64_t> tls_errors{0};
  std::mutex mutex;
  std::condition_variable quiet;  // no connection and no handler is left

  void Leave(std::atomic<std::uint64_t>& count);
};

// The connections of one I/O thread. Everything on that thread.
struct Shard {
  Shard(asio::any_io_executor executor)
      : executor(std::move(executor)),
        wake_queue(base::MakeRef<WakeQueue>(this->executor)),
        delay_timer(this->executor) {}

  void ScheduleWrite(const std::shared_ptr<ServerConnection>& connection);
  void RunScheduled();
  // Schedules a write `delay` from now at the latest: all delayed writes of the thread are done together.
  void DelayWrite(const std::shared_ptr<ServerConnection>& connection, std::chrono::nanoseconds delay);
  void RunDelayed();

  asio::any_io_executor executor;
  base::Ref<WakeQueue> wake_queue;
  std::list<std::shared_ptr<ServerConnection>> connections;
  std::vector<std::shared_ptr<ServerConnection>> scheduled, running;  // `running`: the current batch
  std::vector<std::shared_ptr<ServerConnection>> delayed;             // until `delay_timer` ends
  asio::steady_timer delay_timer;
  // Requests whose handlers start once their session is at rest, and the room for the next ones: connections come and
  // go with it, so that an idle one holds none.
  using Requests = std::vector<std::pair<base::Ref<Exchange>, std::unique_ptr<Request>>>;
  Requests spare_requests;
  bool run_posted = false;
  bool draining = false;
  bool closed = false;
};

class ServerConnection final : public std::enable_shared_from_this<ServerConnection>, private SessionHost {
 public:
  ServerConnection(std::shared_ptr<ServerShared> server, std::shared_ptr<Shard> shard, asio::ip::tcp::socket socket,
                   std::string remote, std::unique_ptr<net::Transport> transport);
  ~ServerConnection();

  void Start();
  void ShutdownGracefully();
  void Close();  // now
  void Tick(base::Clock::SteadyTime now);
  void RunScheduled();  // by the shard
  void RunDelayed();

  std::list<std::shared_ptr<ServerConnection>>::iterator position;  // in the shard

 private:
  friend struct Shard;
  friend class UpgradedStream;
  enum class State : std::uint8_t { kHandshake, kServing, kUpgraded, kLingering, kClosed };

  // SessionHost
  void OnRequest(base::Ref<Exchange> exchange, std::unique_ptr<Request> request) override;
  void WantWrite() override;
  void WantWriteSoon() override;
  const base::Ref<WakeQueue>& wake_queue() const override { return shard_->wake_queue; }
  base::Clock::SteadyTime Now() const override;

  void WaitReadable();
  void WaitWritable();
  void OnReadable();
  void OnWritable();
  void Handshake();
  void BeginServing();
  void Read();
  void Work();
  void Pump();
  void Finish();
  void DropRequests();
  void Upgrade(UpgradeHandler handler);
  async::Entry RunHandler(std::shared_ptr<ServerConnection> self, base::Ref<Exchange> exchange,
                          std::unique_ptr<Request> request);
  Awaitable<void> RunUpgrade(std::shared_ptr<ServerConnection> self, UpgradeHandler handler, std::string leftover);

  const std::shared_ptr<ServerShared> server_;
  const std::shared_ptr<Shard> shard_;
  asio::ip::tcp::socket socket_;
  const std::string remote_;
  std::unique_ptr<net::Transport> transport_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<const PeerCertificate> peer_;
  State state_ = State::kHandshake;
  bool reading_ = false;  // a wait for readability is under way
  bool writing_ = false;  // a wait for writability is under way
  bool scheduled_ = false;
  bool delayed_ = false;  // in the shard's list of delayed writes
  bool draining_ = false;
  bool working_ = false;
  bool again_ = false;  // something came up while working
  Phase phase_ = Phase::kHeaders;
  bool body_waiting_ = false;
  std::uint64_t phase_request_ = 0;
  base::Clock::SteadyTime phase_since_;
  base::Clock::SteadyTime body_since_{};
  base::Clock::SteadyTime write_since_{};
  base::Clock::SteadyTime written_{};  // the last write, where ServerOptions::event_delay needs it
  class UpgradedStream* upgraded_ = nullptr;
  Shard::Requests requests_;
};

}  // namespace keelson::http
