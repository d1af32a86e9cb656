// client-go's rate limiting work queue: keys that something changed about, each processed by one worker at a time. A
// key that is added while it is being processed is processed again afterwards. Workers are coroutines that exist while
// there is work; an idle queue has no timer.
// Thread safety: none, everything on the queue's executor, which must run one thing at a time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "async/awaitable.h"
#include "async/gate.h"
#include "base/clock.h"
#include "base/hash.h"
#include "telemetry/metrics.h"

namespace keelson::controllers {

// workqueue_*, shared by all queues. Ownership: the registry must outlive this and the queues.
class WorkQueueMetrics {
 public:
  explicit WorkQueueMetrics(telemetry::MetricsRegistry& registry);

 private:
  friend class WorkQueue;
  telemetry::CounterVec& adds_;
  telemetry::GaugeVec& depth_;
  telemetry::GaugeVec& longest_running_;
  telemetry::HistogramVec& queue_duration_;
  telemetry::CounterVec& retries_;
  telemetry::GaugeVec& unfinished_;
  telemetry::HistogramVec& work_duration_;
};

// Since when a controller works on what it has not finished, over all its queues. Thread safety: all members from any
// thread.
class WorkHealth {
 public:
  void Begin(base::Clock::SteadyTime at);
  void End(base::Clock::SteadyTime begun);
  // The message of the health check: one key has been worked on for longer than kStuckAfter. "" when healthy.
  std::string Problem(base::Clock::SteadyTime now) const;
  static constexpr std::chrono::minutes kStuckAfter{10};

 private:
  mutable std::mutex mutex_;
  std::multiset<base::Clock::SteadyTime> begun_;  // as many as there are workers at most
};

// How long a key that failed waits (DefaultTypedControllerRateLimiter): the longer of an exponential delay per key and
// what an overall token bucket allows.
class RateLimiter {
 public:
  struct Options {
    std::chrono::nanoseconds base = std::chrono::milliseconds(5);
    std::chrono::nanoseconds max = std::chrono::seconds(1000);
    double per_second = 10;  // the bucket's
    double burst = 100;
  };
  explicit RateLimiter(Options options) : options_(options), tokens_(options.burst) {}

  std::chrono::nanoseconds When(const std::string& key, base::Clock::SteadyTime now);
  void Forget(const std::string& key) { failures_.erase(key); }

 private:
  std::chrono::nanoseconds TakeToken(base::Clock::SteadyTime now);

  const Options options_;
  base::StringMap<std::size_t> failures_;
  double tokens_;
  base::Clock::SteadyTime filled_{};
};

class WorkQueue : public std::enable_shared_from_this<WorkQueue> {
 public:
  // Next action for a processed key: forget it, retry with backoff, or process it again after a delay.
  struct Result {
    enum class Action : std::uint8_t { kForget, kRetry, kAfter };
    Action action = Action::kForget;
    std::chrono::nanoseconds delay{0};  // of kAfter, which keeps the key's failures

    static Result Done() { return {}; }
    static Result Retry() { return {Action::kRetry, {}}; }
    static Result After(std::chrono::nanoseconds delay) { return {Action::kAfter, delay}; }
  };
  using Sync = std::function<Awaitable<Result>(std::string key)>;
  // Calls a function on the executor at about that time.
  using CallAt = std::function<std::shared_ptr<void>(base::Clock::SteadyTime at, std::function<void()> callback)>;
  struct Options {
    std::string name;  // the metrics' label
    std::size_t workers = 1;
    RateLimiter::Options rate_limit;
    const base::Clock* clock = &base::Clock::Real();
    WorkQueueMetrics* metrics = nullptr;  // null: nothing is counted
    std::shared_ptr<WorkHealth> health;   // null: not reported
    async::Gate* gate = nullptr;          // entered by every worker; must outlive the queue. Null: no waiting
    CallAt call_at;                       // null: async::Deadlines; the callback is forgotten with the token
  };

  static std::shared_ptr<WorkQueue> New(asio::any_io_executor executor, Options options, Sync sync);

  void Add(std::string key);
  void AddAfter(std::string key, std::chrono::nanoseconds delay);
  void AddRateLimited(std::string key);
  // Keys wait and nothing is processed until it is opened: for controllers whose caches are not filled yet.
  void Open();
  // No key is processed any more; what is being processed runs to its end.
  void ShutDown();
  bool idle() const { return ready_.empty() && processing_.empty() && waiting_.empty(); }
  std::size_t depth() const { return ready_.size(); }

 private:
  struct Waiting {
    base::Clock::SteadyTime at;
    std::string key;
    auto operator<=>(const Waiting&) const = default;
  };
  WorkQueue(asio::any_io_executor executor, Options options, Sync sync);
  static Awaitable<void> Work(std::shared_ptr<WorkQueue> self, std::optional<async::Gate::Entry> held);
  void Push(std::string key);
  void Finish(const std::string& key, const Result& result);
  void StartWorkers();
  void ArmTimer();
  void OnTimer();
  void CountDepth();
  void CountUnfinished();
  base::Clock::SteadyTime Now() const { return options_.clock->Monotonic(); }

  asio::any_io_executor executor_;
  Options options_;
  Sync sync_;
  RateLimiter limiter_;
  std::deque<std::pair<std::string, base::Clock::SteadyTime>> ready_;  // with the time it was added
  base::StringSet dirty_;                                              // ready, or to be made ready when it is done
  base::StringMap<base::Clock::SteadyTime> processing_;                // since
  std::set<Waiting> waiting_;
  base::StringMap<base::Clock::SteadyTime> waiting_at_;
  std::shared_ptr<void> timer_;
  base::Clock::SteadyTime timer_at_{};
  std::size_t running_ = 0;  // workers
  bool open_ = false;
  bool shut_down_ = false;
};

// Calls `callback` on `executor` once the real clock has reached `at`, unless the token is gone by then.
std::shared_ptr<void> CallAtDeadline(asio::any_io_executor executor, base::Clock::SteadyTime at,
                                     std::function<void()> callback);

}  // namespace keelson::controllers
