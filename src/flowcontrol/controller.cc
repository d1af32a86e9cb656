#include "flowcontrol/controller.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "async/event.h"
#include "base/atomic_ref.h"
#include "flowcontrol/dropped_requests.h"
#include "telemetry/log.h"

namespace keelson::flowcontrol {

class Level {
 public:
  Level(const base::Clock& clock, const PriorityLevelSpec& spec, MetricFamilies* families)
      : name(spec.name),
        metrics(families == nullptr ? nullptr : std::make_unique<LevelMetrics>(*families, spec.name)),
        queues(clock, spec.queuing, 0, metrics.get()) {}

  const std::string name;
  const std::unique_ptr<LevelMetrics> metrics;
  QueueSet queues;
  DroppedRequests dropped;
  // Below: guarded by the controller's mutex.
  PriorityLevelSpec spec;
  BorrowingLevel borrowing;
  bool quiescing = false;
};

class ReadVsWrite;

// Outlives the controller where seats do.
struct SharedState {
  std::shared_ptr<SeatTimer> timer;
  std::shared_ptr<ReadVsWrite> use;  // null without metrics
  const base::Clock* clock = nullptr;
};

struct ClassifiedFlow {
  FlowSchemaSpec schema;
  std::shared_ptr<const Flow> flow;
  std::shared_ptr<Level> level;
  std::string level_uid;
  bool exempt = false;
  int queues = 0;
  std::uint64_t max_seats = 0;
  std::shared_ptr<const SharedState> shared;
};

// Requests that change something and requests that read, waiting and executing, of all levels.
class ReadVsWrite {
 public:
  ReadVsWrite(MetricFamilies& families, const base::Clock& clock)
      : clock_(clock),
        waiting_readonly_(families.read_vs_write.With({"waiting", "readOnly"}), clock.Monotonic()),
        waiting_mutating_(families.read_vs_write.With({"waiting", "mutating"}), clock.Monotonic()),
        executing_readonly_(families.read_vs_write.With({"executing", "readOnly"}), clock.Monotonic()),
        executing_mutating_(families.read_vs_write.With({"executing", "mutating"}), clock.Monotonic()) {}

  void Waiting(bool mutating, int delta) { (mutating ? waiting_mutating_ : waiting_readonly_).Add(Now(), delta); }
  void Executing(base::Clock::SteadyTime now, bool mutating, int delta) {
    (mutating ? executing_mutating_ : executing_readonly_).Add(now, delta);
  }
  void SetLimits(int waiting, int executing) {
    for (auto* ratio : {&waiting_readonly_, &waiting_mutating_}) ratio->ratio().SetDenominator(Now(), waiting);
    for (auto* ratio : {&executing_readonly_, &executing_mutating_}) ratio->ratio().SetDenominator(Now(), executing);
  }
  void Flush() {
    for (auto* ratio : {&waiting_readonly_, &waiting_mutating_, &executing_readonly_, &executing_mutating_})
      ratio->ratio().Flush(Now());
  }

 private:
  base::Clock::SteadyTime Now() const { return clock_.Monotonic(); }

  const base::Clock& clock_;
  CountedTimingRatio waiting_readonly_, waiting_mutating_, executing_readonly_, executing_mutating_;
};

namespace {

struct Snapshot : base::RefCounted {
  std::vector<std::shared_ptr<const ClassifiedFlow>> flows;  // in matching order
  std::shared_ptr<const ClassifiedFlow> catch_all;
};

}  // namespace

// One timer for all seats that linger: the earliest is due first.
class SeatTimer : public std::enable_shared_from_this<SeatTimer> {
 public:
  SeatTimer(const base::Clock& clock, async::Deadlines& deadlines) : clock_(clock), deadlines_(deadlines) {}

  void ReleaseAfter(std::chrono::nanoseconds time, std::shared_ptr<Level> level, QueueSet::RequestPtr request) {
    const auto at = clock_.Monotonic() + std::chrono::duration_cast<base::Clock::SteadyTime::duration>(time);
    std::lock_guard lock(mutex_);
    const bool first = held_.empty() || at < held_.begin()->first;
    held_.emplace(at, Held{std::move(level), std::move(request)});
    if (first) Arm();
  }

