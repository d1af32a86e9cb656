// The subresources that are connections to somewhere else: pods/exec, attach, portforward and the proxies to pods,
// nodes and services. pods/log is in pod_log.cc.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/random.h"
#include "base/strings.h"
#include "controlplane/connect_options.h"
#include "controlplane/custom_routes.h"
#include "proxy/html_rewrite.h"
#include "registry/catalog.h"

namespace keelson::controlplane {
namespace {

using endpoints::Connection;
using endpoints::ConnectKind;
using endpoints::ExchangePtr;
using endpoints::ProxiedConnection;
using endpoints::ProxyOptions;
using endpoints::ScopePtr;
using endpoints::Task;
using proxy::Location;

// Admission of a connection; the options object is what plugins see.
Task<void> AdmitConnection(const ScopePtr& scope, const ExchangePtr& exchange, Value options) {
  if (exchange->query.Has("dryRun")) co_return meta::NewBadRequest("dryRun is not supported");
  co_return co_await endpoints::AdmitConnect(scope, exchange, options);
}

// --- pods/exec, attach, portforward

// A GET that becomes a stream does what a POST does: it needs the same permission.
Task<void> RequireCreate(const ConnectBackends& backends, const request::Context& context) {
  if (!backends.kubelets->config().require_create || context.info.verb == "create" || !backends.authorizer) {
    co_return meta::Result<void>();
  }
  auth::Attributes attributes = auth::AttributesOf(context.user, context.info);
  attributes.verb = "create";
  const auth::Authorization answer = co_await backends.authorizer->Authorize(attributes);
  if (answer.decision == auth::Decision::kAllow) co_return meta::Result<void>();
  if (!answer.error.empty()) co_return meta::NewPlainError(answer.error);
  co_return meta::NewForbidden({context.info.api_group, context.info.resource}, context.info.name, answer.reason);
}

struct StreamTarget {
  Location location;
  bool websockets = false;
};

Task<StreamTarget> LocateStream(const ConnectBackends& backends, request::Context& context, std::string path,
                                bool contained, std::string container, std::string query) {
  KS_CO_TRY(const Value pod, co_await ReadObject(*backends.pods, context, context.info.name));
  std::string tail;
  if (contained) {
    KS_CO_TRY(const std::string chosen, ChooseContainer(pod, container));
    tail = "/" + chosen;
  }
  const std::string node(pod.Get("spec", "nodeName").as_string());
  if (node.empty()) co_return meta::NewBadRequest("pod " + context.info.name + " does not have a host assigned");
  KS_CO_TRY(const ConnectionInfo info, co_await FindKubelet(backends, context, node));
  StreamTarget target;
  target.location = {.scheme = "https", .host = info.host, .port = info.port};
  target.location.path = path + context.info.name_space + "/" + context.info.name + tail;
  target.location.raw_query = std::move(query);
  target.websockets = info.websockets;
  co_return target;
}

ProxyOptions StreamProxy(const ConnectBackends& backends, const Location& location) {
  return {.location = location,
          .transport = backends.kubelets->kubelets(),
          .upgrade_required = true,
          .bytes_per_second = backends.kubelets->config().max_connection_bytes_per_sec};
}

// exec and attach differ in the command alone.
Task<Connection> ConnectCommand(ConnectBackendsPtr backends, bool exec, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  ConnectOptions query(exchange->query, context.arena);
  endpoints::StreamOptions streams{.standard_input = query.Flag("stdin"),
                                   .standard_output = query.Flag("stdout"),
                                   .standard_error = query.Flag("stderr"),
                                   .terminal = query.Flag("tty")};
  const std::string container = query.Text("container");
  const std::vector<std::string> words = exec ? query.Texts("command") : std::vector<std::string>();
  auto admitted = co_await AdmitConnection(scope, exchange, query.Object(exec ? "PodExecOptions" : "PodAttachOptions"));
  if (!admitted.ok()) co_return admitted.error();
  if (auto allowed = co_await RequireCreate(*backends, context); !allowed.ok()) co_return allowed.error();
  std::vector<std::pair<std::string, std::string>> parameters;
  if (streams.standard_input) parameters.emplace_back("input", "1");
  if (streams.standard_output) parameters.emplace_back("output", "1");
  if (streams.standard_error) parameters.emplace_back("error", "1");
  if (streams.terminal) parameters.emplace_back("tty", "1");
  for (const std::string& word : words) parameters.emplace_back("command", word);
  auto target =
      co_await LocateStream(*backends, context, exec ? "/exec/" : "/attach/", true, container, EncodeQuery(parameters));
  if (!target.ok()) co_return target.error();
  ProxyOptions options = StreamProxy(*backends, target->location);
  if (backends->kubelets->config().translate_commands && !target->websockets &&
      endpoints::IsStreamCloseRequest(exchange->http)) {
    co_return ProxiedConnection{std::move(options), ProxiedConnection::Form::kStreamTranslator, streams};
  }
  co_return ProxiedConnection{std::move(options)};
}

Task<Connection> ConnectPortForward(ConnectBackendsPtr backends, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  ConnectOptions query(exchange->query, context.arena);
  const std::vector<std::string> ports = query.Ports("ports");
  if (query.error()) co_return meta::NewBadRequest(*query.error());
  auto admitted = co_await AdmitConnection(scope, exchange, query.Object("PodPortForwardOptions"));
  if (!admitted.ok()) co_return admitted.error();
  if (auto allowed = co_await RequireCreate(*backends, context); !allowed.ok()) co_return allowed.error();
  std::vector<std::pair<std::string, std::string>> parameters;
  if (!ports.empty()) parameters.emplace_back("port", base::Join(ports, ","));
  auto target = co_await LocateStream(*backends, context, "/portForward/", false, "", EncodeQuery(parameters));
  if (!target.ok()) co_return target.error();
  ProxyOptions options = StreamProxy(*backends, target->location);
  if (backends->kubelets->config().tunnel_port_forward && !target->websockets &&
      endpoints::IsTunnelingRequest(exchange->http)) {
    co_return ProxiedConnection{std::move(options), ProxiedConnection::Form::kTunnel};
  }
  co_return ProxiedConnection{std::move(options)};
}

// --- proxies

struct Named {
  std::string scheme, name, port;
};

// name, name:port or scheme:name:port.
std::optional<Named> SplitSchemeNamePort(std::string_view id) {
  const auto parts = base::Split(id, ':');
  Named named;
  if (parts.size() == 1) {
    named.name = parts[0];
  } else if (parts.size() == 2) {
    named.name = parts[0];
    named.port = parts[1];
  } else if (parts.size() == 3) {
    named.scheme = parts[0];
    named.name = parts[1];
    named.port = parts[2];
  } else {
    return std::nullopt;
  }
  if (named.name.empty() || !(named.scheme.empty() || named.scheme == "http" || named.scheme == "https")) {
    return std::nullopt;
  }
  return named;
}

Task<Location> LocatePod(ConnectBackendsPtr backends, request::Context& context) {
  const std::string& id = context.info.name;
  const auto named = SplitSchemeNamePort(id);
  if (!named) co_return meta::NewBadRequest("invalid pod request " + base::GoQuote(id));
  KS_CO_TRY(const Value pod, co_await ReadObject(*backends->pods, context, named->name));
  std::string port = named->port;
  for (const Value container : pod.Get("spec", "containers").items()) {
    if (!port.empty()) break;
    const Value ports = container["ports"];
    if (!ports.empty()) port = std::to_string(ports.items()[0]["containerPort"].as_int());
  }
  const Value addresses = pod.Get("status", "podIPs");
  const std::string address(addresses.empty() ? std::string_view() : addresses.items()[0]["ip"].as_string());
  if (!IsProxyableIP(address)) co_return meta::NewBadRequest("address not allowed");
  co_return Location{.scheme = named->scheme, .host = address, .port = port};
}

// An address of the Endpoints counts when it is one of a pod in the same namespace.
Awaitable<bool> IsPodsAddress(const ConnectBackends& backends, request::Context& context, Value address) {
  const Value reference = address["targetRef"];
  if (!reference.is_map() || reference["namespace"].as_string() != context.info.name_space) co_return false;
  auto pod = co_await ReadObject(*backends.pods, context, std::string(reference["name"].as_string()));
  if (!pod.ok()) co_return false;
  for (const Value ip : pod->Get("status", "podIPs").items()) {
    if (ip["ip"].as_string() == address["ip"].as_string()) co_return true;
  }
  co_return false;
}

Task<std::string> ServicePortName(const ConnectBackends& backends, request::Context& context, const Named& named) {
  const auto number = base::ParseInt64(named.port);
  if (!number) co_return named.port;
  KS_CO_TRY(const Value service, co_await ReadObject(*backends.services, context, named.name));
  for (const Value port : service.Get("spec", "ports").items()) {
    if (port["port"].as_int() == *number) co_return std::string(port["name"].as_string());
  }
  co_return meta::NewServiceUnavailable("no service port " + std::to_string(*number) + " found for service " +
                                        base::GoQuote(named.name));
}

Task<Location> LocateService(ConnectBackendsPtr backends, request::Context& context) {
  const std::string& id = context.info.name;
  const auto named = SplitSchemeNamePort(id);
  if (!named) co_return meta::NewBadRequest("invalid service request " + base::GoQuote(id));
  KS_CO_TRY(const std::string port_name, co_await ServicePortName(*backends, context, *named));
  KS_CO_TRY(const Value endpoints, co_await ReadObject(*backends->endpoints, context, named->name));
  const Value subsets = endpoints["subsets"];
  if (subsets.empty()) {
    co_return meta::NewServiceUnavailable("no endpoints available for service " + base::GoQuote(named->name));
  }
  base::Random& random = base::Random::Real();
  const std::size_t first_subset = random.Below(subsets.size());
  for (std::size_t i = 0; i < subsets.size(); ++i) {
    const Value subset = subsets.items()[(first_subset + i) % subsets.size()];
    const Value addresses = subset["addresses"];
    if (addresses.empty()) continue;
    for (const Value port : subset["ports"].items()) {
      if (port["name"].as_string() != port_name) continue;
      const std::size_t first = random.Below(addresses.size());
      for (std::size_t j = 0; j < addresses.size(); ++j) {
        const Value address = addresses.items()[(first + j) % addresses.size()];
        const bool usable = co_await IsPodsAddress(*backends, context, address);
        if (!usable) continue;
        co_return Location{.scheme = named->scheme,
                           .host = std::string(address["ip"].as_string()),
                           .port = std::to_string(port["port"].as_int())};
      }
    }
  }
  co_return meta::NewServiceUnavailable("no endpoints available for service " + base::GoQuote(id));
}

// All addresses of the host must be proxyable: 400 as upstream answers. The transports check again what they dial, as
// the name may resolve to another address by then.
Task<void> CheckHost(std::string host) {
  boost::system::error_code parse_error;
  asio::ip::make_address(host, parse_error);
  if (!parse_error) {
    if (!IsProxyableIP(host)) co_return meta::NewBadRequest("address not allowed");
    co_return meta::Result<void>();
  }
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  const auto [error, found] = co_await resolver.async_resolve(host, "", kNoThrow);
  if (error) co_return meta::NewBadRequest("lookup " + host + ": no such host");
  if (found.empty()) co_return meta::NewBadRequest("no addresses for hostname");
  for (const auto& entry : found) {
    if (!IsProxyableIP(entry.endpoint().address().to_string())) co_return meta::NewBadRequest("address not allowed");
  }
  co_return meta::Result<void>();
}

struct NodeTarget {
  Location location;
  bool kubelet = false;
};

Task<NodeTarget> LocateNode(ConnectBackendsPtr backends, request::Context& context) {
  const std::string& id = context.info.name;
  const auto named = SplitSchemeNamePort(id);
  if (!named) co_return meta::NewBadRequest("invalid node request " + base::GoQuote(id));
  KS_CO_TRY(const ConnectionInfo info, co_await FindKubelet(*backends, context, named->name));
  if (!backends->kubelets->config().dial) KS_CO_RETURN_IF_ERROR(co_await CheckHost(info.host));
  NodeTarget target;
  target.kubelet = named->port.empty() || named->port == info.port;
  target.location = target.kubelet ? Location{.scheme = "https", .host = info.host, .port = info.port}
                                   : Location{.scheme = named->scheme, .host = info.host, .port = named->port};
  co_return target;
}

// The path after the subresource's name, with a leading slash, and a trailing one where the request has it.
std::string SubPath(const request::RequestInfo& info) {
  std::string path = info.rest;
  if (!path.empty() && !path.starts_with('/')) path.insert(0, "/");
  if (info.path.ends_with('/') && !path.ends_with('/')) path += '/';
  return path;
}

enum class ProxyTo { kPod, kService, kNode };

Task<Connection> ConnectProxy(ConnectBackendsPtr backends, ProxyTo to, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  const std::string path = SubPath(context.info);
  Value seen = Value::Map(context.arena);
  seen.Set(context.arena, "kind", std::string_view(scope->kind.kind));
  seen.Set(context.arena, "apiVersion", "v1");
  if (!path.empty()) seen.Set(context.arena, "path", Value::String(context.arena, path));
  if (auto admitted = co_await AdmitConnection(scope, exchange, seen); !admitted.ok()) co_return admitted.error();
  ProxyOptions options{.transport = backends->kubelets->anything(),
                       .wrap_transport = true,
                       .bytes_per_second = backends->kubelets->config().max_connection_bytes_per_sec};
  if (to == ProxyTo::kNode) {
    auto target = co_await LocateNode(backends, context);
    if (!target.ok()) co_return target.error();
    options.location = target->location;
    if (target->kubelet) options.transport = backends->kubelets->proxied_kubelets();
  } else {
    auto location =
        to == ProxyTo::kPod ? co_await LocatePod(backends, context) : co_await LocateService(backends, context);
    if (!location.ok()) co_return location.error();
    options.location = *std::move(location);
  }
  options.location.path = proxy::CleanPreservingTrailingSlash(path);
  co_return ProxiedConnection{std::move(options)};
}

// A connecter of one subresource.
template <class Function>
class ConnecterOf final : public endpoints::Connecter {
 public:
  explicit ConnecterOf(Function connect) : connect_(std::move(connect)) {}
  Task<Connection> Connect(ScopePtr scope, ExchangePtr exchange) const override {
    return connect_(std::move(scope), std::move(exchange));
  }

