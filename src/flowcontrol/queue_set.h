// Fair queuing of one priority level: requests wait in queues chosen by shuffle sharding and are dispatched by virtual
// time, so that flows share the level's seats evenly. Upstream's queueset.
//
// Virtual time R (seat-seconds) advances as fast as each active queue is served: dR/dt = min(seats requested, limit) /
// active queues. A queue's next request starts at its `next_dispatch_r`; the queue whose head would finish first is
// served first.
//
// A request that finds no queue and free seats takes them at the SeatGate, without the mutex; so it gives them back.
// The changes are applied to the queues, to virtual time and to the metrics later, in the order in which
// they were made and with the times at which they were made: by the next holder of the mutex, or when kApplyAt have
// accumulated. Everything that can be observed goes through the mutex, so both ways give the same results.
//
// Thread safety: every public member from any thread; one mutex per level. Callbacks run after it is released.
// Ownership: a Request belongs to its caller and, while it waits or executes, to the queue set.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/outcome.h"
#include "flowcontrol/integrator.h"
#include "flowcontrol/seat_gate.h"
#include "flowcontrol/seat_seconds.h"
#include "flowcontrol/shuffle_sharding.h"
#include "flowcontrol/timing_ratio.h"

namespace keelson::flowcontrol {

struct FlowMetrics;   // flowcontrol/metrics.h
struct LevelMetrics;  // flowcontrol/metrics.h

// Seats that a request is expected to hold: `initial` while its handler runs, `final` for `additional_latency` more.
struct WorkEstimate {
  std::uint64_t initial_seats = 1;
  std::uint64_t final_seats = 0;
  std::chrono::nanoseconds additional_latency{0};
  int max_seats() const { return static_cast<int>(initial_seats >= final_seats ? initial_seats : final_seats); }
};

struct QueuingConfig {
  int queues = 0;  // 0: a level that rejects instead of queuing. kExempt: one that does neither.
  int hand_size = 0;
  int queue_length_limit = 0;
  static constexpr int kExempt = -1;
};

// The flow schema that classified a request, shared by all its requests.
struct Flow {
  std::string schema;
  std::shared_ptr<FlowMetrics> metrics;  // may be null
};

// Columns of a request dump that identify the request, in one allocation.
class RequestDetails {
 public:
  enum Column : std::uint8_t {
    kUser,
    kVerb,
    kPath,
    kNamespace,
    kName,
    kApiVersion,
    kResource,
    kSubresource,
    kDistinguisher,
    kColumns
  };
  RequestDetails() = default;
  explicit RequestDetails(const std::array<std::string_view, kColumns>& cells);
  std::string_view operator[](Column column) const;

 private:
  std::string text_;
  std::array<std::uint32_t, kColumns> ends_{};
};

enum class Rejection : std::uint8_t { kConcurrencyLimit, kQueueFull, kTimeOut };
std::string_view ToString(Rejection rejection);  // the metric's reason: "concurrency-limit"

class QueueSet {
 public:
  static constexpr std::chrono::milliseconds kEstimatedServiceDuration{3};

  class Request;
  using RequestPtr = std::shared_ptr<Request>;

  struct Arrival {
    WorkEstimate work;
    std::uint64_t flow_hash = 0;
    std::shared_ptr<const Flow> flow;
    RequestDetails details = {};
  };
  // Changes made at the gate are applied when this many have come together.
  static constexpr int kApplyAt = 32;

  // `clock` and `metrics` (may be null) must outlive this. REQUIRES: Check(config) is empty.
  QueueSet(const base::Clock& clock, QueuingConfig config, int concurrency_limit, LevelMetrics* metrics = nullptr);
  ~QueueSet();

  // Why shuffle sharding cannot work with this configuration, in upstream's words; "" when it can.
  static std::string Check(const QueuingConfig& config);
  // Surplus queues are removed once they are empty. `concurrency_denominator`: the seats that the utilization metrics
  // take for the whole; that of a limit of 0 is not 0.
  void Reconfigure(const QueuingConfig& config, int concurrency_limit, int concurrency_denominator);

  struct Started {
    RequestPtr request;
    bool executing = false;  // otherwise it waits, or was dispatched only just now
  };
  // The request, or why it was rejected. `now`: the clock's time, as the caller has read it.
  Outcome<Started, Rejection> Start(Arrival arrival, base::Clock::SteadyTime now);
  // Whether it was dispatched and has not finished.
  bool IsExecuting(const Request& request);
  // Registers what is called once when a waiting request is dispatched, on the thread that made room for it. False,
  // and nothing is registered, when it executes already (or was cancelled).
  bool OnDispatch(Request& request, std::function<void()> callback);
  // Takes a waiting request out of its queue. False when it is no longer waiting (it was dispatched).
  bool Cancel(Request& request);
  // The handler of an executing request ended. Returns how much longer its seats are held: the caller then calls
  // ReleaseSeats() after that time. Zero: they are free already.
  std::chrono::nanoseconds Finish(Request& request, base::Clock::SteadyTime now);
  void ReleaseSeats(Request& request);

