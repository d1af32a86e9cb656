// Peer discovery among API servers of one store: each keeps its address under peerserverleases/<server ID>, a key with
// a time to live that it renews every ten seconds once it is ready, and removes when it stops (upstream's
// PeerEndpointLeaseReconciler and its controller; gate UnknownVersionInteroperabilityProxy).
// Thread safety: Find() from any thread, the rest by the owner.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <string>

#include "async/event.h"
#include "async/io_pool.h"
#include "kv/kv.h"
#include "net/address.h"

namespace keelson::controlplane {

struct PeerEndpointOptions {
  std::string server_id;
  std::string address;  // host:port: --peer-advertise-ip and --peer-advertise-port, else --advertise-address
  std::string etcd_prefix = "/registry";
  std::function<bool()> ready;  // polled until true: nothing is written before
};

class PeerEndpointLeases {
 public:
  // `kv` must outlive this.
  PeerEndpointLeases(kv::Store& kv, PeerEndpointOptions options) : kv_(kv), options_(std::move(options)) {}
  ~PeerEndpointLeases() { Stop(); }

  void Start(async::IOPool& io);
  void Stop();  // removes our address; blocks

  // The address of the server of that ID. An error where it has none.
  Awaitable<Outcome<net::HostPort, std::string>> Find(std::string server_id) const;
  // Writes our own address. "" or what went wrong.
  Awaitable<std::string> Update();

 private:
  Awaitable<void> Run();
  Awaitable<std::string> Remove();
  Awaitable<void> WaitFor(std::chrono::milliseconds time);
  std::string KeyOf(const std::string& server_id) const {
    return options_.etcd_prefix + "/peerserverleases/" + server_id;
  }

  kv::Store& kv_;
  const PeerEndpointOptions options_;
  std::int64_t generation_ = 0;
  std::atomic<bool> stopping_{false};
  async::Event wake_;
  std::future<void> done_;
};

}  // namespace keelson::controlplane
