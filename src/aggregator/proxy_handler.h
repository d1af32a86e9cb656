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
#include "base/btree.h"
#include "base/ref.h"
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

  // Groups whose APIServices changed, with all that they have now.
  using ChangedGroups = std::map<std::string, std::vector<APIServicePtr>>;
  // `remote`: all APIServices, where one of another server changed; null: all changes are of this server's own.
  // One caller at a time.
  void Publish(const ChangedGroups& groups, const APIServices* remote);
  // The handler of a request that is not for this server's own chain.
  std::optional<endpoints::Handler> Find(const endpoints::Exchange& exchange) const;
  // Hands the request on. `path`: the backend's, with the client's query.
  static Awaitable<http::Response> Forward(ProxyHandlerOptions options, BackendPtr backend, std::string path,
                                           endpoints::ExchangePtr exchange);
  const ProxyHandlerOptions& options() const { return options_; }

 private:
  struct Remote {
    std::map<std::string, BackendPtr, std::less<>> backends;  // by "<group>/<version>"
    BackendPtr core;                                          // of "v1."
  };
  struct Group : base::RefCounted {
    std::string name;
    std::shared_ptr<const endpoints::AssembledDocument> document;
  };
  struct GroupName {
    std::string_view operator()(const base::Ref<const Group>& group) const {
      return group ? std::string_view(group->name) : std::string_view();
    }
  };
  struct Table : base::RefCounted {
    std::shared_ptr<const Remote> remote = std::make_shared<const Remote>();
    base::BTree<base::Ref<const Group>, GroupName> groups;
  };
  std::shared_ptr<const Remote> RemoteOf(const APIServices& services) const;
  ProxyHandlerOptions options_;
  base::AtomicRef<const Table> table_;
};

// JSON of metav1.APIGroup without kind and apiVersion, versions best first.
std::string APIGroupJSON(const std::string& group, const std::vector<std::string>& versions);
// The versions of a group's APIServices by priority, then as versions are ordered.
std::vector<std::string> OrderedVersions(const std::vector<APIServicePtr>& services);

}  // namespace keelson::aggregator
