#include "controllers/leader_election.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "async/gate.h"
#include "base/url.h"
#include "controllers/election.h"
#include "controllers/informers.h"
#include "controllers/lease.h"
#include "object/json_text.h"
#include "registry/store.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kName = "leader-election-controller";  // of the lease and of the work queue
constexpr std::string_view kGroup = "coordination.k8s.io";
constexpr std::string_view kLeaseVersion = "coordination.k8s.io/v1", kCandidateVersion = "coordination.k8s.io/v1beta1";

std::string LeasePath(const std::string& name_space, const std::string& name) {
  return APIPath(kLeaseVersion, name_space, name.empty() ? "leases" : "leases/" + base::PathEscape(name));
}
std::string CandidatePath(const std::string& name_space, const std::string& name) {
  return APIPath(kCandidateVersion, name_space, "leasecandidates/" + base::PathEscape(name));
}

// A new Lease as the election leaves it.
std::string NewLease(const std::string& name_space, const std::string& name, const ElectionStep& elected,
                     ElectionTime now) {
  base::Arena arena;
  Value lease = Value::Map(arena);
  lease.Set(arena, "kind", "Lease");
  lease.Set(arena, "apiVersion", kLeaseVersion);
  Value metadata = lease.EnsureMap(arena, "metadata");
  metadata.Set(arena, "name", std::string_view(name));
  metadata.Set(arena, "namespace", std::string_view(name_space));
  Value spec = lease.EnsureMap(arena, "spec");
  if (!elected.holder.empty()) spec.Set(arena, "holderIdentity", std::string_view(elected.holder));
  spec.Set(arena, "leaseDurationSeconds", Value(kElectedLeaseDurationSeconds));
  spec.Set(arena, "renewTime", Value::String(arena, FormatMicroTime(now)));
  spec.Set(arena, "strategy", std::string_view(elected.strategy));
  return object::ToJSON(lease);
}

