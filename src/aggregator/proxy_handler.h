// Proxies requests to remote API servers (upstream's proxyHandler): identity in X-Remote headers, the response streamed
// back, upgrades tunnelled, redirects refused.
// Thread safety: all members from any thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregator/api_service.h"
#include "aggregator/backend.h"
#include "base/atomic_ref.h"
#include "endpoints/assembled_document.h"
#include "endpoints/exchange.h"

namespace keelson::aggregator {

struct ProxyHandlerOptions {
  Backends* backends = nullptr;           // must outlive the handler
  bool reject_redirects = true;           // --aggregator-reject-forwarding-redirect
  bool send_uid = true;                   // gate RemoteRequestHeaderUID
  std::set<std::string> built_in_groups;  // their /apis/<group> documents are served elsewhere
};

class ProxyHandler {
 public:
  explicit ProxyHandler(ProxyHandlerOptions options) : options_(std::move(options)) {}

  void Publish(const APIServices& services);
  // The handler of a request that is not for this server's own chain.
  std::optional<endpoints::Handler> Find(const endpoints::Exchange& exchange) const;
  // Hands the request on. `path`: the backend's, with the client's query.
  static Awaitable<http::Response> Forward(ProxyHandlerOptions options, BackendPtr backend, std::string path,
                                           endpoints::ExchangePtr exchange);
  const ProxyHandlerOptions& options() const { return options_; }

 private:
  struct Table : base::RefCounted {
    std::map<std::string, BackendPtr, std::less<>> remote;  // by "<group>/<version>"
    BackendPtr core;                                        // of "v1."
    std::map<std::string, std::shared_ptr<const endpoints::AssembledDocument>, std::less<>> groups;
  };
  ProxyHandlerOptions options_;
  base::AtomicRef<const Table> table_;
};

// JSON of metav1.APIGroup without kind and apiVersion, versions best first.
std::string APIGroupJSON(const std::string& group, const std::vector<std::string>& versions);
// The versions of a group's APIServices by priority, then as versions are ordered.
std::vector<std::string> OrderedVersions(const std::vector<APIServicePtr>& services);

}  // namespace keelson::aggregator
