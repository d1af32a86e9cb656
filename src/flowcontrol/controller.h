// Priority and fairness at work: the configuration in force, seats for requests, borrowing between levels.
//
// Thread safety: all members from any thread. Classification reads an immutable snapshot; a request takes the mutex of
// its own level only. Ownership: seats share what they need, so they may outlive a configuration and the controller.
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

 private:
  friend class Controller;
  struct State;
  std::unique_ptr<State> state_;
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
    const request::RequestInfo* info = nullptr;  // until Acquire() returns, as is `user`
    const request::User* user = nullptr;
    WorkEstimate work;
    ExecutionType type = ExecutionType::kRegular;
    base::Clock::SteadyTime wait_until{};
    // Calls its argument once (any thread) when the client goes; may be empty.
    std::function<void(std::function<void()>)> on_close;
  };
  // Waits for seats: until they are there, the level rejects, `wait_until` passes or the client goes.
  Awaitable<Outcome<Seat, Rejection>> Acquire(Classification classification, Request request);
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
  // Borrowing's results by level name, for tests and metrics.
  std::optional<BorrowingLevel> LimitsOf(std::string_view level) const;
  // Before the metrics are shown: the histograms over time count the time until now.
  void FlushMetrics();
  const base::Clock& clock() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  WatchTracker watches_;
};

}  // namespace keelson::flowcontrol
