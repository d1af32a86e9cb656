#include "flowcontrol/queue_set.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "flowcontrol/metrics.h"

namespace keelson::flowcontrol {
namespace {

// Virtual time is wound back by half of its range before it could overflow.
constexpr SeatSeconds kEpochDecrement = SeatSeconds::FromRaw(~std::uint64_t{0} / 2);
constexpr SeatSeconds kHighR = SeatSeconds::FromRaw(~std::uint64_t{0} / 2 + ~std::uint64_t{0} / 4);

}  // namespace

std::string_view ToString(Rejection rejection) {
  switch (rejection) {
    case Rejection::kConcurrencyLimit:
      return "concurrency-limit";
    case Rejection::kQueueFull:
      return "queue-full";
    case Rejection::kTimeOut:
      return "time-out";
  }
  return "";
}

RequestDetails::RequestDetails(const std::array<std::string_view, kColumns>& cells) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < kColumns; ++i) {
    size += cells[i].size();
    ends_[i] = static_cast<std::uint32_t>(size);
  }
  text_.resize_and_overwrite(size, [&](char* out, std::size_t) {
    for (const std::string_view cell : cells) out = std::copy(cell.begin(), cell.end(), out);
    return size;
  });
}

std::string_view RequestDetails::operator[](Column column) const {
  const std::size_t begin = column == 0 ? 0 : ends_[column - 1];
  return std::string_view(text_).substr(begin, ends_[column] - begin);
}

struct QueueSet::Change : SeatGate::Record {
  explicit Change(Request& of) : request(of) {}
  Request& request;
  base::Clock::SteadyTime at{};
};

// A waiting request is linked into its queue's FIFO, an executing one into its queue's (or the set's) executing list.
class QueueSet::Request {
 public:
  enum class State : std::uint8_t { kWaiting, kExecuting, kLingering, kDone };

  Arrival arrival;
  SeatSeconds total_work;
  SeatSeconds final_work;
  SeatSeconds arrival_r;
  base::Clock::SteadyTime arrived{};
  base::Clock::SteadyTime started{};
  State state = State::kWaiting;
  std::shared_ptr<Queue> queue;  // null without queues
  std::function<void()> on_dispatch;
  RequestPtr self;  // keeps it alive while it is linked
  Change start{*this};
  Change finish{*this};
  bool through_gate = false;  // executes since Start(); never changes afterwards
  Request* previous = nullptr;
  Request* next = nullptr;

  int max_seats() const { return arrival.work.max_seats(); }
  FlowMetrics* metrics() const { return arrival.flow->metrics.get(); }
  RequestDump Dump() const {
    RequestDump dump{
        .flow_schema = arrival.flow->schema, .details = arrival.details, .work = arrival.work, .arrived = arrived};
    if (state != State::kWaiting) dump.started = started;
    return dump;
  }
};

struct QueueSet::List {
  Request* first = nullptr;
  Request* last = nullptr;
  std::size_t size = 0;

  void Append(const RequestPtr& request) {
    request->self = request;
    request->previous = last;
    request->next = nullptr;
    (last == nullptr ? first : last->next) = request.get();
    last = request.get();
    ++size;
  }
  RequestPtr Remove(Request& request) {
    (request.previous == nullptr ? first : request.previous->next) = request.next;
    (request.next == nullptr ? last : request.next->previous) = request.previous;
    request.previous = request.next = nullptr;
    --size;
    return std::move(request.self);
  }
  ~List() {
    while (first != nullptr) Remove(*first);
  }
};

struct QueueSet::Queue {
  std::size_t index = 0;
  bool removed = false;
  List waiting;
  List executing;
  SeatSeconds next_dispatch_r;
  int seats_in_use = 0;
  int initial_seats_sum = 0;  // of the waiting requests, as are the next two
  int max_seats_sum = 0;
  SeatSeconds total_work_sum;

  bool active() const { return waiting.size > 0 || executing.size > 0; }
};

// Held by what decides about seats: the queues are up to date, and no request passes the gate meanwhile.
class QueueSet::Exclusive {
 public:
  explicit Exclusive(QueueSet& set) : set_(set), lock_(set.mutex_) { set_.Apply(set_.gate_.Close()); }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;
  ~Exclusive() {
    if (set_.waiting_ != 0) return;
    set_.gate_.Open(set_.seats_in_use_, set_.config_.queues < 0 ? SeatGate::kUnlimited : set_.concurrency_limit_);
  }

 private:
  QueueSet& set_;
  const std::lock_guard<std::mutex> lock_;
};

