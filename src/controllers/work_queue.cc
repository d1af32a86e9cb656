#include "controllers/work_queue.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <cmath>
#include <exception>

#include "async/deadlines.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

using std::chrono::nanoseconds;

double Seconds(base::Clock::SteadyTime::duration duration) { return std::chrono::duration<double>(duration).count(); }

// One call that may be forgotten before it is made.
struct Call {
  std::function<void()> callback;
  async::Deadlines::Entry entry;
};

}  // namespace

WorkQueueMetrics::WorkQueueMetrics(telemetry::MetricsRegistry& registry)
    : adds_(registry.Counters({.name = "workqueue_adds_total",
                               .help = "Total number of adds handled by workqueue",
                               .stability = telemetry::Stability::kBeta,
                               .labels = {"name"}})),
      depth_(registry.Gauges({.name = "workqueue_depth",
                              .help = "Current depth of workqueue",
                              .stability = telemetry::Stability::kBeta,
                              .labels = {"name"}})),
      longest_running_(registry.Gauges({.name = "workqueue_longest_running_processor_seconds",
                                        .help = "How many seconds has the longest running processor for workqueue "
                                                "been running.",
                                        .stability = telemetry::Stability::kBeta,
                                        .labels = {"name"}})),
      queue_duration_(registry.Histograms({.name = "workqueue_queue_duration_seconds",
                                           .help = "How long in seconds an item stays in workqueue before being "
                                                   "requested.",
                                           .stability = telemetry::Stability::kBeta,
                                           .labels = {"name"},
                                           .buckets = telemetry::ExponentialBuckets(10e-9, 10, 12)})),
      retries_(registry.Counters({.name = "workqueue_retries_total",
                                  .help = "Total number of retries handled by workqueue",
                                  .stability = telemetry::Stability::kBeta,
                                  .labels = {"name"}})),
      unfinished_(registry.Gauges({.name = "workqueue_unfinished_work_seconds",
                                   .help = "How many seconds of work has done that is in progress and hasn't been "
                                           "observed by work_duration. Large values indicate stuck threads. One can "
                                           "deduce the number of stuck threads by observing the rate at which this "
                                           "increases.",
                                   .stability = telemetry::Stability::kBeta,
                                   .labels = {"name"}})),
      work_duration_(registry.Histograms({.name = "workqueue_work_duration_seconds",
                                          .help = "How long in seconds processing an item from workqueue takes.",
                                          .stability = telemetry::Stability::kBeta,
                                          .labels = {"name"},
                                          .buckets = telemetry::ExponentialBuckets(10e-9, 10, 12)})) {}

nanoseconds RateLimiter::TakeToken(base::Clock::SteadyTime now) {
  if (filled_ == base::Clock::SteadyTime()) filled_ = now;
  tokens_ = std::min(options_.burst, tokens_ + Seconds(now - filled_) * options_.per_second);
  filled_ = now;
  tokens_ -= 1;
  if (tokens_ >= 0) return nanoseconds(0);
  return nanoseconds(static_cast<std::int64_t>(-tokens_ / options_.per_second * 1e9));
}

nanoseconds RateLimiter::When(const std::string& key, base::Clock::SteadyTime now) {
  const std::size_t failures = failures_[key]++;
  const double delay = static_cast<double>(options_.base.count()) * std::pow(2.0, static_cast<double>(failures));
  const nanoseconds own =
      delay > static_cast<double>(options_.max.count()) ? options_.max : nanoseconds(static_cast<std::int64_t>(delay));
  return std::max(own, TakeToken(now));
}

std::shared_ptr<void> CallAtDeadline(asio::any_io_executor executor, base::Clock::SteadyTime at,
                                     std::function<void()> callback) {
  auto call = std::make_shared<Call>();
  call->callback = std::move(callback);
  call->entry = async::Deadlines::Global().Add(at, [executor, weak = std::weak_ptr(call)] {
    asio::post(executor, [weak] {
      if (const auto held = weak.lock()) held->callback();
    });
  });
  return call;
}

WorkQueue::WorkQueue(asio::any_io_executor executor, Options options, Sync sync)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      sync_(std::move(sync)),
      limiter_(options_.rate_limit) {
  if (!options_.call_at) {
    options_.call_at = [executor = executor_](base::Clock::SteadyTime at, std::function<void()> callback) {
      return CallAtDeadline(executor, at, std::move(callback));
    };
  }
}

void WorkHealth::Begin(base::Clock::SteadyTime at) {
  const std::scoped_lock lock(mutex_);
  begun_.insert(at);
}

void WorkHealth::End(base::Clock::SteadyTime begun) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = begun_.find(begun); found != begun_.end()) begun_.erase(found);
}

std::string WorkHealth::Problem(base::Clock::SteadyTime now) const {
  const std::scoped_lock lock(mutex_);
  if (begun_.empty() || now - *begun_.begin() <= kStuckAfter) return "";
  const auto minutes = std::chrono::floor<std::chrono::minutes>(now - *begun_.begin());
  return "one item has been worked on for " + std::to_string(minutes.count()) + " minutes";
}

std::shared_ptr<WorkQueue> WorkQueue::New(asio::any_io_executor executor, Options options, Sync sync) {
  return std::shared_ptr<WorkQueue>(new WorkQueue(std::move(executor), std::move(options), std::move(sync)));
}