 private:
  const Function connect_;
};

}  // namespace

bool InstallConnect(const ChainConfig& config, const schema::Resource& resource, const schema::Subresource& subresource,
                    std::shared_ptr<registry::Store> store, endpoints::APIGroupVersion& version) {
  if (!resource.group.empty() || config.kubelets == nullptr) return false;
  auto backends = std::make_shared<ConnectBackends>();
  backends->kubelets = config.kubelets;
  backends->authorizer = config.authorizer;
  const auto store_of = [&](std::string_view plural) { return config.storage->Get("", plural); };
  backends->pods = store_of("pods");
  backends->services = store_of("services");
  backends->endpoints = store_of("endpoints");
  const auto add = [&](ConnectKind kind, auto connect) {
    const ScopePtr scope = NewSubresourceScope(config, resource, subresource, store);
    auto connecter = std::make_shared<const ConnecterOf<decltype(connect)>>(std::move(connect));
    version.Add(resource.plural, subresource.name, endpoints::ConnectRoute(scope, kind, std::move(connecter)));
    return true;
  };
  const std::string_view name = subresource.name;
  if (name == "proxy") {
    const ProxyTo to = resource.plural == "pods"    ? ProxyTo::kPod
                       : resource.plural == "nodes" ? ProxyTo::kNode
                                                    : ProxyTo::kService;
    return add(ConnectKind::kProxy, [backends, to](ScopePtr scope, ExchangePtr exchange) {
      return ConnectProxy(backends, to, std::move(scope), std::move(exchange));
    });
  }
  if (resource.plural != "pods") return false;
  if (name == "exec" || name == "attach") {
    const bool exec = name == "exec";
    return add(ConnectKind::kStream, [backends, exec](ScopePtr scope, ExchangePtr exchange) {
      return ConnectCommand(backends, exec, std::move(scope), std::move(exchange));
    });
  }
  if (name == "portforward") {
    return add(ConnectKind::kStream, [backends](ScopePtr scope, ExchangePtr exchange) {
      return ConnectPortForward(backends, std::move(scope), std::move(exchange));
    });
  }
  if (name == "log") {
    return add(ConnectKind::kText,
               [backends](ScopePtr, ExchangePtr exchange) { return ConnectPodLog(backends, std::move(exchange)); });
  }
  return false;
}

}  // namespace keelson::controlplane
