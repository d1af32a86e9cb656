// The peer proxy put to work: its certificates, the informers that feed it, its hooks; and the address under which
// other API servers find this one (gate UnknownVersionInteroperabilityProxy). Thread safety: the owner's; callbacks
// from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/completed_options.h"
#include "app/error.h"
#include "app/followed_files.h"
#include "async/event.h"
#include "async/io_pool.h"
#include "controlplane/informer.h"
#include "controlplane/peer_endpoint_leases.h"
#include "controlplane/resource_storage.h"
#include "peerproxy/peer_proxy.h"
#include "server/generic_api_server.h"

namespace keelson::app {

// host:port that other API servers reach this one at: --peer-advertise-ip and --peer-advertise-port when both are
// given, else the advertised address.
std::string PeerAddress(const ServerRunOptions& options);

class Peers {
 public:
  struct Parts {
    async::IOPool& io;  // these must outlive it
    telemetry::MetricsRegistry& metrics;
    kv::Store& kv;
    net::DialerPtr control_plane_dialer;
    FollowedFiles& files;
    std::string hostname;
    std::function<bool()> ready;
  };
  // Null where the gate is off. The errors are upstream's, of --peer-ca-file and the certificate that goes with it.
  static Outcome<std::unique_ptr<Peers>, Error> New(const CompletedOptions& completed, Parts parts);
  ~Peers() { Stop(); }

  // Null without --peer-ca-file: nothing is proxied, others may still proxy to this server.
  std::shared_ptr<peerproxy::PeerProxy> proxy() const { return proxy_; }
  void Install(server::GenericAPIServer& chain);  // its hooks; the groups of the chain are the local ones
  // Runs before all other handlers of the chain. Empty without a peer proxy. Empty without a proxy.
  server::GenericAPIServer::Preemption preemption() const;
  void Follow(controlplane::SharedInformers& informers, controlplane::ResourceStorage& storage);
  void Start(async::IOPool& io);
  void FinishSync();
  void StopEndpoint() { endpoint_->Stop(); }  // takes our address away, when the server begins to stop
  void Stop();

 private:
  Peers() = default;
  Outcome<void, Error> MakeProxy(const ExtraOptions& options, const Parts& parts, std::string server_id);

  std::unique_ptr<controlplane::PeerEndpointLeases> endpoint_;
  std::shared_ptr<peerproxy::PeerProxy> proxy_;
  std::shared_ptr<async::Event> synced_ = std::make_shared<async::Event>();
};

}  // namespace keelson::app