void WorkQueue::CountDepth() {
  if (options_.metrics != nullptr)
    options_.metrics->depth_.With({options_.name}).Set(static_cast<double>(ready_.size()));
}

// client-go updates these every half second; here they are exact when something starts or ends.
void WorkQueue::CountUnfinished() {
  if (options_.metrics == nullptr) return;
  double total = 0, longest = 0;
  for (const auto& [key, since] : processing_) {
    const double seconds = Seconds(Now() - since);
    total += seconds;
    longest = std::max(longest, seconds);
  }
  options_.metrics->unfinished_.With({options_.name}).Set(total);
  options_.metrics->longest_running_.With({options_.name}).Set(longest);
}

void WorkQueue::Push(std::string key) {
  ready_.emplace_back(std::move(key), Now());
  CountDepth();
  StartWorkers();
}

void WorkQueue::Add(std::string key) {
  if (shut_down_ || !dirty_.insert(key).second) return;
  if (options_.metrics != nullptr) options_.metrics->adds_.With({options_.name}).Inc();
  if (!processing_.contains(key)) Push(std::move(key));
}

void WorkQueue::AddAfter(std::string key, nanoseconds delay) {
  if (shut_down_) return;
  if (options_.metrics != nullptr) options_.metrics->retries_.With({options_.name}).Inc();
  if (delay.count() <= 0) return Add(std::move(key));
  const auto at = Now() + std::chrono::duration_cast<base::Clock::SteadyTime::duration>(delay);
  const auto [known, added] = waiting_at_.try_emplace(key, at);
  if (!added) {
    if (known->second <= at) return;  // the earlier time counts
    waiting_.erase({known->second, key});
    known->second = at;
  }
  waiting_.insert({at, std::move(key)});
  ArmTimer();
}

void WorkQueue::AddRateLimited(std::string key) {
  const nanoseconds delay = limiter_.When(key, Now());
  AddAfter(std::move(key), delay);
}

void WorkQueue::ArmTimer() {
  if (waiting_.empty()) {
    timer_.reset();
    return;
  }
  const auto first = waiting_.begin()->at;
  if (timer_ && timer_at_ == first) return;
  timer_at_ = first;
  timer_ = options_.call_at(first, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->OnTimer();
  });
}

void WorkQueue::OnTimer() {
  timer_.reset();
  const auto now = Now();
  while (!waiting_.empty() && waiting_.begin()->at <= now) {
    std::string key = waiting_.begin()->key;
    waiting_.erase(waiting_.begin());
    waiting_at_.erase(key);
    Add(std::move(key));
  }
  ArmTimer();
}

void WorkQueue::Open() {
  open_ = true;
  StartWorkers();
}

void WorkQueue::ShutDown() {
  shut_down_ = true;
  ready_.clear();
  dirty_.clear();
  waiting_.clear();
  waiting_at_.clear();
  timer_.reset();
  CountDepth();
}

void WorkQueue::StartWorkers() {
  if (!open_ || shut_down_) return;
  // Each new worker takes one key: no more workers than keys.
  while (running_ < options_.workers && running_ < ready_.size() + processing_.size()) {
    std::optional<async::Gate::Entry> held;
    if (options_.gate != nullptr && !(held = options_.gate->Enter())) return;
    ++running_;
    auto work = Work(shared_from_this(), std::move(held));
    asio::co_spawn(executor_, std::move(work), asio::detached);
  }
}

Awaitable<void> WorkQueue::Work(std::shared_ptr<WorkQueue> self, std::optional<async::Gate::Entry> held) {
  // Not within Add(): its caller may be in the middle of a change.
  co_await asio::post(self->executor_, asio::use_awaitable);
  while (!self->ready_.empty()) {
    auto [key, added] = std::move(self->ready_.front());
    self->ready_.pop_front();
    self->dirty_.erase(key);
    const auto begun = self->Now();
    self->processing_[key] = begun;
    if (self->options_.health) self->options_.health->Begin(begun);
    self->CountDepth();
    WorkQueueMetrics* const metrics = self->options_.metrics;
    if (metrics != nullptr) metrics->queue_duration_.With({self->options_.name}).Observe(Seconds(begun - added));
    Result result = Result::Retry();
    try {
      result = co_await self->sync_(key);
    } catch (const std::exception& error) {
      log::Error("Work failed", "queue", self->options_.name, "key", key, "err", error.what());
    }
    if (metrics != nullptr) metrics->work_duration_.With({self->options_.name}).Observe(Seconds(self->Now() - begun));
    if (self->options_.health) self->options_.health->End(begun);
    self->Finish(key, result);
    // Others use this thread, too.
    co_await asio::post(self->executor_, asio::use_awaitable);
  }
  --self->running_;
  (void)held;
}

void WorkQueue::Finish(const std::string& key, const Result& result) {
  processing_.erase(key);
  CountUnfinished();
  if (shut_down_) return;
  if (dirty_.contains(key)) Push(key);
  if (result.action == Result::Action::kForget) limiter_.Forget(key);
  if (result.action == Result::Action::kRetry) AddRateLimited(key);
  if (result.action == Result::Action::kAfter) AddAfter(key, result.delay);
}

}  // namespace keelson::controllers