QueueSet::QueueSet(const base::Clock& clock, QueuingConfig config, int concurrency_limit, LevelMetrics* metrics)
    : clock_(clock),
      metrics_(metrics),
      concurrency_limit_(concurrency_limit),
      queueless_(std::make_unique<List>()),
      now_(clock.Monotonic()),
      demand_(now_) {
  if (metrics != nullptr) utilization_.emplace(*metrics, now_);
  SetConfiguration(config, concurrency_limit, std::max(concurrency_limit, 1));
  const Exclusive opens(*this);
}

QueueSet::Utilization::Utilization(LevelMetrics& metrics, base::Clock::SteadyTime now)
    : waiting(metrics.requests_waiting, now),
      executing(metrics.requests_executing, now),
      seats(metrics.seats_executing, now),
      demand(metrics.demand, now) {}

// Requests refer to their queues and queues to their requests: the ends that were not applied yet untie them.
QueueSet::~QueueSet() { Apply(gate_.Close()); }

std::string QueueSet::Check(const QueuingConfig& config) {
  if (config.queues <= 0) return "";
  auto dealer = Dealer::New(config.queues, config.hand_size);
  if (dealer.ok()) return "";
  return "the QueueSetConfig implies an invalid shuffle sharding config (DesiredNumQueues is deckSize): " +
         dealer.error();
}

void QueueSet::SetConfiguration(const QueuingConfig& config, int concurrency_limit, int concurrency_denominator) {
  QueuingConfig next = config;
  dealer_.reset();
  if (next.queues > 0) {
    auto dealer = Dealer::New(next.queues, next.hand_size);
    KS_CHECK(dealer.ok());
    dealer_ = *dealer;
    while (queues_.size() < static_cast<std::size_t>(next.queues)) {
      queues_.push_back(std::make_shared<Queue>());
      queues_.back()->index = queues_.size() - 1;
    }
  } else {  // what is still queued keeps its limits
    next.queue_length_limit = config_.queue_length_limit;
    next.hand_size = config_.hand_size;
  }
  config_ = next;
  concurrency_limit_ = concurrency_limit;
  if (!utilization_) return;
  const int waiting_max = std::max(next.queue_length_limit, 1) * std::max(next.queues, 1);
  utilization_->waiting.SetDenominator(now_, waiting_max);
  for (GuardedTimingRatio* ratio : {&utilization_->executing, &utilization_->seats, &utilization_->demand})
    ratio->SetDenominator(now_, concurrency_denominator);
}

void QueueSet::Reconfigure(const QueuingConfig& config, int concurrency_limit, int concurrency_denominator) {
  Wakes wakes;
  {
    const Exclusive exclusive(*this);
    SyncTime();
    SetConfiguration(config, concurrency_limit, concurrency_denominator);
    DispatchAsMuchAsPossible(wakes);
  }
  Wake(wakes);
}

// Upstream walks all queues for this on every operation; the sums are kept up to date here instead.
double QueueSet::VirtualTimeRatio() const {
  if (active_queues_ == 0) return 0;
  const int requested = queue_seats_ + seats_waiting_;
  return std::min(static_cast<double>(requested), static_cast<double>(concurrency_limit_)) / active_queues_;
}

// Times of changes at the gate may be a little behind: several threads read the clock before they make their changes.
void QueueSet::SyncTime(base::Clock::SteadyTime now) {
  if (now <= now_) return;
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - now_);
  now_ = now;
  current_r_ += SeatSeconds::Of(VirtualTimeRatio(), passed);
  if (current_r_ >= kHighR) AdvanceEpoch();
}

void QueueSet::AdvanceEpoch() {
  current_r_ -= kEpochDecrement;
  for (const auto& queue : queues_) {
    if (!queue->active()) {
      queue->next_dispatch_r = SeatSeconds();
      continue;
    }
    queue->next_dispatch_r -= kEpochDecrement;
    for (Request* request = queue->waiting.first; request != nullptr; request = request->next)
      request->arrival_r -= kEpochDecrement;
  }
}

void QueueSet::NoteUse() {
  demand_.Set(now_, seats_in_use_ + seats_waiting_);
  if (!utilization_) return;
  utilization_->waiting.Set(now_, waiting_);
  utilization_->executing.Set(now_, executing_);
  utilization_->seats.Set(now_, seats_in_use_);
  utilization_->demand.Set(now_, seats_in_use_ + seats_waiting_);
}

