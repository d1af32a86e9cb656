// Keeps the condition Available of remote APIServices true: service, port, endpoints, then the server's own discovery
// (upstream's remote and local available controllers). Checks on every change, again after a failure (5 ms doubling to
// 30 s), and all of them every 30 s; at most kWorkers at once.
// Thread safety: all members from any thread; Stop() blocks until no check runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "aggregator/api_service.h"
#include "aggregator/backend.h"
#include "aggregator/service_table.h"
#include "telemetry/metrics.h"

namespace keelson::aggregator {

struct AvailabilityOptions {
  async::IOPool* io = nullptr;  // these four must outlive the controller
  ServiceTable* services = nullptr;
  Backends* backends = nullptr;
  telemetry::MetricsRegistry* metrics = nullptr;
  // Writes the condition where it is another one than before.
  std::function<Awaitable<void>(std::string name, Condition condition)> write;
};

class Availability {
 public:
  static constexpr int kWorkers = 5;
  static constexpr int kAttempts = 5;

  explicit Availability(AvailabilityOptions options);
  ~Availability();

  void OnAPIService(APIServicePtr service);
  void OnAPIServiceDeleted(const std::string& name);
  void OnServiceChanged(const std::string& name_space, const std::string& name);
  void CheckAll();
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Availability as far as services and endpoints determine it; "" in `reason` if a probe must decide. For Availability
// and its test.
Condition CheckService(const APIService& service, const ServiceTable& services);

}  // namespace keelson::aggregator