 private:
  struct Held {
    std::shared_ptr<Level> level;
    QueueSet::RequestPtr request;
  };
  void Arm() {
    entry_ = deadlines_.Add(held_.begin()->first, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Expire();
    });
  }
  void Expire() {
    std::vector<Held> due;
    {
      std::lock_guard lock(mutex_);
      const auto now = clock_.Monotonic();
      while (!held_.empty() && held_.begin()->first <= now) {
        due.push_back(std::move(held_.begin()->second));
        held_.erase(held_.begin());
      }
      if (!held_.empty()) Arm();
    }
    for (const Held& held : due) held.level->queues.ReleaseSeats(*held.request);
  }

  const base::Clock& clock_;
  async::Deadlines& deadlines_;
  std::mutex mutex_;
  std::multimap<base::Clock::SteadyTime, Held> held_;  // bounded by the seats of all levels
  async::Deadlines::Entry entry_;
};

const std::string& Classification::flow_schema_uid() const { return flow_->schema.uid; }
const std::string& Classification::priority_level_uid() const { return flow_->level_uid; }
const std::string& Classification::flow_schema() const { return flow_->schema.name; }
const std::string& Classification::priority_level() const { return flow_->schema.priority_level; }
std::uint64_t Classification::level_max_seats() const { return flow_->max_seats; }

Seat::Seat(Seat&& other) noexcept
    : flow_(std::move(other.flow_)),
      request_(std::move(other.request_)),
      arrived_(other.arrived_),
      started_(other.started_),
      type_(other.type_),
      mutating_(other.mutating_),
      executing_(std::exchange(other.executing_, false)) {}

Seat& Seat::operator=(Seat&& other) noexcept {
  Release();
  flow_ = std::move(other.flow_);
  request_ = std::move(other.request_);
  arrived_ = other.arrived_;
  started_ = other.started_;
  type_ = other.type_;
  mutating_ = other.mutating_;
  executing_ = std::exchange(other.executing_, false);
  return *this;
}

Seat::~Seat() { Release(); }

void Seat::Release() {
  if (flow_ == nullptr) return;
  const std::shared_ptr<const ClassifiedFlow> flow = std::move(flow_);
  const QueueSet::RequestPtr request = std::move(request_);
  const bool executing = std::exchange(executing_, false);
  QueueSet& queues = flow->level->queues;
  // A frame that ends while it waits takes its request out of the queue, unless it has just been dispatched.
  if (!executing && (queues.Cancel(*request) || !queues.IsExecuting(*request))) return;
  const auto now = flow->shared->clock->Monotonic();
  if (flow->shared->use != nullptr && executing) flow->shared->use->Executing(now, mutating_, -1);
  if (FlowMetrics* metrics = flow->flow->metrics.get(); metrics != nullptr && executing) {
    auto& series = type_ == ExecutionType::kWatch ? metrics->execution_watch : metrics->execution_regular;
    series->Observe(std::chrono::duration<double>(now - started_).count());
  }
  const auto lingers = queues.Finish(*request, now);
  if (lingers > std::chrono::nanoseconds(0)) flow->shared->timer->ReleaseAfter(lingers, flow->level, request);
}

struct Controller::Impl {
  explicit Impl(const Options& given)
      : options(given),
        use(given.metrics == nullptr ? nullptr : std::make_shared<ReadVsWrite>(*given.metrics, *given.clock)),
        shared(std::make_shared<SharedState>(
            SharedState{std::make_shared<SeatTimer>(*given.clock, *given.deadlines), use, given.clock})) {}

  void Digest();
  void Adjust();
  void Publish();

  const Options options;
  const std::shared_ptr<ReadVsWrite> use;  // null without metrics
  const std::shared_ptr<const SharedState> shared;
  base::AtomicRef<const Snapshot> snapshot;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Level>, std::less<>> levels;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Flow>> flows;  // by schema and level
  std::vector<PriorityLevelSpec> level_specs;
  std::vector<FlowSchemaSpec> schema_specs;
};

