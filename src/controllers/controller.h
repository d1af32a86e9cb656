// The interface of a controller and the dependencies it gets. Thread safety: a controller lives on its executor, which
// runs one thing at a time; none of its members may be called from elsewhere.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "async/gate.h"
#include "base/clock.h"
#include "controllers/client.h"
#include "controllers/informers.h"
#include "controllers/work_queue.h"
#include "telemetry/metrics.h"

namespace keelson::controllers {

// All pointers outlive the controller and everything it has started.
struct ControllerContext {
  asio::any_io_executor executor;
  InformerSet* informers = nullptr;
  // A Store for reading metadata of custom resources: made for the caller, without a cache, without their schema.
  std::function<std::shared_ptr<registry::Store>(const std::string& group, const std::string& resource,
                                                 bool namespaced)>
      metadata_store;
  ClientPtr client;  // as the controller's service account
  telemetry::MetricsRegistry* metrics = nullptr;
  WorkQueueMetrics* queue_metrics = nullptr;
  async::Gate* gate = nullptr;  // entered by whatever must have ended before the server goes
  std::shared_ptr<WorkHealth> health;
  const base::Clock* clock = &base::Clock::Real();
  bool sole_server = true;                     // no other server writes to the store
  std::shared_ptr<const std::string> root_ca;  // PEM; null: the certificates' authority is not known

  WorkQueue::Options QueueOptions(std::string name, std::size_t workers) const {
    return {.name = std::move(name),
            .workers = workers,
            .clock = clock,
            .metrics = queue_metrics,
            .health = health,
            .gate = gate};
  }
};

class Controller {
 public:
  virtual ~Controller() = default;
  // Begins to watch and to work.
  virtual void Start() = 0;
  // Starts no new work. Work in progress runs to its end and holds what it needs.
  virtual void Stop() = 0;
};

struct ControllerDescriptor {
  std::string_view name;             // as in --controllers
  std::string_view service_account;  // in kube-system; its role is system:controller:<service_account>
  std::shared_ptr<Controller> (*make)(ControllerContext context);
};
// Every controller there is, in the order they are started.
std::span<const ControllerDescriptor> Descriptors();

}  // namespace keelson::controllers
