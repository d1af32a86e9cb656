// Coordinated leader election (the gate CoordinatedLeaderElection): the server elects who holds a lease among the
// LeaseCandidates that name it, and deletes candidates that have not renewed themselves. Upstream's
// pkg/controlplane/controller/leaderelection.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "controllers/controller.h"
#include "http/message.h"
#include "registry/informer.h"
#include "request/user.h"
#include "telemetry/metrics.h"

namespace keelson::controllers {

// Elects. The context's client may read and write leases and lease candidates.
std::shared_ptr<Controller> NewLeaderElectionController(ControllerContext context);
// Deletes expired candidates, at the start and then every `period`.
std::shared_ptr<Controller> NewLeaseCandidateCollector(ControllerContext context, std::chrono::nanoseconds period);

// Runs both in one of the servers on a store: the one that holds the lease kube-system/leader-election-controller.
// Thread safety: all members by the owner, not on the executor's thread.
class CoordinatedLeaderElection {
 public:
  struct Options {
    asio::any_io_executor executor;                               // runs one thing at a time, until Stop() has returned
    std::string identity;                                         // of this server among several
    std::string version;                                          // v1.36.0, for the user agent
    std::function<http::Handler(request::User user)> in_process;  // answers as that user
    registry::SharedInformers::FindStore find_store;
    telemetry::MetricsRegistry* metrics = nullptr;  // must outlive this
    const base::Clock* clock = &base::Clock::Real();
    std::chrono::nanoseconds lease_duration, renew_deadline, retry_period;  // --coordinated-leadership-*
    std::chrono::nanoseconds collect_period;                                // --lease-candidate-gc-period
  };
  explicit CoordinatedLeaderElection(Options options);
  ~CoordinatedLeaderElection();  // Stop()

  void Start();
  // Gives the lease up, ends what runs and waits for it.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::controllers