void QueueSet::FlushMetrics() {
  std::lock_guard lock(mutex_);
  CatchUp();
  SyncTime();
  NoteUse();
  if (!utilization_) return;
  metrics_->current_r->Set(current_r_.ToDouble());
  for (GuardedTimingRatio* ratio :
       {&utilization_->waiting, &utilization_->executing, &utilization_->seats, &utilization_->demand})
    ratio->Flush(now_);
}

void QueueSet::Apply(SeatGate::Record* newest) {
  SeatGate::Record* oldest = nullptr;
  while (newest != nullptr) {
    SeatGate::Record* const older = newest->older;
    newest->older = oldest;
    oldest = newest;
    newest = older;
  }
  while (oldest != nullptr) {
    Change& change = static_cast<Change&>(*oldest);
    oldest = oldest->older;  // the change may end its request
    SyncTime(change.at);
    if (&change == &change.request.start) {
      ApplyStart(change.request);
    } else {
      ApplyFinish(change.request);
    }
  }
}

void QueueSet::ApplyIfMany(int records) {
  if (records < kApplyAt || !mutex_.try_lock()) return;  // whoever has the mutex applies them
  const std::lock_guard lock(mutex_, std::adopt_lock);
  CatchUp();
}

// Start() of a request that is dispatched at once.
void QueueSet::ApplyStart(Request& request) {
  const RequestPtr self = std::move(request.self);
  request.arrival_r = current_r_;
  Complete(request);
  if (config_.queues < 1) {
    queueless_->Append(self);
    BeginExecuting(self);
    return;
  }
  Queue& queue = ChooseQueue(request.arrival.flow_hash);
  if (!queue.active()) {
    queue.next_dispatch_r = current_r_;
    ++active_queues_;
  }
  request.queue = queues_[queue.index];
  queue.next_dispatch_r = std::max(queue.next_dispatch_r, request.arrival_r);
  if (FlowMetrics* metrics = request.metrics()) {
    metrics->inqueue_requests.get();  // shown, though nothing waited
    metrics->inqueue_seats.get();
    metrics->queue_length_after_enqueue->Observe(1);
  }
  robin_index_ = queue.index;
  if (metrics_ != nullptr) {
    const SeatSeconds discounted =
        queue.next_dispatch_r - SeatSeconds::Of(queue.seats_in_use, kEstimatedServiceDuration);
    NoteDispatch(queue.next_dispatch_r, {queue.next_dispatch_r, queue.next_dispatch_r, discounted, discounted});
  }
  BeginExecutingIn(queue, self);
}

void QueueSet::ApplyFinish(Request& request) {
  const RequestPtr kept = Unlink(request);
  Release(request);
}

Outcome<QueueSet::Started, Rejection> QueueSet::Start(Arrival arrival, base::Clock::SteadyTime now) {
  auto request = std::make_shared<Request>();
  request->arrival = std::move(arrival);
  request->start.at = request->arrived = request->started = now;
  request->through_gate = true;
  request->state = Request::State::kExecuting;
  request->self = request;
  const SeatGate::Result taken = gate_.Take(request->max_seats(), request->start);
  if (taken.done) {
    ApplyIfMany(taken.records);
    return Started{std::move(request), true};
  }
  request->self = nullptr;
  request->through_gate = false;
  request->state = Request::State::kWaiting;
  return StartLocked(std::move(request));
}

Outcome<QueueSet::Started, Rejection> QueueSet::StartLocked(RequestPtr request) {
  Wakes wakes;
  Started started;
  FlowMetrics* const metrics = request->metrics();
  {
    const Exclusive exclusive(*this);
    SyncTime();
    request->arrived = now_;
    request->arrival_r = current_r_;
    Complete(*request);
    if (config_.queues < 1) {
      if (!CanAccommodate(request->max_seats())) {
        ++rejected_;
        if (metrics != nullptr) metrics->rejected_concurrency_limit->Inc();
        return Rejection::kConcurrencyLimit;
      }
      request->started = now_;
      queueless_->Append(request);
      BeginExecuting(request);
      return Started{std::move(request), true};
    }
    Queue& queue = ChooseQueue(request->arrival.flow_hash);
    if (seats_in_use_ >= concurrency_limit_ &&
        queue.waiting.size >= static_cast<std::size_t>(std::max(0, config_.queue_length_limit))) {
      BoundNextDispatch(queue);
      ++rejected_;
      if (metrics != nullptr) metrics->rejected_queue_full->Inc();
      return Rejection::kQueueFull;
    }
    Enqueue(request, queue);
    BoundNextDispatch(queue);
    if (metrics != nullptr) metrics->queue_length_after_enqueue->Observe(static_cast<double>(queue.waiting.size));
    DispatchAsMuchAsPossible(wakes, &queue);
    started.executing = request->state == Request::State::kExecuting;
  }
  Wake(wakes);
  started.request = std::move(request);
  return started;
}

