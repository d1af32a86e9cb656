#include "app/egress.h"

#include <filesystem>

#include "app/files.h"
#include "base/arena.h"
#include "base/go_url.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "http/connect_dialer.h"
#include "meta/status.h"

namespace keelson::app {
namespace {

constexpr std::string_view kRead = "failed to read egress selector config: ";

struct Metrics {
  telemetry::CounterVec* started = nullptr;
  telemetry::HistogramVec* latency = nullptr;
  telemetry::CounterVec* failed = nullptr;
};

Metrics Register(telemetry::MetricsRegistry& registry) {
  using telemetry::Stability;
  Metrics metrics;
  metrics.started = &registry.Counters(
      {.name = "apiserver_egress_dialer_dial_start_total",
       .help = "Dial starts, labeled by the protocol (http-connect or grpc) and transport (tcp or uds).",
       .stability = Stability::kAlpha,
       .labels = {"protocol", "transport"}});
  metrics.latency = &registry.Histograms(
      {.name = "apiserver_egress_dialer_dial_duration_seconds",
       .help =
           "Dial latency histogram in seconds, labeled by the protocol (http-connect or grpc), transport (tcp or uds)",
       .stability = Stability::kAlpha,
       .labels = {"protocol", "transport"},
       .buckets = {0.005, 0.025, 0.1, 0.5, 2.5, 12.5}});
  metrics.failed = &registry.Counters(
      {.name = "apiserver_egress_dialer_dial_failure_count",
       .help = "Dial failure count, labeled by the protocol (http-connect or grpc), transport (tcp or uds), and stage "
               "(connect or proxy). The stage indicates at which stage the dial failed",
       .stability = Stability::kAlpha,
       .labels = {"protocol", "transport", "stage"}});
  return metrics;
}

class MeteredDialer final : public net::Dialer {
 public:
  MeteredDialer(net::DialerPtr inner, Metrics metrics, std::string transport)
      : inner_(std::move(inner)), metrics_(metrics), transport_(std::move(transport)) {}

