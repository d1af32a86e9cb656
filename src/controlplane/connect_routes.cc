// The subresources that are connections to somewhere else: pods/log, exec, attach, portforward and the proxies to pods,
// nodes and services.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <map>

#include "base/random.h"
#include "base/strings.h"
#include "base/url.h"
#include "controlplane/custom_routes.h"
#include "controlplane/kubelet.h"
#include "endpoints/custom.h"
#include "endpoints/proxy/body_bridge.h"
#include "endpoints/responses.h"
#include "endpoints/stream_translator.h"
#include "endpoints/upgrade_aware_proxy.h"
#include "http/websocket.h"
#include "object/time.h"
#include "validation/errors.h"

namespace keelson::controlplane {
namespace {

using endpoints::ExchangePtr;
using endpoints::ProxyOptions;
using endpoints::ScopePtr;
using endpoints::Task;
using endpoints::proxy::Location;

constexpr std::size_t kRefusalBytesMax = 50'000;  // of a kubelet's answer that is no log
constexpr std::string_view kProxyMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"};
constexpr std::string_view kStreamMethods[] = {"GET", "POST"};
constexpr std::string_view kLogMethods[] = {"GET"};
constexpr std::string_view kLogTypes[] = {"text/plain", "application/json", "application/yaml",
                                          "application/vnd.kubernetes.protobuf"};

// What a handler needs besides the request. Shared by all routes of this file.
struct Backends {
  std::shared_ptr<KubeletConnections> kubelets;
  std::shared_ptr<auth::Authorizer> authorizer;
  std::shared_ptr<registry::Store> pods, services, endpoints;
};
using BackendsPtr = std::shared_ptr<const Backends>;

// Upstream's stores name the resource of the request, whatever was looked for.
meta::Status AboutRequest(const request::Context& context, const meta::Status& status, std::string_view name) {
  if (status.reason() != meta::StatusReason::kNotFound) return status;
  return meta::NewNotFound({context.info.api_group, context.info.resource}, name);
}

Task<Value> Read(const registry::Store& store, request::Context& context, std::string name) {
  auto object = co_await store.Get(context.info.name_space, name, "");
  if (!object.ok()) co_return AboutRequest(context, object.error(), name);
  co_return store.Decode(context.arena, *object);
}

Task<ConnectionInfo> Kubelet(const Backends& backends, request::Context& context, std::string node) {
  auto info = co_await backends.kubelets->Get(node);
  if (!info.ok()) co_return AboutRequest(context, info.error(), node);
  co_return *std::move(info);
}

std::vector<std::string> ContainerNames(Value pod) {
  std::vector<std::string> names;
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value container : pod.Get("spec", list).items()) names.emplace_back(container["name"].as_string());
  }
  return names;
}

meta::Result<std::string> ChooseContainer(Value pod, std::string_view wanted) {
  const std::string pod_name(pod.Get("metadata", "name").as_string());
  const auto names = ContainerNames(pod);
  if (!wanted.empty()) {
    for (const std::string& name : names) {
      if (name == wanted) return name;
    }
    return meta::NewBadRequest("container " + std::string(wanted) + " is not valid for pod " + pod_name);
  }
  const Value containers = pod.Get("spec", "containers");
  if (containers.size() == 1) return std::string(containers.items()[0]["name"].as_string());
  const std::string text = "a container name must be specified for pod " + pod_name;
  if (containers.empty()) return meta::NewBadRequest(text);
  return meta::NewBadRequest(text + ", choose one of: [" + base::Join(names, " ") + "]");
}

// Query options, read the way upstream converts them.
class Options {
 public:
  Options(const base::Query& query, base::Arena& arena) : query_(query), arena_(arena), object_(Value::Map(arena)) {}

