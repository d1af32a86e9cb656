// Wires the server of custom resources into the chain.
#pragma once

#include <memory>

#include "apiextensions/controllers.h"
#include "apiextensions/discovery.h"
#include "apiextensions/handler.h"
#include "async/io_pool.h"
#include "controlplane/server_chain.h"
#include "controlplane/storage_reader.h"
#include "http/transport.h"
#include "net/dialer.h"
#include "server/generic_api_server.h"
#include "webhook/service_resolver.h"

namespace keelson::app {

struct CustomResourcesOptions {
  telemetry::MetricsRegistry* metrics = nullptr;         // null: conversions are not counted; must outlive the servers
  std::int64_t servers = 1;                              // --apiserver-count
  webhook::ServiceResolver* service_resolver = nullptr;  // of conversion webhooks; must outlive the servers
  std::shared_ptr<http::Transport> transport;            // of conversion webhooks
  net::DialerPtr cluster_dialer;                         // egress of webhooks behind services
  net::DialerPtr control_plane_dialer;                   // egress of webhooks behind URLs
  const cel::TimeZones* time_zones = nullptr;            // of rules; must outlive the servers
};

// Thread safety: the owner's.
class CustomResources {
 public:
  // Fills in the hooks of `chain`. REQUIRES: chain.storage, admission and authorizer are set.
  CustomResources(controlplane::ChainConfig& chain, CustomResourcesOptions options);
  // Their Stores for readers inside the process.
  controlplane::CustomStores Stores() const;
  void InstallHooks(server::GenericAPIServer& server);
  void Start(async::IOPool& io);
  void Stop();

 private:
  std::shared_ptr<apiextensions::Handler> handler_;
  std::shared_ptr<apiextensions::DiscoveryDocuments> discovery_;
  std::shared_ptr<apiextensions::Controllers> controllers_;
};

}  // namespace keelson::app