  Awaitable<net::Result<net::StreamSocket>> Dial(net::DialTarget target,
                                                 std::chrono::steady_clock::time_point deadline) override {
    constexpr std::string_view kProtocol = "http-connect";
    const auto inner = inner_;
    const Metrics metrics = metrics_;
    const std::string transport = transport_;
    const auto start = std::chrono::steady_clock::now();
    metrics.started->With({kProtocol, transport}).Inc();
    auto socket = co_await inner->Dial(std::move(target), deadline);
    if (!socket.ok()) {
      const bool proxied = socket.error().message.starts_with("proxy error") ||
                           socket.error().message.starts_with("reading HTTP response");
      metrics.failed->With({kProtocol, transport, proxied ? "proxy" : "connect"}).Inc();
      co_return socket;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    metrics.latency->With({kProtocol, transport}).Observe(took.count());
    co_return socket;
  }

 private:
  net::DialerPtr inner_;
  Metrics metrics_;
  std::string transport_;
};

Outcome<std::shared_ptr<net::TLSClientContext>, Error> ProxyTLS(const Value& config) {
  net::TLSClientOptions tls;
  const std::string certificate(config["clientCert"].as_string());
  const std::string key(config["clientKey"].as_string());
  auto certificate_pem = ReadSmallFile(certificate);
  auto key_pem = ReadSmallFile(key);
  if (!certificate_pem.ok() || !key_pem.ok()) return Error("failed to read key pair " + certificate + " & " + key);
  tls.client_cert_pem = *certificate_pem;
  tls.client_key_pem = *key_pem;
  if (const std::string ca(config["caBundle"].as_string()); !ca.empty()) {
    auto ca_pem = ReadSmallFile(ca);
    if (!ca_pem.ok()) return Error("failed to read cert file " + ca);
    tls.ca_pem = *ca_pem;
  }
  tls.http2 = false;
  auto context = net::TLSClientContext::New(tls);
  if (!context.ok())
    return Error("failed to read key pair " + certificate + " & " + key + ", got " + context.error().message);
  return *std::move(context);
}

// A dialer through CONNECT; the transport is a TCP URL or a Unix socket.
Outcome<net::DialerPtr, Error> HTTPConnect(const Value& transport, async::IOPool& io, const Metrics& metrics) {
  http::ConnectDialerOptions options;
  options.host_header = "127.0.0.1";
  const Value tcp = transport["tcp"];
  const Value uds = transport["uds"];
  if (tcp.is_map() == uds.is_map()) return Error("Either a TCP or UDS transport must be specified");
  if (uds.is_map()) {
    options.proxy.unix_path = uds["udsName"].as_string();
    if (options.proxy.unix_path.empty()) return Error("udsName must be present for UDS connections");
    options.proxy_name = options.proxy.unix_path;
    return net::DialerPtr(
        std::make_shared<MeteredDialer>(std::make_shared<http::ConnectDialer>(io, std::move(options)), metrics, "uds"));
  }
  const std::string text(tcp["url"].as_string());
  auto url = base::ParseURL(text);
  if (!url.ok() || url->host.empty()) return Error("invalid proxy server url " + base::GoQuote(text));
  options.proxy.host = url->Hostname();
  const std::string port = url->Port();
  options.proxy.port = port.empty() ? (url->scheme == "https" ? 443 : 80)
                                    : static_cast<std::uint16_t>(base::ParseUint64(port).value_or(0));
  options.proxy_name = url->host;
  if (url->scheme == "https") {
    if (!tcp["tlsConfig"].is_map()) return Error("TLSConfig must be present when using HTTPS");
    KS_TRY(options.tls, ProxyTLS(tcp["tlsConfig"]));
    options.server_name = tcp["tlsConfig"]["tlsServerName"].as_string();
  } else if (url->scheme != "http") {
    return Error("supported connection protocols are http:// and https://");
  }
  return net::DialerPtr(
      std::make_shared<MeteredDialer>(std::make_shared<http::ConnectDialer>(io, std::move(options)), metrics, "tcp"));
}

Outcome<net::DialerPtr, Error> MakeDialer(const std::string& name, const Value& connection, async::IOPool& io,
                                          const Metrics& metrics) {
  const std::string_view protocol = connection["proxyProtocol"].as_string();
  if (protocol == "Direct") return net::DialerPtr();
  if (name == "etcd") return Error("only Direct is built into this server for etcd");
  if (protocol == "HTTPConnect") return HTTPConnect(connection["transport"], io, metrics);
  if (protocol == "GRPC") return Error("the protocol GRPC is not built into this server");
  return Error("unrecognized service connection protocol " + base::GoQuote(protocol));
}

}  // namespace

Outcome<EgressSelector, Error> EgressSelector::Load(const std::string& path, async::IOPool& io,
                                                    telemetry::MetricsRegistry& metrics) {
  EgressSelector selector;
  const Metrics registered = Register(metrics);
  if (path.empty()) return selector;
  auto text = ReadSmallFile(path);
  if (!text.ok()) {
    return Error(std::string(kRead) + "unable to read egress selector configuration from " + base::GoQuote(path) +
                 " [" + text.error().message() + "]");
  }
  base::Arena arena;
  auto decoded = codec::DecodeYAML(arena, *text);
  if (!decoded.ok()) return Error(std::string(kRead) + decoded.error().message);
  const Value& root = decoded->value;
  const std::string_view version = root["apiVersion"].as_string();
  if (root["kind"].as_string() != "EgressSelectorConfiguration" ||
      (version != "apiserver.k8s.io/v1beta1" && version != "apiserver.k8s.io/v1alpha1")) {
    return Error(std::string(kRead) + "no kind " + base::GoQuote(root["kind"].as_string()) +
                 " is registered for version " + base::GoQuote(version) + " in scheme \"pkg/runtime/scheme.go:111\"");
  }
  for (const Value& selection : root["egressSelections"].items()) {
    std::string name = base::ToLower(selection["name"].as_string());
    if (name == "master" && version == "apiserver.k8s.io/v1alpha1") name = "controlplane";
    if (name != "cluster" && name != "controlplane" && name != "etcd")
      return Error("failed to setup egress selector: unrecognized service name " + name);
    if (selector.dialers_.contains(name))
      return Error("failed to setup egress selector: service.connection: Duplicate value: " + base::GoQuote(name));
    auto dialer = MakeDialer(name, selection["connection"], io, registered);
    if (!dialer.ok()) {
      return Error("failed to setup egress selector: failed to create dialer for egressSelection " +
                   base::GoQuote(name) + ": " + std::string(dialer.error().message()));
    }
    selector.dialers_.emplace(name, *std::move(dialer));
  }
  return selector;
}

net::DialerPtr EgressSelector::Lookup(std::string_view name) const {
  const auto found = dialers_.find(name);
  return found == dialers_.end() ? nullptr : found->second;
}

}  // namespace keelson::app