class LeaderElectionController final : public Controller,
                                       public std::enable_shared_from_this<LeaderElectionController> {
 public:
  explicit LeaderElectionController(ControllerContext context) : context_(std::move(context)) {}

  void Start() override {
    queue_ = WorkQueue::New(context_.executor, context_.QueueOptions(std::string(kName), 1),
                            [weak = weak_from_this()](std::string key) { return Sync(weak.lock(), std::move(key)); });
    leases_ = context_.informers->Find(kGroup, "leases");
    candidates_ = context_.informers->Find(kGroup, "leasecandidates");
    if (!leases_ || !candidates_) return;
    queue_->Open();
    Follow("leases",
           [](const registry::Informer::Change& change) { return std::string(change.object->attributes().name); });
    Follow("leasecandidates", [](const registry::Informer::Change& change) {
      const LeaseCandidate candidate = LeaseCandidate::FromValue(change.value);
      // Asked, not answered yet: the election is under way.
      return candidate.PingPending() ? std::string() : candidate.lease_name;
    });
  }

  void Stop() override { queue_->ShutDown(); }

 private:
  // The lease whose election a change may move; "": none.
  using LeaseOf = std::string (*)(const registry::Informer::Change&);

  void Follow(std::string_view resource, LeaseOf lease_of) {
    context_.informers->AddHandler(kGroup, resource, [weak = weak_from_this(), lease_of](auto& changes) {
      const auto self = weak.lock();
      if (!self) return;
      for (const registry::Informer::Change& change : changes) {
        const std::string lease = lease_of(change);
        if (lease.empty()) continue;
        self->queue_->Add(std::string(change.object->attributes().name_space) + "/" + lease);
      }
    });
  }

  static Awaitable<WorkQueue::Result> Sync(std::shared_ptr<LeaderElectionController> self, std::string key) {
    if (!self) co_return WorkQueue::Result::Done();
    const auto slash = key.find('/');
    const auto requeue = co_await self->Reconcile(key.substr(0, slash), key.substr(slash + 1));
    co_return requeue ? WorkQueue::Result::After(*requeue) : WorkQueue::Result::Done();
  }

  using Requeue = std::optional<std::chrono::seconds>;
  struct Listed {
    LeaseCandidate candidate;
    storage::ObjectPtr object;
  };

  static Requeue Fail(std::string_view name_space, std::string_view name, std::string_view error, Requeue requeue) {
    log::Error("Failed to reconcile election step", "namespace", name_space, "name", name, "err", error);
    return requeue;
  }

  // One step of an election. Nothing is remembered between two of them: the objects tell how far it is.
  Awaitable<Requeue> Reconcile(std::string name_space, std::string name) {
    auto list = co_await candidates_->List(name_space, {.resource_version = "0"});
    if (!list.ok()) co_return Fail(name_space, name, list.error().message(), kElectionRequeue);
    const ElectionTime now = context_.clock->Now();
    std::vector<Listed> admissible;
    for (const storage::ObjectPtr& item : list->items) {
      base::Arena arena;
      auto value = candidates_->Decode(arena, item);
      if (!value.ok()) continue;
      LeaseCandidate candidate = LeaseCandidate::FromValue(*value);
      if (candidate.lease_name != name || candidate.ExpiredAt(now)) continue;
      admissible.push_back({std::move(candidate), item});
    }
    CandidateList candidates;
    for (const Listed& listed : admissible) candidates.push_back(&listed.candidate);
    std::optional<ElectedLease> lease;
    if (auto got = co_await leases_->Get(name_space, name, "0"); got.ok()) {
      base::Arena arena;
      auto value = leases_->Decode(arena, *got);
      if (value.ok()) lease = ElectedLease::FromValue(*value);
    } else if (got.error().reason() != meta::StatusReason::kNotFound) {
      co_return Fail(name_space, name, "error reading lease: " + std::string(got.error().message()), kElectionRequeue);
    }
    const ElectionStep step = PlanElection(candidates, lease, now);
    if (!step.error.empty()) co_return Fail(name_space, name, step.error, step.requeue);
    if (step.action == ElectionStep::Action::kElect) co_return co_await Elect(name_space, name, step);
    for (const LeaseCandidate* candidate : step.ping) {
      const auto found = std::ranges::find(admissible, candidate, [](const Listed& one) { return &one.candidate; });
      co_await Ping(name_space, found->object, now);
    }
    co_return step.requeue;
  }

  // Asks a candidate whether it is alive: sets its pingTime.
  Awaitable<void> Ping(std::string name_space, storage::ObjectPtr listed, ElectionTime now) {
    base::Arena arena;
    auto object = candidates_->Decode(arena, listed);
    if (!object.ok()) co_return;
    object->Set(arena, "kind", "LeaseCandidate");
    object->Set(arena, "apiVersion", kCandidateVersion);
    object->EnsureMap(arena, "spec").Set(arena, "pingTime", Value::String(arena, FormatMicroTime(now)));
    std::string path = CandidatePath(name_space, std::string(listed->attributes().name));
    const auto written =
        co_await context_.client->Do({.method = "PUT", .target = std::move(path), .body = object::ToJSON(*object)});
    if (!written.ok()) Fail(name_space, listed->attributes().name, written.error().message(), kElectionRequeue);
  }

  // Writes the result: a new lease, or the existing one as far as its holder may be changed.
  Awaitable<Requeue> Elect(std::string name_space, std::string name, ElectionStep elected) {
    const auto created =
        co_await context_.client->Do({.method = "POST",
                                      .target = LeasePath(name_space, ""),
                                      .body = NewLease(name_space, name, elected, context_.clock->Now())});
    if (created.ok()) {
      log::Info("Created lease", "namespace", name_space, "name", name, "holder", elected.holder);
      co_return kElectionRequeue;
    }
    if (created.error().reason() != meta::StatusReason::kAlreadyExists)
      co_return Fail(name_space, name, created.error().message(), std::nullopt);
    auto got = co_await context_.client->Do({.method = "GET", .target = LeasePath(name_space, name)});
    if (!got.ok()) co_return Fail(name_space, name, got.error().message(), std::nullopt);
    base::Arena arena;
    const auto lease = object::ParseJSON(arena, *got);
    // Looked at again even when nothing changes: to see when it expires.
    if (!lease || !ApplyElection(arena, elected, context_.clock->Now(), *lease)) co_return kElectionRequeue;
    const auto written = co_await context_.client->Do(
        {.method = "PUT", .target = LeasePath(name_space, name), .body = object::ToJSON(*lease)});
    if (!written.ok()) co_return Fail(name_space, name, written.error().message(), std::nullopt);
    log::Info("Updated lease after an election", "namespace", name_space, "name", name, "elected", elected.holder,
              "strategy", elected.strategy);
    co_return kElectionRequeue;
  }

  const ControllerContext context_;
  std::shared_ptr<WorkQueue> queue_;
  std::shared_ptr<registry::Store> leases_, candidates_;
};

class LeaseCandidateCollector final : public Controller, public std::enable_shared_from_this<LeaseCandidateCollector> {
 public:
  LeaseCandidateCollector(ControllerContext context, std::chrono::nanoseconds period)
      : context_(std::move(context)), period_(period) {}

  void Start() override {
    auto options = context_.QueueOptions("", 1);
    options.metrics = nullptr;  // upstream has no queue here
    timer_ = WorkQueue::New(context_.executor, std::move(options),
                            [weak = weak_from_this()](std::string) { return Collect(weak.lock()); });
    timer_->Open();
    candidates_ = context_.informers->Find(kGroup, "leasecandidates");
    if (candidates_) timer_->Add("collect");
  }

  void Stop() override { timer_->ShutDown(); }

