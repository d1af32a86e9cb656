// The three servers of the chain, aggregator → kube-apiserver → apiextensions, with their API groups installed
// (CreateServerChain).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "admission/admission.h"
#include "apidocs/discovery_source.h"
#include "auth/authenticator.h"
#include "auth/authorizer.h"
#include "controlplane/api_enablement.h"
#include "controlplane/kubelet.h"
#include "controlplane/resource_storage.h"
#include "controlplane/service_account_tokens.h"
#include "endpoints/scope.h"
#include "server/generic_api_server.h"
#include "storage/health.h"
#include "telemetry/metrics.h"

namespace keelson::controlplane {

// Joins every scope with those that serve the same objects: other versions, and other groups (events). For start-up.
class EquivalentResourceRegistry {
 public:
  void Join(const std::shared_ptr<endpoints::Scope>& scope);  // by its definition and subresource

 private:
  std::map<std::pair<const registry::ResourceDefinition*, std::string>, std::shared_ptr<endpoints::EquivalentScopes>>
      groups_;
};

struct ChainConfig {
  ResourceStorage* storage = nullptr;  // must outlive the chain
  APIEnablement enablement;
  std::shared_ptr<const admission::Chain> admission;
  std::shared_ptr<auth::Authenticator> authenticator;  // used by token reviews
  std::shared_ptr<auth::Authorizer> authorizer;        // used by access reviews
  bool allow_unsafe_delete = false;                    // the gate AllowUnsafeMalformedObjectDeletion
  std::shared_ptr<const auth::RuleResolver> rules;     // used by rules reviews; null: they are not served
  std::shared_ptr<const TokenIssuer> token_issuer;     // null: no service account tokens
  std::vector<std::string> api_audiences;              // the audiences of a token review that names none
  std::shared_ptr<KubeletConnections> kubelets;        // null: nothing is proxied
  storage::HealthProbe* store_health = nullptr;        // for componentstatuses; must outlive the chain
  int store_servers = 1;                               // how many the store consists of; they are probed as one
  std::string external_address;                        // host:port, told by discovery
  std::chrono::seconds min_request_timeout{1800};
  int delete_collection_workers = 1;
  // Custom resources: the handler for paths without a route in the apiextensions server, and the groups that discovery
  // and OpenAPI list. Both may be null.
  server::GenericAPIServer::DynamicHandler custom_resources;
  std::shared_ptr<const apidocs::DiscoverySource> custom_discovery;
  std::shared_ptr<const apidocs::DiscoveryMerger> discovery_merger;  // the aggregator's; may be null
  std::shared_ptr<const apidocs::DiscoverySource> openapi_source;    // instead of custom_discovery; may be null
  bool cbor = false;       // gate CBORServingAndStorage: objects are also taken and sent as CBOR
  bool compress = true;    // gate APIResponseCompression: large responses are gzipped if the client accepts it
  bool watch_list = true;  // the gate WatchList
  bool sharding = false;   // the gate ShardedListAndWatch
  std::shared_ptr<EquivalentResourceRegistry> equivalents;  // made by CreateServerChain
};

// The head of the chain. InstallDiscovery() adds the discovery documents to it.
std::shared_ptr<server::GenericAPIServer> CreateServerChain(const ChainConfig& config);

}  // namespace keelson::controlplane
