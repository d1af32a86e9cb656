// Keeps priority and fairness up to date: flow schemas and levels from storage, borrowing every ten seconds, object
// counts for work estimates.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "async/io_pool.h"
#include "controlplane/informer.h"
#include "controlplane/resource_storage.h"
#include "endpoints/filters/priority_and_fairness.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

// Thread safety: the owner's.
class FlowControlController {
 public:
  struct Options {
    int server_concurrency_limit = 600;
    std::chrono::nanoseconds request_timeout = std::chrono::minutes(1);
    telemetry::MetricsRegistry* metrics = nullptr;  // must outlive this and every request
  };
  // REQUIRES: the flowcontrol resources are installed. `storage` must outlive this.
  FlowControlController(ResourceStorage& storage, const Options& options);
  ~FlowControlController();

  // The filter for the handler chain; may outlive this.
  endpoints::filters::PriorityAndFairness filter() const;
  // /debug/api_priority_and_fairness/dump_*.
  void InstallDebug(server::GenericAPIServer& server) const;

  void Start(async::IOPool& io);
  void Stop();
  bool HasSynced() const;
  // Every flowcontrol::Controller::kAdjustmentPeriod: borrowing, and the counts for work estimates.
  void Adjust();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace keelson::controlplane