  bool Flag(std::string_view name) {
    const bool set = query_.Has(name) && request::ParseQueryBool(query_.Get(name));
    if (set) object_.Set(arena_, name, true);
    return set;
  }
  std::string Text(std::string_view name) {
    const std::string_view text = query_.Get(name);
    if (!text.empty()) object_.Set(arena_, name, Value::String(arena_, text));
    return std::string(text);
  }
  std::optional<std::int64_t> Number(std::string_view name) {
    if (!query_.Has(name)) return std::nullopt;
    const std::string_view text = query_.Get(name);
    const auto number = base::ParseInt64(text);
    if (!number) {
      const bool digits = !text.empty() && text.find_first_not_of("0123456789", text[0] == '-' || text[0] == '+') ==
                                               std::string_view::npos;
      const bool range = digits && text.size() > 18;
      error_ =
          "strconv.ParseInt: parsing " + base::GoQuote(text) + ": " + (range ? "value out of range" : "invalid syntax");
      return std::nullopt;
    }
    object_.Set(arena_, name, *number);
    return number;
  }
  std::string Time(std::string_view name) {
    const std::string_view text = query_.Get(name);
    if (text.empty() || text == "null") return {};
    const auto time = object::ParseTime(text);
    if (!time.ok()) {
      error_ = time.error();
      return {};
    }
    std::string formatted = object::FormatTime(time->seconds);
    object_.Set(arena_, name, Value::String(arena_, formatted));
    return formatted;
  }
  std::vector<std::string> Texts(std::string_view name) {
    std::vector<std::string> texts;
    Value list = Value::List(arena_);
    for (const std::string_view text : query_.Values(name)) {
      texts.emplace_back(text);
      list.Append(arena_, Value::String(arena_, text));
    }
    if (!texts.empty()) object_.Set(arena_, name, list);
    return texts;
  }
  std::vector<std::string> Ports(std::string_view name) {
    std::vector<std::string> ports;
    Value list = Value::List(arena_);
    for (const std::string_view texts : query_.Values(name)) {
      for (const std::string_view text : base::Split(texts, ',')) {
        const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
        const auto number = digits ? base::ParseInt64(text) : std::nullopt;
        if (!number || *number > 65535) {
          error_ = "cannot convert to []int32: strconv.ParseUint: parsing " + base::GoQuote(text) + ": " +
                   (digits ? "value out of range" : "invalid syntax");
          return {};
        }
        ports.push_back(std::to_string(*number));
        list.Append(arena_, *number);
      }
    }
    if (!ports.empty()) object_.Set(arena_, name, list);
    return ports;
  }

  const std::optional<std::string>& error() const { return error_; }
  // The options as an object, for admission.
  Value Object(std::string_view kind) {
    object_.Set(arena_, "kind", kind);
    object_.Set(arena_, "apiVersion", "v1");
    return object_;
  }

 private:
  const base::Query& query_;
  base::Arena& arena_;
  Value object_;
  std::optional<std::string> error_;
};

// Query parameters as Go's Values.Encode writes them: by key.
std::string Encode(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::map<std::string, std::vector<std::string>> by_key;
  for (const auto& [key, value] : parameters) by_key[key].push_back(value);
  std::string query;
  for (const auto& [key, values] : by_key) {
    for (const std::string& value : values) {
      if (!query.empty()) query += '&';
      query += base::QueryEscape(key) + "=" + base::QueryEscape(value);
    }
  }
  return query;
}

// Admission of a connection; the options object is what plugins see.
Task<void> AdmitConnect(const ScopePtr& scope, const ExchangePtr& exchange, Value options) {
  if (exchange->query.Has("dryRun")) co_return meta::NewBadRequest("dryRun is not supported");
  if (!scope->admission) co_return meta::Result<void>();
  const request::RequestInfo& info = exchange->context.info;
  admission::Attributes attributes{.operation = admission::Operation::kConnect,
                                   .kind = scope->kind,
                                   .resource = scope->resource,
                                   .subresource = scope->subresource,
                                   .name_space = info.name_space,
                                   .name = info.name,
                                   .object = options};
  KS_CO_RETURN_IF_ERROR(co_await scope->admission->Admit(exchange->context, attributes));
  co_return co_await scope->admission->Validate(exchange->context, attributes);
}

