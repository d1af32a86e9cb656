// Dials through a konnectivity server (sigs.k8s.io/apiserver-network-proxy, egress protocol GRPC): one HTTP/2
// connection with one ProxyService.Proxy stream for each dialled connection, as upstream's single-use tunnels. The
// tunnel is one end of a socket pair with a relay behind it, so that TLS inside it works as on any other connection.
// HTTP/2 flow control reaches through to both ends: a slow reader holds no more than a stream's window. Thread safety:
// Dial() from any coroutine; a tunnel lives on the executor of the coroutine that dialled it.
#pragma once

#include <memory>
#include <string>

#include "http/client.h"
#include "net/dialer.h"
#include "telemetry/metrics.h"

namespace keelson::http {

// konnectivity_network_proxy_client_*, as upstream's client library counts.
struct KonnectivityMetrics {
  explicit KonnectivityMetrics(telemetry::MetricsRegistry& registry);
  telemetry::CounterVec& packets;    // segment, packet_type
  telemetry::CounterVec& errors;     // segment, code, packet_type
  telemetry::CounterVec& failures;   // reason
  telemetry::GaugeVec& connections;  // status
};

struct KonnectivityDialerOptions {
  net::DialTarget proxy;                         // a Unix socket, or host and port
  std::shared_ptr<net::TLSClientContext> tls;    // null: plain text
  std::string server_name;                       // in the proxy's certificate; empty: proxy.host
  std::shared_ptr<KonnectivityMetrics> metrics;  // its registry must outlive every tunnel; null: nothing is counted
};

class KonnectivityDialer final : public net::Dialer {
 public:
  explicit KonnectivityDialer(KonnectivityDialerOptions options);
  // A server that cannot be reached is tried again until `deadline`, 30 s at most, as gRPC does. Errors read as
  // upstream's: `context deadline exceeded: connection error: desc = "transport: ..."` for the way to the server,
  // afterwards the agent's own words, `dial closed`, `tunnel closed` or `dial timeout, backstop`.
  Awaitable<net::Result<net::StreamSocket>> Dial(net::DialTarget target,
                                                 std::chrono::steady_clock::time_point deadline) override;

 private:
  struct Shared;
  std::shared_ptr<const Shared> shared_;
};

}  // namespace keelson::http