Controller::Controller(const Options& options) : impl_(std::make_unique<Impl>(options)) { Digest({}, {}); }
Controller::~Controller() = default;

const base::Clock& Controller::clock() const { return *impl_->options.clock; }

void Controller::Digest(std::vector<PriorityLevelSpec> levels, std::vector<FlowSchemaSpec> schemas) {
  std::lock_guard lock(impl_->mutex);
  impl_->level_specs = std::move(levels);
  impl_->schema_specs = std::move(schemas);
  impl_->Digest();
}

void Controller::AdjustBorrowing() {
  std::lock_guard lock(impl_->mutex);
  const bool drop = std::ranges::any_of(
      impl_->levels, [](const auto& row) { return row.second->quiescing && row.second->queues.IsIdle(); });
  if (drop) {
    impl_->Digest();
  } else {
    impl_->Adjust();
  }
}

void Controller::Impl::Digest() {
  std::map<std::string, std::shared_ptr<Level>, std::less<>> next;
  const auto add = [&](const PriorityLevelSpec& spec, bool quiescing) {
    const auto known = levels.find(spec.name);
    auto level = known != levels.end() ? known->second : std::make_shared<Level>(*options.clock, spec, options.metrics);
    level->spec = spec;
    level->borrowing.exempt = spec.exempt;
    level->quiescing = quiescing;
    next.emplace(spec.name, std::move(level));
  };
  for (const PriorityLevelSpec& spec : level_specs) add(spec, false);
  for (const PriorityLevelSpec& spec : {PriorityLevelSpec::MandatoryExempt(), PriorityLevelSpec::MandatoryCatchAll()}) {
    if (next.contains(spec.name)) continue;
    const auto known = levels.find(spec.name);
    add(known == levels.end() ? spec : known->second->spec, false);
  }
  for (const auto& [name, level] : levels) {
    if (next.contains(name) || level->queues.IsIdle()) continue;
    add(PriorityLevelSpec(level->spec), true);
  }
  levels = std::move(next);
  double shares = 0;
  for (const auto& [name, level] : levels) shares += level->spec.nominal_shares;
  for (const auto& [name, level] : levels) {
    level->borrowing.limits = ComputeLimits(level->spec, options.server_concurrency_limit, shares);
    if (level->metrics == nullptr) continue;
    level->metrics->nominal_limit->Set(level->borrowing.limits.nominal);
    level->metrics->lower_limit->Set(level->borrowing.limits.min);
    level->metrics->upper_limit->Set(level->borrowing.limits.max);
  }
  if (use != nullptr) {
    int waiting = 0, executing = 0;
    for (const auto& [name, level] : levels) {
      executing += level->borrowing.limits.nominal;
      if (level->spec.queuing.queues > 0)
        waiting += level->spec.queuing.queues * level->spec.queuing.queue_length_limit;
    }
    use->SetLimits(waiting, executing);
  }
  Adjust();
  Publish();
}

void Controller::Impl::Adjust() {
  std::vector<BorrowingLevel> borrowing;
  for (const auto& [name, level] : levels) {
    level->borrowing.demand.Update(level->queues.ResetDemand());
    borrowing.push_back(level->borrowing);
  }
  const double fair_fraction = flowcontrol::AdjustBorrowing(borrowing);
  if (options.metrics != nullptr) options.metrics->fair_fraction.Only().Set(fair_fraction);
  std::size_t i = 0;
  for (const auto& [name, level] : levels) {
    level->borrowing = borrowing[i++];
    const BorrowingLevel& now = level->borrowing;
    // A level without nominal seats is measured against a tenth of the server's.
    const int whole = now.current > 0 ? now.current : std::max(1, (options.server_concurrency_limit + 5) / 10);
    level->queues.Reconfigure(level->spec.queuing, now.current, whole);
    if (level->metrics == nullptr) continue;
    level->metrics->demand_high_watermark->Set(now.demand.high_watermark);
    level->metrics->demand_average->Set(now.demand.average);
    level->metrics->demand_deviation->Set(now.demand.deviation);
    level->metrics->demand_smoothed->Set(now.demand.smoothed);
    level->metrics->target->Set(now.target);
    level->metrics->current_limit->Set(now.current);
  }
}