// --- pods/log

struct LogOptions {
  std::string container;
  bool follow = false, previous = false, timestamps = false, unverified = false;
  std::string since_time;
  std::optional<std::int64_t> since_seconds, tail_lines, limit_bytes;
  bool has_stream = false;
  std::string stream;
};

meta::FieldErrors ValidateLogOptions(const LogOptions& options) {
  meta::FieldErrors errors;
  using validation::Invalid;
  if (options.tail_lines && *options.tail_lines < 0) {
    errors.push_back(Invalid(FieldPath("tailLines"), Value(*options.tail_lines), "must be greater than or equal to 0"));
  }
  if (options.limit_bytes && *options.limit_bytes < 1) {
    errors.push_back(Invalid(FieldPath("limitBytes"), Value(*options.limit_bytes), "must be greater than 0"));
  }
  if (options.since_seconds && !options.since_time.empty()) {
    errors.push_back(
        validation::Forbidden(FieldPath(), "at most one of `sinceTime` or `sinceSeconds` may be specified"));
    errors.back().field = "[]";  // what Go writes for a path with an empty name
  }
  if (options.since_seconds && *options.since_seconds < 1) {
    errors.push_back(Invalid(FieldPath("sinceSeconds"), Value(*options.since_seconds), "must be greater than 0"));
  }
  if (options.has_stream) errors.push_back(validation::Forbidden(FieldPath("stream"), "may not be specified"));
  return errors;
}

std::string LogQuery(const LogOptions& options) {
  std::vector<std::pair<std::string, std::string>> parameters;
  if (options.follow) parameters.emplace_back("follow", "true");
  if (options.previous) parameters.emplace_back("previous", "true");
  if (options.timestamps) parameters.emplace_back("timestamps", "true");
  if (options.since_seconds) parameters.emplace_back("sinceSeconds", std::to_string(*options.since_seconds));
  if (!options.since_time.empty()) parameters.emplace_back("sinceTime", options.since_time);
  if (options.tail_lines) parameters.emplace_back("tailLines", std::to_string(*options.tail_lines));
  if (options.limit_bytes) parameters.emplace_back("limitBytes", std::to_string(*options.limit_bytes));
  return Encode(parameters);
}

meta::Result<LogOptions> ReadLogOptions(endpoints::Exchange& exchange) {
  Options query(exchange.query, exchange.context.arena);
  LogOptions options;
  options.container = query.Text("container");
  options.follow = query.Flag("follow");
  options.previous = query.Flag("previous");
  options.since_seconds = query.Number("sinceSeconds");
  options.since_time = query.Time("sinceTime");
  options.timestamps = query.Flag("timestamps");
  options.tail_lines = query.Number("tailLines");
  options.limit_bytes = query.Number("limitBytes");
  options.unverified = query.Flag("insecureSkipTLSVerifyBackend");
  options.has_stream = exchange.query.Has("stream");
  if (query.error()) return meta::NewBadRequest(*query.error());
  return options;
}

// Bytes of a log as messages of a WebSocket, in the protocol that was agreed on.
Awaitable<void> SendLog(std::shared_ptr<http::BodyReader> log, bool text, std::shared_ptr<http::WebSocket> socket) {
  const auto opcode = text ? http::WebSocketOpcode::kText : http::WebSocketOpcode::kBinary;
  (void)co_await socket->Write(opcode, http::SharedBytes());  // says that the log begins
  for (;;) {
    auto bytes = co_await log->Read();
    if (!bytes.ok() || bytes->empty()) break;
    auto message = text ? http::SharedBytes::FromString(base::Base64Encode(bytes->view())) : *std::move(bytes);
    const bool written = co_await socket->Write(opcode, std::move(message));
    if (!written) break;
  }
}