 private:
  static Awaitable<WorkQueue::Result> Collect(std::shared_ptr<LeaseCandidateCollector> self) {
    if (!self) co_return WorkQueue::Result::Done();
    auto list = co_await self->candidates_->List("", {.resource_version = "0"});
    if (!list.ok()) {
      log::Error("Error while listing lease candidates", "err", list.error());
      co_return WorkQueue::Result::After(self->period_);
    }
    for (const storage::ObjectPtr& item : list->items) {
      base::Arena arena;
      auto value = self->candidates_->Decode(arena, item);
      if (!value.ok() || !LeaseCandidate::FromValue(*value).ExpiredAt(self->context_.clock->Now())) continue;
      const storage::Attributes& attributes = item->attributes();
      co_await self->CollectOne(CandidatePath(std::string(attributes.name_space), std::string(attributes.name)));
    }
    co_return WorkQueue::Result::After(self->period_);
  }

  // The cache may be behind: the candidate is read again first.
  Awaitable<void> CollectOne(std::string path) {
    auto got = co_await context_.client->Do({.method = "GET", .target = path});
    if (!got.ok()) {
      log::Error("Error getting lc", "err", got.error());
      co_return;
    }
    base::Arena arena;
    const auto value = object::ParseJSON(arena, *got);
    if (!value || !LeaseCandidate::FromValue(*value).ExpiredAt(context_.clock->Now())) co_return;
    const auto deleted = co_await context_.client->Do({.method = "DELETE", .target = path});
    if (!deleted.ok() && deleted.error().reason() != meta::StatusReason::kNotFound)
      log::Error("Error deleting lease", "err", deleted.error());
  }

  const ControllerContext context_;
  const std::chrono::nanoseconds period_;
  std::shared_ptr<WorkQueue> timer_;
  std::shared_ptr<registry::Store> candidates_;
};

}  // namespace

std::shared_ptr<Controller> NewLeaderElectionController(ControllerContext context) {
  return std::make_shared<LeaderElectionController>(std::move(context));
}

std::shared_ptr<Controller> NewLeaseCandidateCollector(ControllerContext context, std::chrono::nanoseconds period) {
  return std::make_shared<LeaseCandidateCollector>(std::move(context), period);
}

// Lives on the executor; shared with what is posted there.
struct CoordinatedLeaderElection::Impl : std::enable_shared_from_this<CoordinatedLeaderElection::Impl> {
  explicit Impl(Options given)
      : options(std::move(given)), queue_metrics(*options.metrics), informers(options.executor, options.find_store) {}

  const Options options;
  WorkQueueMetrics queue_metrics;
  async::Gate gate;
  InformerSet informers;
  ClientPtr client;
  std::unique_ptr<LeaderElector> elector;
  std::vector<std::shared_ptr<Controller>> running;
  bool stopping = false;
  std::vector<std::future<void>> ending;  // watches, once stopping

  void Begin() {
    if (stopping) return;
    client = std::make_shared<const Client>(
        options.in_process({.name = "system:apiserver", .groups = {std::string(request::kSystemMasters)}}),
        "kube-apiserver/" + options.version + " (linux/amd64) keelson/" + std::string(kName));
    elector = std::make_unique<LeaderElector>(LeaderElector::Options{.executor = options.executor,
                                                                     .client = client,
                                                                     .name = std::string(kName),
                                                                     .identity = options.identity,
                                                                     .clock = options.clock,
                                                                     .gate = &gate,
                                                                     .lease_duration = options.lease_duration,
                                                                     .renew_deadline = options.renew_deadline,
                                                                     .retry_period = options.retry_period,
                                                                     .on_change = [weak = weak_from_this()](bool lead) {
                                                                       if (const auto self = weak.lock())
                                                                         self->Lead(lead);
                                                                     }});
  }

  void Lead(bool lead) {
    if (stopping || lead == !running.empty()) return;
    if (!lead) return StopAll();
    const ControllerContext context{.executor = options.executor,
                                    .informers = &informers,
                                    .client = client,
                                    .metrics = options.metrics,
                                    .queue_metrics = &queue_metrics,
                                    .gate = &gate,
                                    .health = nullptr,
                                    .clock = options.clock};
    running = {NewLeaderElectionController(context), NewLeaseCandidateCollector(context, options.collect_period)};
    for (const auto& controller : running) controller->Start();
    log::Info("Started controller", "controller", kName);
  }

  void StopAll() {
    informers.AbandonAll();
    for (const auto& controller : running) controller->Stop();
    if (!running.empty()) log::Info("Stopped controller", "controller", kName);
    running.clear();
  }

  void End() {
    stopping = true;
    StopAll();
    elector.reset();
    ending = informers.TakeEnding();
  }
};

CoordinatedLeaderElection::CoordinatedLeaderElection(Options options)
    : impl_(std::make_shared<Impl>(std::move(options))) {}

CoordinatedLeaderElection::~CoordinatedLeaderElection() { Stop(); }

void CoordinatedLeaderElection::Start() {
  asio::post(impl_->options.executor, [impl = impl_] { impl->Begin(); });
}

void CoordinatedLeaderElection::Stop() {
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

}  // namespace keelson::controllers