  bool IsIdle();
  // Seat demand (in use and waiting) since the last call.
  Integrator::Results ResetDemand();
  // Counts the time until now in the utilization metrics.
  void FlushMetrics();

  struct RequestDump {
    std::string flow_schema;
    RequestDetails details;
    WorkEstimate work;
    base::Clock::SteadyTime arrived{};
    std::optional<base::Clock::SteadyTime> started;
  };
  struct QueueDump {
    std::vector<RequestDump> waiting;
    std::vector<RequestDump> executing;
    int seats_in_use = 0;
    SeatSeconds next_dispatch_r;
    int initial_seats_sum = 0;
    int max_seats_sum = 0;
    SeatSeconds total_work_sum;
  };
  struct Dump {
    std::vector<QueueDump> queues;
    std::vector<RequestDump> queueless;
    int waiting = 0;
    int executing = 0;
    int seats_in_use = 0;
    int seats_waiting = 0;
    int active_queues = 0;
    std::uint64_t dispatched = 0;
    std::uint64_t rejected = 0;
    std::uint64_t cancelled = 0;
  };
  Dump Describe();

 private:
  struct Queue;
  struct List;
  struct Change;    // a change of seats at the gate
  class Exclusive;  // holds the mutex and keeps the gate closed
  using Wakes = std::vector<RequestPtr>;

  // Applies changes that were made at the gate, newest first in the list.
  void Apply(SeatGate::Record* newest);
  void ApplyStart(Request& request);
  void ApplyFinish(Request& request);
  void ApplyIfMany(int records);
  void CatchUp() { Apply(gate_.Detach()); }
  Outcome<Started, Rejection> StartLocked(RequestPtr request);
  RequestPtr Unlink(Request& request);

  void SyncTime() { SyncTime(clock_.Monotonic()); }
  void SyncTime(base::Clock::SteadyTime now);
  void AdvanceEpoch();
  double VirtualTimeRatio() const;
  void SetConfiguration(const QueuingConfig& config, int concurrency_limit, int concurrency_denominator);
  Queue& ChooseQueue(std::uint64_t hash);
  void Enqueue(const RequestPtr& request, Queue& queue);
  void DispatchAsMuchAsPossible(Wakes& wakes, Queue* candidate = nullptr);
  bool DispatchOne(Wakes& wakes, Queue* candidate);
  Queue* FindDispatchQueue(Queue* candidate);
  bool CanAccommodate(int seats) const;
  void RemoveWaiting(Request& request);
  // Of the requests that wait at the heads of queues.
  struct NextStarts {
    SeatSeconds min, max, discounted_min, discounted_max;
  };
  void NoteDispatch(SeatSeconds start, const NextStarts& next);
  void BeginExecuting(const RequestPtr& request);
  void BeginExecutingIn(Queue& queue, const RequestPtr& request);
  void Release(Request& request);
  void BoundNextDispatch(Queue& queue);
  void RemoveQueueIfEmpty(Queue& queue);
  void NoteUse();
  void Complete(Request& request) const;
  static void Wake(Wakes& wakes);

  const base::Clock& clock_;
  LevelMetrics* const metrics_;
  SeatGate gate_;  // open while nothing waits
  std::mutex mutex_;
  // Below: guarded by the mutex, and behind the gate by the changes that have not been applied.
  QueuingConfig config_;
  int concurrency_limit_;
  std::optional<Dealer> dealer_;
  std::vector<std::shared_ptr<Queue>> queues_;  // a lingering request may outlive its queue's place here
  std::unique_ptr<List> queueless_;             // executing requests of a level without queues
  SeatSeconds current_r_;
  base::Clock::SteadyTime now_;  // of the last SyncTime()
  std::size_t robin_index_ = 0;
  std::uint64_t arrivals_ = 0;
  int waiting_ = 0;
  int executing_ = 0;
  int seats_in_use_ = 0;
  int seats_waiting_ = 0;
  int queue_seats_ = 0;  // sum over queues of seats in use; a level that got queues may still run requests without one
  int active_queues_ = 0;
  std::uint64_t dispatched_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t cancelled_ = 0;
  Integrator demand_;
  // Numbers of requests and seats over time, as fractions of their limits.
  struct Utilization {
    Utilization(LevelMetrics& metrics, base::Clock::SteadyTime now);
    GuardedTimingRatio waiting, executing, seats, demand;
  };
  std::optional<Utilization> utilization_;  // none without metrics
};

}  // namespace keelson::flowcontrol
