#include "aggregator/availability.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <map>
#include <mutex>

#include "async/deadlines.h"
#include "async/event.h"
#include "async/gate.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::aggregator {
namespace {

constexpr std::chrono::milliseconds kBackoffFirst{5};
constexpr std::chrono::milliseconds kBackoffMax{30'000};
constexpr std::chrono::seconds kProbeTimeout{5};
constexpr std::chrono::seconds kAttemptTimeout{6};

const Condition kLocal{"True", "Local", "Local APIServices are always available"};
const Condition kPassed{"True", "Passed", "all checks passed"};

// One round of probes: the first success decides, or the last failure.
struct Round {
  std::mutex mutex;
  int left = 0;
  bool success = false;
  bool decided = false;
  std::string error;
  async::Event done;

  void Report(std::string text) {
    {
      std::lock_guard lock(mutex);
      --left;
      if (decided) return;
      if (text.empty()) success = true;
      error = std::move(text);
      decided = success || left == 0;
      if (!decided) return;
    }
    done.Set();
  }
};

Awaitable<void> Probe(Backends* backends, BackendPtr backend, std::shared_ptr<Round> round) {
  auto location = backends->Resolve(*backend->service);
  if (!location.ok()) {
    round->Report(location.error());
    co_return;
  }
  const std::string path = backend->service->Path();
  const std::string url = location->scheme + "://" + location->Authority() + path;
  auto reported = std::make_shared<std::atomic<bool>>(false);
  const auto late =
      async::Deadlines::Global().Add(std::chrono::steady_clock::now() + kAttemptTimeout, [round, reported, url] {
        if (!reported->exchange(true)) round->Report("timed out waiting for " + url);
      });
  Fetch fetch;
  fetch.path = path;
  fetch.headers.Add("User-Agent", "Go-http-client/1.1");
  fetch.user = "system:kube-aggregator";
  fetch.groups = {"system:masters"};
  fetch.timeout = kProbeTimeout;
  auto fetched = co_await backends->DoAt(backend, *std::move(location), std::move(fetch));
  if (reported->exchange(true)) co_return;
  std::string error;
  if (!fetched.ok()) {
    error = fetched.error();
  } else if (fetched->status < 200 || fetched->status >= 300) {
    error = "bad status from " + url + ": " + std::to_string(fetched->status);
  }
  round->Report(error.empty() ? error : "failing or missing response from " + url + ": " + error);
}

}  // namespace

Condition CheckService(const APIService& service, const ServiceTable& services) {
  const std::string where = "service/" + service.service_name + " in " + base::GoQuote(service.service_namespace);
  const auto found = services.Find(service.service_namespace, service.service_name);
  if (!found) return {"False", "ServiceNotFound", where + " is not present"};
  if (found->type != "ClusterIP") return {};
  const auto port = std::ranges::find(found->ports, service.port, &ServiceTable::Port::port);
  if (port == found->ports.end())
    return {"False", "ServicePortError", where + " is not listening on port " + std::to_string(service.port)};
  const auto endpoints = services.EndpointsOf(service.service_namespace, service.service_name);
  if (!endpoints.any_slice) return {"False", "EndpointsNotFound", "cannot find endpointslices for " + where};
  if (std::ranges::find(endpoints.ports_with_addresses, port->name) == endpoints.ports_with_addresses.end()) {
    return {"False", "MissingEndpoints",
            "endpointslices for " + where + " have no addresses with port name " + base::GoQuote(port->name)};
  }
  return {};
}

struct Availability::Impl : std::enable_shared_from_this<Impl> {
  struct Entry {
    APIServicePtr service;
    bool queued = false;
    bool running = false;
    bool again = false;  // changed while it was being checked
    int failures = 0;
    async::Deadlines::Entry retry;
  };

  AvailabilityOptions options;
  async::Gate gate;
  std::mutex mutex;
  bool stopped = false;
  int workers = 0;
  std::map<std::string, Entry> entries;
  std::deque<std::string> queue;
  telemetry::GaugeVec* unavailable = nullptr;
  telemetry::CounterVec* transitions = nullptr;

  // REQUIRES: mutex held.
  void Enqueue(const std::string& name) {
    const auto found = entries.find(name);
    if (stopped || found == entries.end() || found->second.queued) return;
    if (found->second.running) {
      found->second.again = true;
      return;
    }
    found->second.queued = true;
    queue.push_back(name);
    Dispatch();
  }

  // REQUIRES: mutex held.
  void Dispatch() {
    while (workers < kWorkers && !queue.empty()) {
      const std::string name = std::move(queue.front());
      queue.pop_front();
      const auto found = entries.find(name);
      if (found == entries.end()) continue;
      auto entry = gate.Enter();
      if (!entry) return;
      found->second.queued = false;
      found->second.running = true;
      ++workers;
      asio::co_spawn(options.io->Next(), Check(shared_from_this(), found->second.service, *std::move(entry)),
                     asio::detached);
    }
  }

