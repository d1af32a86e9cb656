// The egress selector: how connections to the cluster, to the control plane and to etcd are dialled
// (--egress-selector-config-file).
// Thread safety: const members from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "app/error.h"
#include "async/io_pool.h"
#include "net/dial_forwarder.h"
#include "net/dialer.h"
#include "telemetry/metrics.h"

namespace keelson::app {

class EgressSelector {
 public:
  // `path` "": everything is dialled directly. `io` and `metrics` must outlive the dialers and forwarders. Blocks on
  // the disk.
  static Outcome<EgressSelector, Error> Load(const std::string& path, async::IOPool& io,
                                             telemetry::MetricsRegistry& metrics);

  // For `cluster`, `controlplane` or `etcd`; null: directly.
  net::DialerPtr Lookup(std::string_view name) const;
  // A socket of this process that forwards to a target through the egress proxy for etcd; null if etcd is reached
  // directly. It runs on its own threads, because the store outlives the others.
  Outcome<std::unique_ptr<net::DialForwarder>, Error> ForwardToEtcd(net::DialTarget target) const;

 private:
  std::shared_ptr<async::IOPool> etcd_io_;  // with a proxy for etcd
  std::map<std::string, net::DialerPtr, std::less<>> dialers_;
};

}  // namespace keelson::app
