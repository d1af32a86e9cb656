// Shared part of the connect subresources (connect_routes.cc, pod_log.cc): the backends they call, parsing of their
// query options, choice of the container.
// Thread safety: functions of their arguments; ConnectBackends is immutable and shared by all routes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/authorizer.h"
#include "base/url.h"
#include "controlplane/kubelet.h"
#include "endpoints/connecter.h"
#include "endpoints/exchange.h"
#include "endpoints/handlers.h"
#include "endpoints/scope.h"
#include "registry/store.h"

namespace keelson::controlplane {

struct ConnectBackends {
  std::shared_ptr<KubeletConnections> kubelets;
  std::shared_ptr<auth::Authorizer> authorizer;
  std::shared_ptr<registry::Store> pods, services, endpoints;
};
using ConnectBackendsPtr = std::shared_ptr<const ConnectBackends>;

// An object by name in the request's namespace. Upstream's stores name the resource of the request where it is not
// found, whatever was looked for.
endpoints::Task<Value> ReadObject(const registry::Store& store, request::Context& context, std::string name);
// Address and transport of a node's kubelet (upstream's GetConnectionInfo).
endpoints::Task<ConnectionInfo> FindKubelet(const ConnectBackends& backends, request::Context& context,
                                            std::string node);
// The container that is meant: `wanted`, or the only one.
meta::Result<std::string> ChooseContainer(Value pod, std::string_view wanted);

// Query options, read the way upstream converts them. `query` and `arena` must outlive this.
class ConnectOptions {
 public:
  ConnectOptions(const base::Query& query, base::Arena& arena);

  bool Flag(std::string_view name);
  std::string Text(std::string_view name);
  std::optional<std::int64_t> Number(std::string_view name);
  std::string Time(std::string_view name);  // in canonical text; empty without one
  std::vector<std::string> Texts(std::string_view name);
  std::vector<std::string> Ports(std::string_view name);

  const std::optional<std::string>& error() const { return error_; }  // of the last one that could not be read
  Value Object(std::string_view kind);                                // the options as an object, for admission

 private:
  const base::Query& query_;
  base::Arena& arena_;
  Value object_;
  std::optional<std::string> error_;
};

// Query parameters as Go's Values.Encode writes them: by key.
std::string EncodeQuery(const std::vector<std::pair<std::string, std::string>>& parameters);

// pods/log (pod_log.cc).
endpoints::Task<endpoints::Connection> ConnectPodLog(ConnectBackendsPtr backends, endpoints::ExchangePtr exchange);

}  // namespace keelson::controlplane