http::Response LogOverWebSocket(const http::Request& request, std::unique_ptr<http::BodyReader> log) {
  auto offered = http::WebSocketProtocols(request);
  if (offered.empty()) offered.emplace_back();
  for (const std::string& protocol : offered) {
    const bool text = protocol == "base64.binary.k8s.io";
    if (!protocol.empty() && protocol != "binary.k8s.io" && !text) continue;
    std::shared_ptr<http::BodyReader> shared = std::move(log);
    return http::AcceptWebSocket(request, protocol, [shared, text](std::shared_ptr<http::WebSocket> socket) {
      return SendLog(shared, text, std::move(socket));
    });
  }
  http::Response refused;
  refused.status = 403;
  refused.headers.Add("Connection", "close");
  return refused;
}

// The kubelet's answer as an error of ours.
Awaitable<meta::Status> LogRefused(std::string pod, http::ClientResponse answer) {
  std::string text;
  while (text.size() < kRefusalBytesMax) {
    auto bytes = co_await answer.body->Read();
    if (!bytes.ok()) co_return meta::NewInternalError("unexpected EOF");
    if (bytes->empty()) break;
    text += bytes->view();
  }
  text.resize(std::min(text.size(), kRefusalBytesMax));
  if (answer.status == 500) co_return meta::NewInternalError(text);
  if (answer.status == 400) co_return meta::NewBadRequest(text);
  co_return meta::NewGenericServerResponse(answer.status, "", {"", "pods/log"}, pod, text, 0);
}

Awaitable<http::Response> ServeLog(BackendsPtr backends, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  const auto fail = [&](const meta::Status& status) { return endpoints::StatusResponse(*exchange, status); };
  if (auto refused = endpoints::CheckAccept(*exchange, kLogTypes)) co_return std::move(*refused);
  if (auto media = endpoints::NegotiateOutput(exchange->http, exchange->query, scope->restrictions); !media.ok()) {
    co_return fail(media.error());
  }
  const auto options = ReadLogOptions(*exchange);
  if (!options.ok()) co_return fail(options.error());
  const std::string name = context.info.name;
  if (const auto errors = ValidateLogOptions(*options); !errors.empty()) {
    co_return fail(meta::NewInvalid({"", "PodLogOptions"}, name, errors));
  }
  auto pod = co_await Read(*backends->pods, context, name);
  if (!pod.ok()) co_return fail(pod.error());
  const auto container = ChooseContainer(*pod, options->container);
  if (!container.ok()) co_return fail(container.error());
  const std::string node(pod->Get("spec", "nodeName").as_string());
  if (node.empty()) {  // nothing has run yet
    http::Response nothing;
    nothing.status = 204;
    co_return nothing;
  }
  auto info = co_await Kubelet(*backends, context, node);
  if (!info.ok()) co_return fail(info.error());
  Location location{.scheme = "https", .host = info->host, .port = info->port};
  location.path = "/containerLogs/" + context.info.name_space + "/" + name + "/" + *container;
  location.raw_query = LogQuery(*options);
  const auto& transport =
      options->unverified ? backends->kubelets->unverified_kubelets() : backends->kubelets->kubelets();
  http::ClientRequest request;
  request.headers.Add("User-Agent", "Go-http-client/1.1");
  auto answer = co_await transport->Do(location, std::move(request));
  if (!answer.ok()) co_return fail(meta::NewPlainError(endpoints::RequestError("GET", location, answer.error())));
  if (answer->status >= 300 && answer->status < 400 && answer->headers.Has("Location")) {
    const std::string target(answer->headers.Get("Location"));
    co_return fail(meta::NewPlainError("Get " + base::GoQuote(target) + ": redirects forbidden"));
  }
  if (answer->status < 200 || answer->status > 206) {
    const meta::Status refused = co_await LogRefused(name, *std::move(answer));
    co_return fail(refused);
  }
  if (http::IsWebSocketRequest(exchange->http)) co_return LogOverWebSocket(exchange->http, std::move(answer->body));
  http::Response response;
  response.headers.Add("Content-Type", "text/plain");
  response.body = endpoints::proxy::NewBridge(co_await asio::this_coro::executor, std::move(answer->body));
  co_return response;
}

