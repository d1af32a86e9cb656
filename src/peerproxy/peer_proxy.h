// Requests for resources that this server does not serve but another API server on the same store does (upstream's
// peerProxyHandler). A peer is known by its identity lease; when leases come, go or change holders, the discovery
// documents of all peers are fetched again. A request that came from a peer is never sent on.
// Thread safety: all members from any thread; Stop() blocks until no fetch runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/awaitable.h"
#include "async/io_pool.h"
#include "base/outcome.h"
#include "base/random.h"
#include "endpoints/exchange.h"
#include "endpoints/peer_discovery.h"
#include "net/address.h"
#include "net/dialer.h"
#include "net/tls_client.h"
#include "peerproxy/peer_document.h"
#include "telemetry/metrics.h"

namespace keelson::peerproxy {

inline constexpr std::string_view kPeerProxiedHeader = "X-Kubernetes-Peer-Proxied";

struct PeerProxyOptions {
  async::IOPool* io = nullptr;  // must outlive the proxy, as must the metrics
  telemetry::MetricsRegistry* metrics = nullptr;
  std::string server_id;  // apiserver-<hash>: the name of our own identity lease
  net::DialerPtr dialer;  // egress "controlplane"
  // The address of the server of that ID; an error where it has not written it yet.
  std::function<Awaitable<Outcome<net::HostPort, std::string>>(std::string server_id)> find_endpoint;
  base::Random* random = &base::Random::Real();
};

class PeerProxy final : public endpoints::PeerDiscovery {
 public:
  static constexpr std::size_t kPeersMax = 100;  // more identity leases than this are not looked at
  static constexpr std::size_t kDocumentBytesMax = 64 * 1024 * 1024;
  static constexpr std::chrono::seconds kFetchTimeout{10};  // of one discovery document
  static constexpr int kRetriesMax = 20;                    // 5 ms, doubled up to 1000 s
  static constexpr std::chrono::milliseconds kRetryFirst{5};
  static constexpr std::chrono::seconds kRetryLongest{1000};
  static constexpr std::string_view kServerName = "kubernetes.default.svc";  // in the peers' certificates

  explicit PeerProxy(PeerProxyOptions options);
  ~PeerProxy() override;

  // --peer-ca-file and --proxy-client-cert-file. Before Start(), and again when the files change.
  void SetTLS(std::shared_ptr<net::TLSClientContext> tls);
  // The resources of this server's own groups. Before Start().
  void SetLocal(std::vector<GroupVersionResource> resources);

  // An identity lease in kube-system; `holder` empty: it was deleted.
  struct LeaseChange {
    std::string name;
    std::optional<std::string> holder;
  };
  void OnLeases(std::vector<LeaseChange> changes);
  // Group versions of a CRD or an aggregated API, under a name of its object that is its alone; none: it is gone.
  struct ExclusionChange {
    std::string object;
    std::vector<std::pair<std::string, std::string>> versions;
  };
  void OnExclusions(std::vector<ExclusionChange> changes);

  void Start();
  // Leases, CRDs and APIServices are known: requests may go to peers from now on.
  void FinishSync();
  void Stop();

  // The handler of a request that a peer must answer. Quick where every peer serves the same.
  std::optional<endpoints::Handler> Find(const endpoints::Exchange& exchange) const;

  std::uint64_t Generation() const override;
  std::string Merge(std::string_view local_items) const override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::peerproxy