void QueueSet::Complete(Request& request) const {
  const WorkEstimate& work = request.arrival.work;
  request.final_work = SeatSeconds::Of(static_cast<double>(work.final_seats), work.additional_latency);
  request.total_work =
      SeatSeconds::Of(static_cast<double>(work.initial_seats), kEstimatedServiceDuration) + request.final_work;
}

QueueSet::Queue& QueueSet::ChooseQueue(std::uint64_t hash) {
  Dealer::Hand storage;
  const auto hand = dealer_->Deal(hash, storage);
  const std::size_t offset = arrivals_++ % hand.size();
  Queue* best = nullptr;
  for (std::size_t i = 0; i < hand.size(); ++i) {
    Queue& queue = *queues_[static_cast<std::size_t>(hand[(offset + i) % hand.size()])];
    if (best == nullptr || queue.total_work_sum < best->total_work_sum) best = &queue;
  }
  return *best;
}

void QueueSet::Enqueue(const RequestPtr& request, Queue& queue) {
  if (!queue.active()) {
    queue.next_dispatch_r = current_r_;
    ++active_queues_;
  }
  request->queue = queues_[queue.index];
  queue.waiting.Append(request);
  queue.initial_seats_sum += static_cast<int>(request->arrival.work.initial_seats);
  queue.max_seats_sum += request->max_seats();
  queue.total_work_sum += request->total_work;
  ++waiting_;
  seats_waiting_ += request->max_seats();
  if (FlowMetrics* metrics = request->metrics()) {
    metrics->inqueue_requests->Inc();
    metrics->inqueue_seats->Add(request->max_seats());
  }
  NoteUse();
}

void QueueSet::RemoveWaiting(Request& request) {
  Queue& queue = *request.queue;
  queue.initial_seats_sum -= static_cast<int>(request.arrival.work.initial_seats);
  queue.max_seats_sum -= request.max_seats();
  queue.total_work_sum -= request.total_work;
  --waiting_;
  seats_waiting_ -= request.max_seats();
  if (FlowMetrics* metrics = request.metrics()) {
    metrics->inqueue_requests->Dec();
    metrics->inqueue_seats->Add(-request.max_seats());
  }
}

bool QueueSet::CanAccommodate(int seats) const {
  if (config_.queues < 0) return true;
  if (seats > concurrency_limit_) return executing_ == 0;
  return seats_in_use_ + seats <= concurrency_limit_;
}

void QueueSet::DispatchAsMuchAsPossible(Wakes& wakes, Queue* candidate) {
  while (waiting_ != 0 && seats_in_use_ < concurrency_limit_ && DispatchOne(wakes, candidate)) {
  }
}

// The queue whose head would finish first in virtual time; ties go to the next one in turn.
// `candidate`: the queue of the newest request; may be null.
QueueSet::Queue* QueueSet::FindDispatchQueue(Queue* candidate) {
  SeatSeconds least_finish = SeatSeconds::Max();
  SeatSeconds s_min = SeatSeconds::Max(), ds_min = SeatSeconds::Max(), s_max, ds_max;
  Queue* best = nullptr;
  std::size_t robin = robin_index_;
  // One request that waits is found without a look at every queue; the round ends where it began in either case.
  const bool only = waiting_ == 1 && candidate != nullptr && candidate->waiting.first != nullptr;
  for (std::size_t i = 0; i < (only ? 1 : queues_.size()); ++i) {
    if (!only) robin = robin + 1 == queues_.size() ? 0 : robin + 1;
    Queue& queue = only ? *candidate : *queues_[robin];
    const Request* head = queue.waiting.first;
    if (head == nullptr) continue;
    const SeatSeconds discounted =
        queue.next_dispatch_r - SeatSeconds::Of(queue.seats_in_use, kEstimatedServiceDuration);
    s_min = std::min(s_min, queue.next_dispatch_r);
    s_max = std::max(s_max, queue.next_dispatch_r);
    ds_min = std::min(ds_min, discounted);
    ds_max = std::max(ds_max, discounted);
    const SeatSeconds finish = queue.next_dispatch_r + head->total_work;
    if (finish < least_finish) {
      least_finish = finish;
      best = &queue;
    }
  }
  robin_index_ = robin;
  if (best == nullptr || !CanAccommodate(best->waiting.first->max_seats())) return nullptr;
  robin_index_ = best->index;
  if (metrics_ != nullptr) NoteDispatch(best->next_dispatch_r, {s_min, s_max, ds_min, ds_max});
  return best;
}