  void Finish(const std::string& name, bool failed) {
    std::lock_guard lock(mutex);
    --workers;
    if (const auto found = entries.find(name); found != entries.end()) {
      Entry& entry = found->second;
      entry.running = false;
      entry.failures = failed ? std::min(entry.failures + 1, 20) : 0;
      if (std::exchange(entry.again, false)) {
        Enqueue(name);
      } else if (failed) {
        const std::chrono::milliseconds grown(kBackoffFirst.count() << std::min(entry.failures - 1, 15));
        const auto wait = std::min(kBackoffMax, grown);
        entry.retry =
            async::Deadlines::Global().Add(std::chrono::steady_clock::now() + wait, [weak = weak_from_this(), name] {
              auto self = weak.lock();
              if (self == nullptr) return;
              std::lock_guard inner(self->mutex);
              self->Enqueue(name);
            });
      }
    }
    Dispatch();
  }

  static Awaitable<Condition> Decide(std::shared_ptr<Impl> self, APIServicePtr service) {
    if (service->local) co_return kLocal;
    Condition condition = CheckService(*service, *self->options.services);
    if (!condition.reason.empty()) co_return condition;
    const auto backend = self->options.backends->Get(service);
    auto round = std::make_shared<Round>();
    round->left = kAttempts;
    for (int i = 0; i < kAttempts; ++i) {
      asio::co_spawn(self->options.io->Next(), Probe(self->options.backends, backend, round), asio::detached);
    }
    co_await round->done.Wait();
    std::lock_guard lock(round->mutex);
    if (round->success) co_return kPassed;
    co_return Condition{"False", "FailedDiscoveryCheck", round->error};
  }

  static Awaitable<void> Check(std::shared_ptr<Impl> self, APIServicePtr service, async::Gate::Entry entry) {
    // co_spawn may run a coroutine's beginning at once, and the caller holds the lock.
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    const Condition condition = co_await Decide(self, service);
    if (condition != service->available) {
      self->Count(*service, condition);
      co_await self->options.write(service->name, condition);
    }
    self->unavailable->With({service->name}).Set(condition.status == "True" ? 0 : 1);
    self->Finish(service->name, condition.reason == "FailedDiscoveryCheck");
    (void)entry;
  }

  void Count(const APIService& service, const Condition& condition) {
    if (service.available.status != condition.status && condition.status != "True")
      transitions->With({service.name, condition.reason}).Add(1);
  }
};

Availability::Availability(AvailabilityOptions options) : impl_(std::make_shared<Impl>()) {
  impl_->options = std::move(options);
  impl_->unavailable = &impl_->options.metrics->Gauges(
      {.name = "aggregator_unavailable_apiservice",
       .help = "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
       .stability = telemetry::Stability::kAlpha,
       .labels = {"name"}});
  impl_->transitions = &impl_->options.metrics->Counters(
      {.name = "aggregator_unavailable_apiservice_total",
       .help = "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
       .stability = telemetry::Stability::kAlpha,
       .labels = {"name", "reason"}});
}

Availability::~Availability() { Stop(); }

void Availability::OnAPIService(APIServicePtr service) {
  std::lock_guard lock(impl_->mutex);
  auto& entry = impl_->entries[service->name];
  bool settled = service->local && service->available == kLocal;
  if (entry.service != nullptr && !service->local) {  // our own status write does not trigger another check
    APIService before = *entry.service;
    before.available = service->available;
    settled = before == *service;
  }
  entry.service = std::move(service);
  if (!settled) impl_->Enqueue(entry.service->name);
}

void Availability::OnAPIServiceDeleted(const std::string& name) {
  std::lock_guard lock(impl_->mutex);
  impl_->entries.erase(name);
  impl_->unavailable->With({name}).Set(0);
}

void Availability::OnServiceChanged(const std::string& name_space, const std::string& name) {
  std::lock_guard lock(impl_->mutex);
  for (const auto& [key, entry] : impl_->entries) {
    if (!entry.service->local && entry.service->service_namespace == name_space && entry.service->service_name == name)
      impl_->Enqueue(key);
  }
}

void Availability::CheckAll() {
  std::lock_guard lock(impl_->mutex);
  for (const auto& [name, entry] : impl_->entries) {
    if (!entry.service->local) impl_->Enqueue(name);
  }
}

void Availability::Stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    impl_->queue.clear();
  }
  impl_->gate.Close();
}

}  // namespace keelson::aggregator