void Controller::Impl::Publish() {
  auto made = base::MakeRef<Snapshot>();
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Flow>> used;
  const auto add = [&](const FlowSchemaSpec& schema) {
    const auto& level = levels.at(schema.priority_level);
    auto& flow = used[{schema.name, level->name}];
    if (const auto known = flows.find({schema.name, level->name}); known != flows.end()) {
      flow = known->second;
    } else if (flow == nullptr) {
      auto metrics = options.metrics == nullptr
                         ? nullptr
                         : std::make_shared<FlowMetrics>(*options.metrics, level->name, schema.name);
      flow = std::make_shared<Flow>(Flow{schema.name, std::move(metrics)});
    }
    auto entry = std::make_shared<ClassifiedFlow>(ClassifiedFlow{
        .schema = schema, .flow = flow, .level = level, .level_uid = level->spec.uid, .exempt = level->spec.exempt});
    entry->shared = shared;
    entry->queues = level->spec.queuing.queues;
    entry->max_seats = static_cast<std::uint64_t>(level->borrowing.limits.max_seats.value_or(0));
    if (schema.name == kCatchAll) made->catch_all = entry;
    made->flows.push_back(std::move(entry));
  };
  std::vector<const FlowSchemaSpec*> sorted;
  bool exempt = false, catch_all = false;
  for (const FlowSchemaSpec& schema : schema_specs) {
    const auto level = levels.find(schema.priority_level);
    if (level == levels.end() || level->second->quiescing) continue;  // dangling
    exempt |= schema.name == kExempt;
    catch_all |= schema.name == kCatchAll;
    sorted.push_back(&schema);
  }
  std::ranges::sort(sorted, [](const FlowSchemaSpec* a, const FlowSchemaSpec* b) { return *a < *b; });
  if (!exempt) add(FlowSchemaSpec::MandatoryExempt());
  for (const FlowSchemaSpec* schema : sorted) add(*schema);
  if (!catch_all) add(FlowSchemaSpec::MandatoryCatchAll());
  flows = std::move(used);
  snapshot.Store(base::Ref<const Snapshot>(made));
}

Classification Controller::Classify(const request::RequestInfo& info, const request::User& user) const {
  const auto snapshot = impl_->snapshot.Load();
  for (const auto& flow : snapshot->flows) {
    if (flow->schema.Matches(info, user)) return Classification(flow);
  }
  return Classification(snapshot->catch_all);
}

namespace {

// Shared by the waiting frame and by the timer or connection that may end the wait.
struct Waiter {
  async::Event ended;
  std::atomic<bool> cancelled{false};
};

// Counts a request as waiting.
class WaitingRequest {
 public:
  WaitingRequest(std::shared_ptr<ReadVsWrite> use, bool mutating) : use_(std::move(use)), mutating_(mutating) {
    if (use_ != nullptr) use_->Waiting(mutating_, 1);
  }
  WaitingRequest(const WaitingRequest&) = delete;
  WaitingRequest& operator=(const WaitingRequest&) = delete;
  ~WaitingRequest() {
    if (use_ != nullptr) use_->Waiting(mutating_, -1);
  }

 private:
  const std::shared_ptr<ReadVsWrite> use_;
  const bool mutating_;
};

void ObserveRejected(const ClassifiedFlow& flow, std::chrono::duration<double> waited) {
  FlowMetrics* const metrics = flow.flow->metrics.get();
  if (metrics != nullptr && !flow.exempt) metrics->wait_rejected->Observe(waited.count());
}

std::function<void()> CancelWait(std::shared_ptr<Waiter> waiter, std::shared_ptr<Level> level,
                                 QueueSet::RequestPtr request) {
  return [waiter = std::move(waiter), level = std::move(level), request = std::move(request)] {
    if (!level->queues.Cancel(*request)) return;
    waiter->cancelled = true;
    waiter->ended.Set();
  };
}

}  // namespace

