// Publishes this server to others: the endpoints of the service kubernetes, the identity lease, the config map with the
// client certificate authorities, and the config map with the start date of legacy token tracking. Renewed every ten
// seconds; the endpoints are removed at shutdown. Thread safety: the owner's thread.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/io_pool.h"
#include "controlplane/endpoint_reconciler.h"
#include "controlplane/resource_storage.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

struct PresenceOptions {
  EndpointReconciler::Options endpoints;
  bool identity_lease = true;  // gate APIServerIdentity
  std::string hostname;
  std::string peer_address;  // host:port, told in the identity lease; "" without UnknownVersionInteroperabilityProxy
  // kube-system/extension-apiserver-authentication
  std::string client_ca_pem, request_header_ca_pem;  // "" for none
  std::vector<std::string> username_headers, uid_headers, group_headers, extra_header_prefixes, allowed_names;
};

class ServerPresence {
 public:
  // `kv` must outlive this.
  ServerPresence(kv::Store& kv, PresenceOptions options) : kv_(kv), options_(std::move(options)) {}
  ~ServerPresence();  // Stop()

  void Install(server::GenericAPIServer& server, ResourceStorage& storage);
  void Start(async::IOPool& io);
  void Stop();
  // The authorities have changed; from any thread. Told to others with the next round.
  void SetClientCA(std::string pem);
  void SetRequestHeaderCA(std::string pem);

 private:
  Awaitable<void> Run();
  Awaitable<void> SyncAuthenticationInfo();
  Awaitable<void> SyncTokenTracking();
  Awaitable<void> RenewIdentity();
  Awaitable<void> CollectIdentities();

  kv::Store& kv_;
  std::mutex mutex_;  // over the PEM texts of the options
  PresenceOptions options_;
  std::string identity_, holder_;
  std::optional<base::Clock::SteadyTime> tracking_made_;  // when we last created the config map of token tracking
  std::shared_ptr<registry::Store> config_maps_, leases_;
  std::unique_ptr<EndpointReconciler> reconciler_;
  std::atomic<bool> stopping_{false};
  async::Event wake_;
  std::future<void> done_;
};

// apiserver-<base32 of the host name's hash>.
std::string ServerIdentity(std::string_view hostname);
// The certificates of both PEM texts, each once, without those that are over.
std::string JoinAuthorities(std::string_view first, std::string_view second);

}  // namespace keelson::controlplane
