// Runs the controllers inside the server: while no kube-controller-manager holds its lease, and of several servers on
// one store in the one that leads. Thread safety: all members by the owner, not on the executor's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "http/message.h"
#include "registry/informer.h"
#include "request/user.h"
#include "telemetry/metrics.h"

namespace keelson::controllers {

class EmbeddedControllers {
 public:
  struct Options {
    asio::any_io_executor executor;             // runs one thing at a time, until Stop() has returned
    std::vector<std::string> controllers{"*"};  // --controllers
    bool sole_server = true;                    // no other server writes to the store: no lease needed
    std::string identity;                       // of this server among several
    std::string version;                        // v1.36.0, for the user agent
    std::function<http::Handler(request::User user)> in_process;  // answers as that user
    registry::SharedInformers::FindStore find_store;
    std::function<std::shared_ptr<registry::Store>(const std::string& group, const std::string& resource,
                                                   bool namespaced)>
        metadata_store;                             // of custom resources; see ControllerContext
    telemetry::MetricsRegistry* metrics = nullptr;  // must outlive this
    const base::Clock* clock = &base::Clock::Real();
    std::string root_ca;  // PEM; "": none is published
  };
  explicit EmbeddedControllers(Options options);
  ~EmbeddedControllers();  // Stop()

  void Start();
  // Ends what runs and waits for it.
  void Stop();
  void SetRootCA(std::string pem);

  // Health of each controller that may run here, for the server's health checks: what is wrong with it, "" for nothing
  // (also while it does not run). The functions may be called from any thread, and after this is gone.
  struct Health {
    std::string_view controller;
    std::function<std::string()> problem;
  };
  std::vector<Health> HealthChecks() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::controllers