Outcome<Seat, Rejection> Controller::Start(const Classification& classification, const Request& request) {
  const ClassifiedFlow& flow = *classification.flow_;
  const base::Clock& clock = *impl_->options.clock;
  const request::RequestInfo& info = *request.info;
  Seat seat;
  seat.arrived_ = clock.Monotonic();
  seat.type_ = request.type;
  seat.mutating_ = IsMutating(info);
  QueueSet::Arrival arrival{.work = request.work, .flow = flow.flow};
  std::string_view distinguisher;
  if (!flow.exempt && flow.queues > 1) {
    distinguisher = flow.schema.DistinguisherOf(info, *request.user);
    arrival.flow_hash = HashFlow(flow.schema.name, distinguisher);
  }
  arrival.details = RequestDetails({request.user->name, info.verb, info.path, info.name_space, info.name,
                                    info.api_version, info.resource, info.subresource, distinguisher});
  auto started = flow.level->queues.Start(std::move(arrival), seat.arrived_);
  if (!started.ok()) {
    ObserveRejected(flow, clock.Monotonic() - seat.arrived_);
    return started.error();
  }
  seat.flow_ = classification.flow_;
  seat.request_ = std::move(started->request);
  if (started->executing) BeginExecuting(seat);
  return seat;
}

void Controller::BeginExecuting(Seat& seat) {
  const ClassifiedFlow& flow = *seat.flow_;
  seat.executing_ = true;
  seat.started_ = flow.shared->clock->Monotonic();
  if (flow.shared->use != nullptr) flow.shared->use->Executing(seat.started_, seat.mutating_, 1);
  FlowMetrics* const metrics = flow.flow->metrics.get();
  if (metrics == nullptr) return;
  metrics->dispatched->Inc();
  if (!flow.exempt) metrics->wait_executed->Observe(std::chrono::duration<double>(seat.waited()).count());
}

Awaitable<Outcome<Seat, Rejection>> Controller::Wait(Seat seat, Patience patience) {
  const std::shared_ptr<const ClassifiedFlow> flow = seat.flow_;
  auto waiter = std::make_shared<Waiter>();
  if (flow->level->queues.OnDispatch(*seat.request_, [waiter] { waiter->ended.Set(); })) {
    const auto cancel = CancelWait(waiter, flow->level, seat.request_);
    const auto deadline = impl_->options.deadlines->Add(patience.until, cancel);
    if (patience.on_close) patience.on_close(cancel);
    const WaitingRequest waiting(flow->shared->use, seat.mutating_);
    co_await waiter->ended.Wait();
    if (waiter->cancelled) {
      ObserveRejected(*flow, flow->shared->clock->Monotonic() - seat.arrived_);
      seat.Release();  // its request is not in the queue any more
      co_return Rejection::kTimeOut;
    }
  }
  BeginExecuting(seat);
  co_return std::move(seat);
}

std::int64_t Controller::RecordDropped(const Classification& classification) {
  const auto now = impl_->options.clock->Now().time_since_epoch();
  return classification.flow_->level->dropped.Record(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

void Controller::ObserveEstimate(const Classification& classification, const WorkEstimate& work) const {
  if (FlowMetrics* metrics = classification.flow_->flow->metrics.get())
    metrics->estimated_seats->Observe(work.max_seats());
}

void Controller::ObserveWatchers(const Classification& classification, int watchers) const {
  if (FlowMetrics* metrics = classification.flow_->flow->metrics.get()) metrics->watch_count_samples->Observe(watchers);
}

std::vector<Controller::LevelDump> Controller::Describe() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<LevelDump> dumps;
  for (const auto& [name, level] : impl_->levels)
    dumps.push_back({name, level->quiescing, level->spec.queuing.queues > 0, level->queues.Describe()});
  return dumps;
}

void Controller::FlushMetrics() {
  std::lock_guard lock(impl_->mutex);
  for (const auto& [name, level] : impl_->levels) level->queues.FlushMetrics();
  if (impl_->use != nullptr) impl_->use->Flush();
}

}  // namespace keelson::flowcontrol