void QueueSet::NoteDispatch(SeatSeconds start, const NextStarts& next) {
  metrics_->dispatch_r->Set(current_r_.ToDouble());
  metrics_->latest_s->Set(start.ToDouble());
  metrics_->next_s_min->Set(next.min.ToDouble());
  metrics_->next_s_max->Set(next.max.ToDouble());
  metrics_->next_discounted_s_min->Set(next.discounted_min.ToDouble());
  metrics_->next_discounted_s_max->Set(next.discounted_max.ToDouble());
}

bool QueueSet::DispatchOne(Wakes& wakes, Queue* candidate) {
  Queue* const queue = FindDispatchQueue(candidate);
  if (queue == nullptr) return false;
  Request& head = *queue->waiting.first;
  RemoveWaiting(head);
  RequestPtr request = queue->waiting.Remove(head);
  WorkEstimate& work = request->arrival.work;
  if (work.final_seats > static_cast<std::uint64_t>(concurrency_limit_)) {
    // Fewer seats for longer: the work stays the same.
    work.final_seats = static_cast<std::uint64_t>(concurrency_limit_);
    work.additional_latency = request->final_work.DurationPerSeat(static_cast<double>(concurrency_limit_));
  }
  request->started = now_;
  BeginExecutingIn(*queue, request);
  BoundNextDispatch(*queue);
  wakes.push_back(std::move(request));
  return true;
}

void QueueSet::BeginExecutingIn(Queue& queue, const RequestPtr& request) {
  queue.executing.Append(request);
  queue.seats_in_use += request->max_seats();
  queue_seats_ += request->max_seats();
  BeginExecuting(request);
  queue.next_dispatch_r += request->total_work;
}

void QueueSet::BeginExecuting(const RequestPtr& request) {
  request->state = Request::State::kExecuting;
  ++executing_;
  ++dispatched_;
  seats_in_use_ += request->max_seats();
  if (FlowMetrics* metrics = request->metrics()) {
    metrics->executing_requests->Inc();
    metrics->executing_seats->Add(request->max_seats());
  }
  NoteUse();
}

// Anti-windup: a queue's next dispatch is never before the arrival of its oldest waiting request.
void QueueSet::BoundNextDispatch(Queue& queue) {
  const Request* head = queue.waiting.first;
  if (head != nullptr && queue.next_dispatch_r < head->arrival_r) queue.next_dispatch_r = head->arrival_r;
}

bool QueueSet::Cancel(Request& request) {
  if (request.through_gate) return false;
  const Exclusive exclusive(*this);
  if (request.state != Request::State::kWaiting) return false;
  SyncTime();
  Queue& queue = *request.queue;
  request.state = Request::State::kDone;
  RemoveWaiting(request);
  const RequestPtr kept = queue.waiting.Remove(request);
  if (!queue.active()) --active_queues_;
  BoundNextDispatch(queue);
  ++rejected_;
  ++cancelled_;
  if (FlowMetrics* metrics = request.metrics()) metrics->rejected_time_out->Inc();
  NoteUse();
  return true;
}

std::chrono::nanoseconds QueueSet::Finish(Request& request, base::Clock::SteadyTime now) {
  const std::chrono::nanoseconds lingers =
      std::max(request.arrival.work.additional_latency, std::chrono::nanoseconds(0));
  if (lingers == std::chrono::nanoseconds(0)) {
    request.finish.at = now;
    const SeatGate::Result given = gate_.GiveBack(request.max_seats(), request.finish);
    if (given.done) {
      ApplyIfMany(given.records);
      return lingers;
    }
  }
  Wakes wakes;
  RequestPtr kept;
  {
    const Exclusive exclusive(*this);
    SyncTime();
    kept = Unlink(request);
    if (lingers > std::chrono::nanoseconds(0)) {
      request.state = Request::State::kLingering;
      NoteUse();
    } else {
      Release(request);
    }
    DispatchAsMuchAsPossible(wakes);
  }
  Wake(wakes);
  return lingers;
}