// --- pods/exec, attach, portforward

// A GET that becomes a stream does what a POST does: it needs the same permission.
Task<void> RequireCreate(const Backends& backends, const request::Context& context) {
  if (!backends.kubelets->config().require_create || context.info.verb == "create" || !backends.authorizer) {
    co_return meta::Result<void>();
  }
  auth::Attributes attributes = auth::AttributesOf(*context.user, context.info);
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

Task<StreamTarget> LocateStream(const Backends& backends, request::Context& context, std::string path, bool contained,
                                std::string container, std::string query) {
  KS_CO_TRY(const Value pod, co_await Read(*backends.pods, context, context.info.name));
  std::string tail;
  if (contained) {
    KS_CO_TRY(const std::string chosen, ChooseContainer(pod, container));
    tail = "/" + chosen;
  }
  const std::string node(pod.Get("spec", "nodeName").as_string());
  if (node.empty()) co_return meta::NewBadRequest("pod " + context.info.name + " does not have a host assigned");
  KS_CO_TRY(const ConnectionInfo info, co_await Kubelet(backends, context, node));
  StreamTarget target;
  target.location = {.scheme = "https", .host = info.host, .port = info.port};
  target.location.path = path + context.info.name_space + "/" + context.info.name + tail;
  target.location.raw_query = std::move(query);
  target.websockets = info.websockets;
  co_return target;
}

ProxyOptions StreamProxy(const Backends& backends, const Location& location) {
  return {.location = location,
          .transport = backends.kubelets->kubelets(),
          .upgrade_required = true,
          .bytes_per_second = backends.kubelets->config().max_connection_bytes_per_sec};
}

// exec and attach differ in the command alone.
Awaitable<http::Response> ServeCommand(BackendsPtr backends, bool exec, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  const auto fail = [&](const meta::Status& status) { return endpoints::StatusResponse(*exchange, status); };
  Options query(exchange->query, context.arena);
  endpoints::StreamOptions streams{.standard_input = query.Flag("stdin"),
                                   .standard_output = query.Flag("stdout"),
                                   .standard_error = query.Flag("stderr"),
                                   .terminal = query.Flag("tty")};
  const std::string container = query.Text("container");
  const std::vector<std::string> words = exec ? query.Texts("command") : std::vector<std::string>();
  auto admitted = co_await AdmitConnect(scope, exchange, query.Object(exec ? "PodExecOptions" : "PodAttachOptions"));
  if (!admitted.ok()) co_return fail(admitted.error());
  if (auto allowed = co_await RequireCreate(*backends, context); !allowed.ok()) co_return fail(allowed.error());
  std::vector<std::pair<std::string, std::string>> parameters;
  if (streams.standard_input) parameters.emplace_back("input", "1");
  if (streams.standard_output) parameters.emplace_back("output", "1");
  if (streams.standard_error) parameters.emplace_back("error", "1");
  if (streams.terminal) parameters.emplace_back("tty", "1");
  for (const std::string& word : words) parameters.emplace_back("command", word);
  auto target =
      co_await LocateStream(*backends, context, exec ? "/exec/" : "/attach/", true, container, Encode(parameters));
  if (!target.ok()) co_return fail(target.error());
  ProxyOptions options = StreamProxy(*backends, target->location);
  if (backends->kubelets->config().translate_commands && !target->websockets &&
      endpoints::IsStreamCloseRequest(exchange->http)) {
    co_return endpoints::ServeStreamTranslator(std::move(options), streams, exchange);
  }
  co_return co_await endpoints::ServeUpgradeAware(std::move(options), exchange);
}

Awaitable<http::Response> ServePortForward(BackendsPtr backends, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  const auto fail = [&](const meta::Status& status) { return endpoints::StatusResponse(*exchange, status); };
  Options query(exchange->query, context.arena);
  const std::vector<std::string> ports = query.Ports("ports");
  if (query.error()) co_return fail(meta::NewBadRequest(*query.error()));
  auto admitted = co_await AdmitConnect(scope, exchange, query.Object("PodPortForwardOptions"));
  if (!admitted.ok()) co_return fail(admitted.error());
  if (auto allowed = co_await RequireCreate(*backends, context); !allowed.ok()) co_return fail(allowed.error());
  std::vector<std::pair<std::string, std::string>> parameters;
  if (!ports.empty()) parameters.emplace_back("port", base::Join(ports, ","));
  auto target = co_await LocateStream(*backends, context, "/portForward/", false, "", Encode(parameters));
  if (!target.ok()) co_return fail(target.error());
  ProxyOptions options = StreamProxy(*backends, target->location);
  if (backends->kubelets->config().tunnel_port_forward && !target->websockets &&
      endpoints::IsTunnelingRequest(exchange->http)) {
    co_return co_await endpoints::ServeTunnel(std::move(options), exchange);
  }
  co_return co_await endpoints::ServeUpgradeAware(std::move(options), exchange);
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

// Go's IP.IsGlobalUnicast: no loopback, link-local, multicast, unspecified or broadcast address.
bool IsGlobalUnicast(const asio::ip::address& address) {
  if (address.is_loopback() || address.is_multicast() || address.is_unspecified()) return false;
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    const bool link_local = bytes[0] == 169 && bytes[1] == 254;
    return !link_local && address.to_v4() != asio::ip::address_v4::broadcast();
  }
  if (address.to_v6().is_v4_mapped()) {
    return IsGlobalUnicast(asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()));
  }
  return !address.to_v6().is_link_local();
}

