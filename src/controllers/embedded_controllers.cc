#include "controllers/embedded_controllers.h"

#include <boost/asio/post.hpp>
#include <future>
#include <map>
#include <optional>

#include "async/gate.h"
#include "controllers/controller.h"
#include "controllers/informers.h"
#include "controllers/lease.h"
#include "controllers/names.h"
#include "controllers/work_queue.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kControllerManagerLease = "kube-controller-manager";
constexpr std::string_view kOwnLease = "keelson-embedded-controllers";

request::User ServiceAccountUser(std::string_view name) {
  return {
      .name = "system:serviceaccount:kube-system:" + std::string(name),
      .groups = {"system:serviceaccounts", "system:serviceaccounts:kube-system", std::string(request::kAuthenticated)}};
}

}  // namespace

// Lives on the executor; shared with what is posted there.
struct EmbeddedControllers::Impl : std::enable_shared_from_this<EmbeddedControllers::Impl> {
  struct Running {
    std::string_view name;
    std::shared_ptr<Controller> controller;
  };

  explicit Impl(Options given)
      : options(std::move(given)), queue_metrics(*options.metrics), informers(options.executor, options.find_store) {
    for (const ControllerDescriptor& descriptor : Descriptors()) {
      if (IsEnabled(descriptor.name, options.controllers)) health[descriptor.name] = std::make_shared<WorkHealth>();
    }
    if (!options.root_ca.empty()) root_ca = std::make_shared<const std::string>(options.root_ca);
  }

  Options options;
  WorkQueueMetrics queue_metrics;
  async::Gate gate;
  InformerSet informers;
  std::map<std::string_view, std::shared_ptr<WorkHealth>> health;  // of the enabled controllers; never changes
  std::shared_ptr<const std::string> root_ca;
  std::unique_ptr<LeaseWatcher> manager_lease;
  std::unique_ptr<LeaderElector> elector;
  std::optional<bool> manager_runs;  // a kube-controller-manager holds its lease; none: not known yet
  bool leading = false;
  bool stopping = false;
  std::vector<Running> running;
  std::vector<std::future<void>> ending;  // watches, once stopping

  ClientPtr NewClient(request::User user) const {
    std::string agent = "kube-controller-manager/" + options.version + " (linux/amd64) keelson/" + user.name;
    return std::make_shared<const Client>(options.in_process(std::move(user)), std::move(agent));
  }

  void Begin() {
    const auto leases = options.find_store("coordination.k8s.io", "leases");
    if (!leases) {  // no leases served, so none can be held
      manager_runs = false;
      leading = true;
      return Decide();
    }
    leading = options.sole_server;
    // Posted: the watcher may report the first state before its construction has finished.
    manager_lease =
        std::make_unique<LeaseWatcher>(options.executor, leases, std::string(kControllerManagerLease), *options.clock,
                                       [weak = weak_from_this(), executor = options.executor](bool held) {
                                         asio::post(executor, [weak, held] {
                                           if (const auto self = weak.lock()) self->ManagerRuns(held);
                                         });
                                       });
    if (options.sole_server) return;
    elector = std::make_unique<LeaderElector>(LeaderElector::Options{
        .executor = options.executor,
        .client = NewClient({.name = "system:apiserver", .groups = {std::string(request::kSystemMasters)}}),
        .name = std::string(kOwnLease),
        .identity = options.identity,
        .clock = options.clock,
        .gate = &gate,
        .on_change = [weak = weak_from_this()](bool lead) {
          const auto self = weak.lock();
          if (!self) return;
          self->leading = lead;
          self->Decide();
        }});
  }

  void ManagerRuns(bool held) {
    if (stopping) return;
    if (held) {
      log::Info("Embedded controllers stand back: kube-controller-manager runs", "holder", manager_lease->holder());
    } else if (manager_runs) {
      log::Info("Embedded controllers take over: kube-controller-manager does not hold its lease any more");
    }
    manager_runs = held;
    Decide();
  }

  void Decide() {
    const bool run = !stopping && leading && manager_runs == false;
    if (run == !running.empty()) return;
    if (run) {
      StartAll();
    } else {
      StopAll();
    }
  }

  void StartAll() {
    for (const ControllerDescriptor& descriptor : Descriptors()) {
      const auto enabled = health.find(descriptor.name);
      if (enabled == health.end()) continue;
      ControllerContext context{.executor = options.executor,
                                .informers = &informers,
                                .metadata_store = options.metadata_store,
                                .client = NewClient(ServiceAccountUser(descriptor.service_account)),
                                .metrics = options.metrics,
                                .queue_metrics = &queue_metrics,
                                .gate = &gate,
                                .health = enabled->second,
                                .clock = options.clock,
                                .sole_server = options.sole_server,
                                .root_ca = root_ca};
      running.push_back({descriptor.name, descriptor.make(std::move(context))});
      running.back().controller->Start();
      log::Info("Started controller", "controller", descriptor.name);
    }
  }

  void StopAll() {
    informers.AbandonAll();
    for (auto& [name, controller] : running) {
      controller->Stop();
      log::Info("Stopped controller", "controller", name);
    }
    running.clear();
  }

  void End() {
    stopping = true;
    Decide();
    ending = informers.TakeEnding();
    if (manager_lease) ending.push_back(manager_lease->Stop());
    manager_lease.reset();
    elector.reset();
  }
};

EmbeddedControllers::EmbeddedControllers(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}

EmbeddedControllers::~EmbeddedControllers() { Stop(); }

void EmbeddedControllers::Start() {
  asio::post(impl_->options.executor, [impl = impl_] { impl->Begin(); });
}

void EmbeddedControllers::Stop() {
  auto ended = std::make_shared<std::promise<std::vector<std::future<void>>>>();
  auto future = ended->get_future();
  asio::post(impl_->options.executor, [impl = impl_, ended] {
    if (!impl->stopping) impl->End();
    ended->set_value(std::move(impl->ending));
  });
  for (const auto& watch : future.get()) {
    if (watch.valid()) watch.wait();
  }
  impl_->gate.Close();
}

void EmbeddedControllers::SetRootCA(std::string pem) {
  asio::post(impl_->options.executor, [impl = impl_, pem = std::move(pem)]() mutable {
    impl->root_ca = std::make_shared<const std::string>(std::move(pem));
    // The publisher takes it up when it starts anew; certificates' authorities change rarely.
    if (impl->running.empty() || impl->stopping) return;
    impl->StopAll();
    impl->Decide();
  });
}

std::vector<EmbeddedControllers::Health> EmbeddedControllers::HealthChecks() const {
  std::vector<Health> checks;
  for (const auto& [name, health] : impl_->health) {
    checks.push_back({name, [health, clock = impl_->options.clock] { return health->Problem(clock->Monotonic()); }});
  }
  return checks;
}

}  // namespace keelson::controllers
