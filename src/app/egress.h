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
#include "net/dialer.h"
#include "telemetry/metrics.h"

namespace keelson::app {

class EgressSelector {
 public:
  // `path` "": everything is dialled directly. `io` and `metrics` must outlive the dialers. Blocks on the disk.
  static Outcome<EgressSelector, Error> Load(const std::string& path, async::IOPool& io,
                                             telemetry::MetricsRegistry& metrics);

  // For `cluster`, `controlplane` or `etcd`; null: directly.
  net::DialerPtr Lookup(std::string_view name) const;

 private:
  std::map<std::string, net::DialerPtr, std::less<>> dialers_;
};

}  // namespace keelson::app