bool MayReach(std::string_view address) {
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(std::string(address), error);
  return !error && IsGlobalUnicast(parsed);
}

Task<Location> LocatePod(BackendsPtr backends, request::Context& context) {
  const std::string& id = context.info.name;
  const auto named = SplitSchemeNamePort(id);
  if (!named) co_return meta::NewBadRequest("invalid pod request " + base::GoQuote(id));
  KS_CO_TRY(const Value pod, co_await Read(*backends->pods, context, named->name));
  std::string port = named->port;
  for (const Value container : pod.Get("spec", "containers").items()) {
    if (!port.empty()) break;
    const Value ports = container["ports"];
    if (!ports.empty()) port = std::to_string(ports.items()[0]["containerPort"].as_int());
  }
  const Value addresses = pod.Get("status", "podIPs");
  const std::string address(addresses.empty() ? std::string_view() : addresses.items()[0]["ip"].as_string());
  if (!MayReach(address)) co_return meta::NewBadRequest("address not allowed");
  co_return Location{.scheme = named->scheme, .host = address, .port = port};
}

// An address of the Endpoints counts when it is one of a pod in the same namespace.
Awaitable<bool> IsPodsAddress(const Backends& backends, request::Context& context, Value address) {
  const Value reference = address["targetRef"];
  if (!reference.is_map() || reference["namespace"].as_string() != context.info.name_space) co_return false;
  auto pod = co_await Read(*backends.pods, context, std::string(reference["name"].as_string()));
  if (!pod.ok()) co_return false;
  for (const Value ip : pod->Get("status", "podIPs").items()) {
    if (ip["ip"].as_string() == address["ip"].as_string()) co_return true;
  }
  co_return false;
}

