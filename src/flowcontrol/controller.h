// Priority and fairness at work: the configuration in force, seats for requests, borrowing between levels.
//
// Thread safety: all members from any thread. Classification reads an immutable snapshot; a request takes the mutex of
// its own level only, and that only when seats are short (queue_set.h). Ownership: seats share what they need, so they
// may outlive a configuration and the controller.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "async/deadlines.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "flowcontrol/borrowing.h"
#include "flowcontrol/metrics.h"
#include "flowcontrol/priority_level.h"
#include "flowcontrol/queue_set.h"
#include "flowcontrol/watch_tracker.h"
#include "flowcontrol/work_estimator.h"

namespace keelson::flowcontrol {

class Level;            // one priority level with its queues
class SeatTimer;        // gives back seats that are held after their request's end
struct ClassifiedFlow;  // a flow schema and its level, as they are in force

// A request's flow. Keeps what it refers to alive.
class Classification {
 public:
  const std::string& flow_schema_uid() const;
  const std::string& priority_level_uid() const;
  const std::string& flow_schema() const;
  const std::string& priority_level() const;
  std::uint64_t level_max_seats() const;  // for one request; 0: no limit

 private:
  friend class Controller;
  explicit Classification(std::shared_ptr<const ClassifiedFlow> flow) : flow_(std::move(flow)) {}
  std::shared_ptr<const ClassifiedFlow> flow_;
};

enum class ExecutionType : std::uint8_t { kRegular, kWatch };

// The seats of an executing request; given back when it is destroyed (some time later for writes that wake watchers).
class Seat {
 public:
  Seat() = default;
  Seat(Seat&& other) noexcept;
  Seat& operator=(Seat&& other) noexcept;
  ~Seat();
  void Release();
  // False: its request waits still, see Controller::Wait().
  bool executing() const { return executing_; }
  // From the arrival of the request to its execution.
  std::chrono::nanoseconds waited() const { return started_ - arrived_; }

 private:
  friend class Controller;
  std::shared_ptr<const ClassifiedFlow> flow_;  // null: no seats
  QueueSet::RequestPtr request_;
  base::Clock::SteadyTime arrived_{};
  base::Clock::SteadyTime started_{};
  ExecutionType type_ = ExecutionType::kRegular;
  bool mutating_ = false;
  bool executing_ = false;
};

class Controller {
 public:
  static constexpr std::chrono::seconds kAdjustmentPeriod{10};

  struct Options {
    int server_concurrency_limit = 600;
    MetricFamilies* metrics = nullptr;  // may be null; must outlive every seat
    const base::Clock* clock = &base::Clock::Real();
    async::Deadlines* deadlines = &async::Deadlines::Global();
  };
  // Begins with the mandatory objects in force.
  explicit Controller(const Options& options);
  ~Controller();

  // Takes a configuration in. Levels that are gone go on until they are idle (quiescing). Mandatory objects that are
  // missing are made up.
  void Digest(std::vector<PriorityLevelSpec> levels, std::vector<FlowSchemaSpec> schemas);
  // Every kAdjustmentPeriod: levels lend and borrow by their demand since the last call; idle quiescing ones are
  // dropped.
  void AdjustBorrowing();

  Classification Classify(const request::RequestInfo& info, const request::User& user) const;

  struct Request {
    const request::RequestInfo* info = nullptr;  // for the call only, as is `user`
    const request::User* user = nullptr;
    WorkEstimate work;
    ExecutionType type = ExecutionType::kRegular;
  };
  // When the wait for seats ends without them.
  struct Patience {
    base::Clock::SteadyTime until{};
    // Calls its argument once (any thread) when the client goes; may be empty.
    std::function<void(std::function<void()>)> on_close;
  };
  // Seats that are free, or a place in a queue (then executing() is false), or why there is neither.
  Outcome<Seat, Rejection> Start(const Classification& classification, const Request& request);
  // Waits for the seats of a request that is not executing.
  Awaitable<Outcome<Seat, Rejection>> Wait(Seat seat, Patience patience);
  // Counts a rejection; the Retry-After for it, in seconds.
  std::int64_t RecordDropped(const Classification& classification);

  void ObserveEstimate(const Classification& classification, const WorkEstimate& work) const;
  void ObserveWatchers(const Classification& classification, int watchers) const;
  WatchTracker& watches() { return watches_; }

  struct LevelDump {
    std::string name;
    bool quiescing = false;
    bool queues = false;
    QueueSet::Dump state;
  };
  std::vector<LevelDump> Describe() const;  // by name
  // Before the metrics are shown: the histograms over time count the time until now.
  void FlushMetrics();
  const base::Clock& clock() const;

 private:
  struct Impl;
  static void BeginExecuting(Seat& seat);

  std::unique_ptr<Impl> impl_;
  WatchTracker watches_;
};

}  // namespace keelson::flowcontrol
