// How the server reaches kubelets, pods and services: addresses and ports from Node objects, the kubelets' client
// certificate, and transports (upstream's NodeConnectionInfoGetter and proxy transport).
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/io_pool.h"
#include "controlplane/resource_storage.h"
#include "endpoints/handlers.h"
#include "proxy/transport.h"

namespace keelson::controlplane {

struct KubeletClientConfig {
  std::string ca_file;  // empty: kubelets' certificates are not verified
  std::string certificate_file;
  std::string key_file;
  std::uint16_t port = 10250;
  std::vector<std::string> preferred_address_types;
  std::int64_t max_connection_bytes_per_sec = 0;
  bool websockets_to_kubelet = true;  // gate ExtendWebSocketsToKubelet
  bool translate_commands = true;     // gate TranslateStreamCloseWebsocketRequests
  bool tunnel_port_forward = true;    // gate PortForwardWebsockets
  bool require_create = true;         // gate AuthorizePodWebsocketUpgradeCreatePermission
  bool split_log_streams = false;     // gate PodLogsQuerySplitStreams
  net::DialerPtr dialer;              // egress "cluster"; null: directly
  std::function<net::DialTarget(const std::string& host, std::uint16_t port)> dial;  // tests only
};

struct ConnectionInfo {
  std::string host;
  std::string port;
  bool websockets = false;  // the kubelet takes them itself
};

// Upstream's IsProxyableIP: Go's IP.IsGlobalUnicast, which excludes loopback, link-local, multicast, unspecified and
// broadcast addresses. False for text that is not an address.
bool IsProxyableIP(std::string_view address);

class KubeletConnections {
 public:
  // The error is about the certificate files. `storage` and `pool` must outlive it.
  static Outcome<std::shared_ptr<KubeletConnections>, std::string> New(KubeletClientConfig config,
                                                                       ResourceStorage& storage, async::IOPool& pool);
  ~KubeletConnections();

  endpoints::Task<ConnectionInfo> Get(std::string node_name) const;
  const std::shared_ptr<proxy::Transport>& kubelets() const { return kubelets_; }
  const std::shared_ptr<proxy::Transport>& unverified_kubelets() const { return unverified_; }
  // For nodes/proxy: kubelets at proxyable addresses alone. The address that is dialled is the one that is checked.
  const std::shared_ptr<proxy::Transport>& proxied_kubelets() const { return proxied_; }
  // Pods, services and other ports of nodes, also at proxyable addresses alone.
  const std::shared_ptr<proxy::Transport>& anything() const { return anything_; }
  const KubeletClientConfig& config() const { return config_; }

 private:
  struct Credentials;
  KubeletConnections(KubeletClientConfig config, ResourceStorage& storage)
      : config_(std::move(config)), storage_(storage) {}

  const KubeletClientConfig config_;
  ResourceStorage& storage_;
  std::shared_ptr<Credentials> credentials_;
  std::shared_ptr<proxy::Transport> kubelets_, unverified_, proxied_, anything_;
};

}  // namespace keelson::controlplane