Task<std::string> ServicePortName(const Backends& backends, request::Context& context, const Named& named) {
  const auto number = base::ParseInt64(named.port);
  if (!number) co_return named.port;
  KS_CO_TRY(const Value service, co_await Read(*backends.services, context, named.name));
  for (const Value port : service.Get("spec", "ports").items()) {
    if (port["port"].as_int() == *number) co_return std::string(port["name"].as_string());
  }
  co_return meta::NewServiceUnavailable("no service port " + std::to_string(*number) + " found for service " +
                                        base::GoQuote(named.name));
}

Task<Location> LocateService(BackendsPtr backends, request::Context& context) {
  const std::string& id = context.info.name;
  const auto named = SplitSchemeNamePort(id);
  if (!named) co_return meta::NewBadRequest("invalid service request " + base::GoQuote(id));
  KS_CO_TRY(const std::string port_name, co_await ServicePortName(*backends, context, *named));
  KS_CO_TRY(const Value endpoints, co_await Read(*backends->endpoints, context, named->name));
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

// All addresses of the host must be such that a client may be let there.
Task<void> CheckHost(std::string host) {
  boost::system::error_code parse_error;
  asio::ip::make_address(host, parse_error);
  if (!parse_error) {
    if (!MayReach(host)) co_return meta::NewBadRequest("address not allowed");
    co_return meta::Result<void>();
  }
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  const auto [error, found] = co_await resolver.async_resolve(host, "", kNoThrow);
  if (error) co_return meta::NewBadRequest("lookup " + host + ": no such host");
  if (found.empty()) co_return meta::NewBadRequest("no addresses for hostname");
  for (const auto& entry : found) {
    if (!IsGlobalUnicast(entry.endpoint().address())) co_return meta::NewBadRequest("address not allowed");
  }
  co_return meta::Result<void>();
}

struct NodeTarget {
  Location location;
  bool kubelet = false;
};

Task<NodeTarget> LocateNode(BackendsPtr backends, request::Context& context) {
  const std::string& id = context.info.name;
  const auto named = SplitSchemeNamePort(id);
  if (!named) co_return meta::NewBadRequest("invalid node request " + base::GoQuote(id));
  KS_CO_TRY(const ConnectionInfo info, co_await Kubelet(*backends, context, named->name));
  if (!backends->kubelets->config().dial) KS_CO_RETURN_IF_ERROR(co_await CheckHost(info.host));
  NodeTarget target;
  target.kubelet = named->port.empty() || named->port == info.port;
  target.location = target.kubelet ? Location{.scheme = "https", .host = info.host, .port = info.port}
                                   : Location{.scheme = named->scheme, .host = info.host, .port = named->port};
  co_return target;
}

// What follows the subresource's name, with a leading slash, and a trailing one where the request has it.
std::string SubPath(const request::RequestInfo& info) {
  std::string path;
  for (std::size_t i = 3; i < info.parts.size(); ++i) path += (i > 3 ? "/" : "") + info.parts[i];
  if (!path.empty() && !path.starts_with('/')) path.insert(0, "/");
  if (info.path.ends_with('/') && !path.ends_with('/')) path += '/';
  return path;
}

enum class ProxyTo { kPod, kService, kNode };

Awaitable<http::Response> ServeProxy(BackendsPtr backends, ProxyTo to, ScopePtr scope, ExchangePtr exchange) {
  request::Context& context = exchange->context;
  const auto fail = [&](const meta::Status& status) { return endpoints::StatusResponse(*exchange, status); };
  const std::string path = SubPath(context.info);
  Value seen = Value::Map(context.arena);
  seen.Set(context.arena, "kind", std::string_view(scope->kind.kind));
  seen.Set(context.arena, "apiVersion", "v1");
  if (!path.empty()) seen.Set(context.arena, "path", Value::String(context.arena, path));
  if (auto admitted = co_await AdmitConnect(scope, exchange, seen); !admitted.ok()) co_return fail(admitted.error());
  ProxyOptions options{.transport = backends->kubelets->anything(),
                       .wrap_transport = true,
                       .bytes_per_second = backends->kubelets->config().max_connection_bytes_per_sec};
  if (to == ProxyTo::kNode) {
    auto target = co_await LocateNode(backends, context);
    if (!target.ok()) co_return fail(target.error());
    options.location = target->location;
    if (target->kubelet) options.transport = backends->kubelets->kubelets();
  } else {
    auto location =
        to == ProxyTo::kPod ? co_await LocatePod(backends, context) : co_await LocateService(backends, context);
    if (!location.ok()) co_return fail(location.error());
    options.location = *std::move(location);
  }
  options.location.path = path;
  co_return co_await endpoints::ServeUpgradeAware(std::move(options), exchange);
}

endpoints::Route ConnectRoute(const ScopePtr& scope, std::span<const std::string_view> methods,
                              const endpoints::ScopeHandler& handler) {
  endpoints::Route route{.scope = scope};
  for (const std::string_view method : methods) route.item[std::string(method)] = handler;
  route.connects = true;
  return route;
}

// Only proxies have paths below their name.
endpoints::ScopeHandler WithoutSubpath(endpoints::ScopeHandler next) {
  return [next = std::move(next)](ScopePtr scope, ExchangePtr exchange) -> Awaitable<http::Response> {
    if (exchange->context.info.parts.size() > 3) co_return endpoints::NoRoute(*exchange);
    co_return co_await next(std::move(scope), std::move(exchange));
  };
}

}  // namespace

