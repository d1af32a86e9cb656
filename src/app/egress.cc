#include "app/egress.h"

#include "app/egress_config.h"
#include "app/files.h"
#include "base/go_url.h"
#include "base/strings.h"
#include "http/connect_dialer.h"
#include "http/konnectivity_dialer.h"

namespace keelson::app {
namespace {

using Protocol = EgressSelection::Protocol;

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

// Whether a dial failed after the proxy was reached.
bool FailedAtProxy(Protocol protocol, const std::string& error) {
  if (protocol == Protocol::kGRPC) return !error.starts_with("context deadline exceeded: connection error");
  return error.starts_with("proxy error") || error.starts_with("reading HTTP response");
}

class MeteredDialer final : public net::Dialer {
 public:
  MeteredDialer(net::DialerPtr inner, Metrics metrics, const EgressSelection& selection)
      : inner_(std::move(inner)),
        metrics_(metrics),
        kind_(selection.protocol),
        protocol_(kind_ == Protocol::kGRPC ? "grpc" : "http_connect"),
        transport_(selection.uds_name.empty() ? "tcp" : "uds") {}

  Awaitable<net::Result<net::StreamSocket>> Dial(net::DialTarget target,
                                                 std::chrono::steady_clock::time_point deadline) override {
    const auto inner = inner_;
    const Metrics metrics = metrics_;
    const Protocol kind = kind_;
    const std::string_view protocol = protocol_, transport = transport_;
    const auto start = std::chrono::steady_clock::now();
    metrics.started->With({protocol, transport}).Inc();
    auto socket = co_await inner->Dial(std::move(target), deadline);
    if (!socket.ok()) {
      const std::string_view stage = FailedAtProxy(kind, socket.error().message) ? "proxy" : "connect";
      metrics.failed->With({protocol, transport, stage}).Inc();
      co_return socket;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    metrics.latency->With({protocol, transport}).Observe(took.count());
    co_return socket;
  }

 private:
  const net::DialerPtr inner_;
  const Metrics metrics_;
  const Protocol kind_;
  const std::string_view protocol_;  // literals
  const std::string_view transport_;
};

Outcome<std::shared_ptr<net::TLSClientContext>, Error> ProxyTLS(const EgressTLSConfig& config, bool http2) {
  const std::string pair = config.client_cert + " & " + config.client_key;
  net::TLSClientOptions tls;
  auto certificate_pem = ReadSmallFile(config.client_cert);
  auto key_pem = ReadSmallFile(config.client_key);
  if (!certificate_pem.ok() || !key_pem.ok()) return Error("failed to read key pair " + pair);
  tls.client_cert_pem = *certificate_pem;
  tls.client_key_pem = *key_pem;
  if (!config.ca_bundle.empty()) {
    auto ca_pem = ReadSmallFile(config.ca_bundle);
    if (!ca_pem.ok()) return Error("failed to read cert file " + config.ca_bundle);
    tls.ca_pem = *ca_pem;
  }
  tls.http2 = http2;
  auto context = net::TLSClientContext::New(tls);
  if (!context.ok()) return Error("failed to read key pair " + pair + ", got " + context.error().message);
  return *std::move(context);
}

// The address of the egress proxy and the TLS settings for it.
struct Proxy {
  net::DialTarget target;
  std::string name;  // in errors
  std::shared_ptr<net::TLSClientContext> tls;
  std::string server_name;
};

Outcome<Proxy, Error> FindProxy(const EgressSelection& selection) {
  Proxy proxy;
  if (!selection.uds_name.empty()) {
    proxy.target.unix_path = proxy.name = selection.uds_name;
    return proxy;
  }
  auto url = base::ParseURL(selection.url);
  if (!url.ok() || url->host.empty()) return Error("invalid proxy server url " + base::GoQuote(selection.url));
  proxy.target.host = url->Hostname();
  const std::string port = url->Port();
  proxy.target.port = port.empty() ? (url->scheme == "https" ? 443 : 80)
                                   : static_cast<std::uint16_t>(base::ParseUint64(port).value_or(0));
  proxy.name = url->host;
  if (!selection.tls) return proxy;
  KS_TRY(proxy.tls, ProxyTLS(*selection.tls, selection.protocol == Protocol::kGRPC));
  proxy.server_name = selection.tls->server_name;
  return proxy;
}

Outcome<net::DialerPtr, Error> MakeDialer(const EgressSelection& selection, async::IOPool& io, const Metrics& metrics,
                                          const std::shared_ptr<http::KonnectivityMetrics>& konnectivity) {
  if (selection.protocol == Protocol::kDirect) return net::DialerPtr();
  KS_TRY(Proxy proxy, FindProxy(selection));
  net::DialerPtr dialer;
  if (selection.protocol == Protocol::kGRPC) {
    dialer = std::make_shared<http::KonnectivityDialer>(
        http::KonnectivityDialerOptions{.proxy = std::move(proxy.target),
                                        .tls = std::move(proxy.tls),
                                        .server_name = std::move(proxy.server_name),
                                        .metrics = konnectivity});
  } else {
    dialer = std::make_shared<http::ConnectDialer>(
        io, http::ConnectDialerOptions{.proxy = std::move(proxy.target),
                                       .proxy_name = std::move(proxy.name),
                                       .tls = std::move(proxy.tls),
                                       .server_name = std::move(proxy.server_name),
                                       .host_header = "127.0.0.1"});
  }
  return net::DialerPtr(std::make_shared<MeteredDialer>(std::move(dialer), metrics, selection));
}

}  // namespace

Outcome<EgressSelector, Error> EgressSelector::Load(const std::string& path, async::IOPool& io,
                                                    telemetry::MetricsRegistry& metrics) {
  EgressSelector selector;
  const Metrics registered = Register(metrics);
  const auto konnectivity = std::make_shared<http::KonnectivityMetrics>(metrics);
  if (path.empty()) return selector;
  auto text = ReadSmallFile(path);
  if (!text.ok()) {
    return Error("failed to read egress selector config: unable to read egress selector configuration from " +
                 base::GoQuote(path) + " [" + text.error().message() + "]");
  }
  auto selections = ParseEgressSelectorConfiguration(*text);
  if (!selections.ok()) return Error(selections.error());
  for (const EgressSelection& selection : *selections) {
    const bool etcd = selection.name == "etcd" && selection.protocol != Protocol::kDirect;
    if (etcd) selector.etcd_io_ = std::make_shared<async::IOPool>(1);
    auto dialer = MakeDialer(selection, etcd ? *selector.etcd_io_ : io, registered, konnectivity);
    if (!dialer.ok()) {
      return Error("failed to setup egress selector: failed to create dialer for egressSelection " +
                   base::GoQuote(selection.name) + ": " + std::string(dialer.error().message()));
    }
    selector.dialers_.emplace(selection.name, *std::move(dialer));
  }
  return selector;
}

net::DialerPtr EgressSelector::Lookup(std::string_view name) const {
  const auto found = dialers_.find(name);
  return found == dialers_.end() ? nullptr : found->second;
}

Outcome<std::unique_ptr<net::DialForwarder>, Error> EgressSelector::ForwardToEtcd(net::DialTarget target) const {
  const net::DialerPtr dialer = Lookup("etcd");
  if (dialer == nullptr) return std::unique_ptr<net::DialForwarder>();
  auto forwarder = net::DialForwarder::Listen(etcd_io_, dialer, std::move(target));
  if (!forwarder.ok()) return Error("egress selector for etcd: " + forwarder.error().message);
  return *std::move(forwarder);
}

}  // namespace keelson::app