// The handler has ended: out of the list of executing requests. Its seats are in use still.
QueueSet::RequestPtr QueueSet::Unlink(Request& request) {
  KS_CHECK(request.state == Request::State::kExecuting);
  --executing_;
  if (FlowMetrics* metrics = request.metrics()) metrics->executing_requests->Dec();
  Queue* const queue = request.queue.get();
  if (queue == nullptr) return queueless_->Remove(request);
  RequestPtr kept = queue->executing.Remove(request);
  if (!queue->active()) --active_queues_;
  const auto served = std::chrono::duration_cast<std::chrono::nanoseconds>(now_ - request.started);
  const auto initial = static_cast<double>(request.arrival.work.initial_seats);
  queue->next_dispatch_r -= SeatSeconds::Of(initial, kEstimatedServiceDuration - served);
  BoundNextDispatch(*queue);
  return kept;
}

void QueueSet::ReleaseSeats(Request& request) {
  Wakes wakes;
  {
    const Exclusive exclusive(*this);
    SyncTime();
    KS_CHECK(request.state == Request::State::kLingering);
    Release(request);
    DispatchAsMuchAsPossible(wakes);
  }
  Wake(wakes);
}

void QueueSet::Release(Request& request) {
  request.state = Request::State::kDone;
  seats_in_use_ -= request.max_seats();
  if (FlowMetrics* metrics = request.metrics()) metrics->executing_seats->Add(-request.max_seats());
  NoteUse();
  if (request.queue == nullptr) return;
  request.queue->seats_in_use -= request.max_seats();
  queue_seats_ -= request.max_seats();
  RemoveQueueIfEmpty(*request.queue);
}

void QueueSet::RemoveQueueIfEmpty(Queue& queue) {
  if (queue.removed || queue.active()) return;
  if (queues_.size() <= static_cast<std::size_t>(std::max(0, config_.queues))) return;
  queue.removed = true;
  queue_seats_ -= queue.seats_in_use;  // seats that linger no longer count for virtual time, as upstream
  const std::size_t index = queue.index;
  const auto kept = queues_[index];
  queues_.erase(queues_.begin() + static_cast<std::ptrdiff_t>(index));
  for (std::size_t i = index; i < queues_.size(); ++i) queues_[i]->index = i;
  if (robin_index_ >= index && robin_index_ > 0) --robin_index_;
}

void QueueSet::Wake(Wakes& wakes) {
  for (const RequestPtr& request : wakes) {
    if (request->on_dispatch) request->on_dispatch();
  }
}

bool QueueSet::IsExecuting(const Request& request) {
  const std::lock_guard lock(mutex_);
  return request.state == Request::State::kExecuting;
}

bool QueueSet::OnDispatch(Request& request, std::function<void()> callback) {
  if (request.through_gate) return false;
  std::lock_guard lock(mutex_);
  if (request.state != Request::State::kWaiting) return false;
  request.on_dispatch = std::move(callback);
  return true;
}

bool QueueSet::IsIdle() {
  std::lock_guard lock(mutex_);
  CatchUp();
  return waiting_ == 0 && executing_ == 0;
}

Integrator::Results QueueSet::ResetDemand() {
  std::lock_guard lock(mutex_);
  CatchUp();
  SyncTime();  // later changes count from here
  return demand_.Reset(now_);
}

namespace {
template <class List, class Dump>
void Describe(const List& list, std::vector<Dump>& out) {
  for (auto* request = list.first; request != nullptr; request = request->next) out.push_back(request->Dump());
}
}  // namespace

QueueSet::Dump QueueSet::Describe() {
  std::lock_guard lock(mutex_);
  CatchUp();
  Dump dump{.waiting = waiting_,
            .executing = executing_,
            .seats_in_use = seats_in_use_,
            .seats_waiting = seats_waiting_,
            .dispatched = dispatched_,
            .rejected = rejected_,
            .cancelled = cancelled_};
  flowcontrol::Describe(*queueless_, dump.queueless);
  for (const auto& queue : queues_) {
    QueueDump& out = dump.queues.emplace_back();
    flowcontrol::Describe(queue->waiting, out.waiting);
    flowcontrol::Describe(queue->executing, out.executing);
    out.seats_in_use = queue->seats_in_use;
    out.next_dispatch_r = queue->next_dispatch_r;
    out.initial_seats_sum = queue->initial_seats_sum;
    out.max_seats_sum = queue->max_seats_sum;
    out.total_work_sum = queue->total_work_sum;
    if (queue->active()) ++dump.active_queues;
  }
  return dump;
}

}  // namespace keelson::flowcontrol