bool InstallConnect(const ChainConfig& config, const schema::Resource& resource, const schema::Subresource& subresource,
                    std::shared_ptr<registry::Store> store, endpoints::APIGroupVersion& version) {
  if (!resource.group.empty() || config.kubelets == nullptr) return false;
  auto backends = std::make_shared<Backends>();
  backends->kubelets = config.kubelets;
  backends->authorizer = config.authorizer;
  backends->pods = config.storage->Get(*schema::FindResource("", "v1", "pods"));
  backends->services = config.storage->Get(*schema::FindResource("", "v1", "services"));
  backends->endpoints = config.storage->Get(*schema::FindResource("", "v1", "endpoints"));
  const auto add = [&](std::span<const std::string_view> methods, const endpoints::ScopeHandler& handler) {
    const ScopePtr scope = NewSubresourceScope(config, resource, subresource, store);
    version.Add(resource.plural, subresource.name, ConnectRoute(scope, methods, handler));
    return true;
  };
  const std::string_view name = subresource.name;
  if (name == "proxy") {
    const ProxyTo to = resource.plural == "pods"    ? ProxyTo::kPod
                       : resource.plural == "nodes" ? ProxyTo::kNode
                                                    : ProxyTo::kService;
    return add(kProxyMethods, [backends, to](ScopePtr scope, ExchangePtr exchange) {
      return ServeProxy(backends, to, std::move(scope), std::move(exchange));
    });
  }
  if (resource.plural != "pods") return false;
  if (name == "exec" || name == "attach") {
    const bool exec = name == "exec";
    return add(kStreamMethods, WithoutSubpath([backends, exec](ScopePtr scope, ExchangePtr exchange) {
                 return ServeCommand(backends, exec, std::move(scope), std::move(exchange));
               }));
  }
  if (name == "portforward") {
    return add(kStreamMethods, WithoutSubpath([backends](ScopePtr scope, ExchangePtr exchange) {
                 return ServePortForward(backends, std::move(scope), std::move(exchange));
               }));
  }
  if (name == "log") {
    return add(kLogMethods, WithoutSubpath([backends](ScopePtr scope, ExchangePtr exchange) {
                 return ServeLog(backends, std::move(scope), std::move(exchange));
               }));
  }
  return false;
}

}  // namespace keelson::controlplane
