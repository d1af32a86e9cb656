#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/commands/doctor_checks.h"
#include "app/commands/progress.h"
#include "app/egress.h"
#include "app/stores.h"
#include "async/io_pool.h"
#include "kv/etcd/etcd.h"
#include "telemetry/metrics.h"

namespace keelson::app {
namespace {

constexpr std::chrono::milliseconds kDialTimeout{3'000};
constexpr std::chrono::milliseconds kSlow{100};

void CheckServer(const EtcdOptions& options, const EgressSelector& egress, const std::string& server,
                 Findings& findings) {
  // Both outlive the store, which waits at its end for the threads that resume our coroutine on `io`.
  async::IOPool io(1);
  std::vector<std::unique_ptr<net::DialForwarder>> forwarders;
  kv::etcd::Options etcd;
  etcd.endpoints = {server};
  etcd.ca_file = options.ca_file;
  etcd.cert_file = options.cert_file;
  etcd.key_file = options.key_file;
  etcd.dial_timeout = kDialTimeout;
  etcd.route = RouteToEtcd(egress, forwarders);
  auto store = kv::etcd::Open(std::move(etcd));
  if (!store.ok()) {
    findings.Fail("etcd", store.error().message, "start it, or correct --etcd-servers and the --etcd-*file flags");
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  auto asking = (*store)->Status();
  const auto status = asio::co_spawn(io.executor(0), std::move(asking), asio::use_future).get();
  const auto took = std::chrono::steady_clock::now() - begin;
  if (!status.ok()) {
    findings.Fail("etcd", server + ": " + status.error().message, "look at its log");
    return;
  }
  const std::string text = server + " answers in " +
                           std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()) +
                           " ms, its database has " + HumanBytes(static_cast<std::uint64_t>(status->db_size));
  if (took > kSlow) {
    findings.Warn("etcd", text, "every write waits for it");
  } else {
    findings.OK("etcd", text);
  }
}

}  // namespace

void CheckEtcd(const ServerRunOptions& options, Findings& findings) {
  async::IOPool io(1);
  telemetry::MetricsRegistry metrics;
  auto egress = EgressSelector::Load(options.egress_selector_config_file, io, metrics);
  if (!egress.ok()) {
    findings.Fail("egress selector", std::string(egress.error().message()), "correct --egress-selector-config-file");
    return;
  }
  for (const std::string& server : options.etcd.servers) CheckServer(options.etcd, *egress, server, findings);
}

}  // namespace keelson::app
