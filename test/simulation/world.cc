#include "simulation/world.h"

#include <algorithm>
#include <boost/asio/execution.hpp>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace keelson::simulation {
namespace {
constexpr std::size_t kStackBytes = std::size_t{1} << 20;
}

Fiber::Fiber() : stack_(kStackBytes), wait_([this](Time least) { Yield(least); }) {}

Fiber::~Fiber() { KS_CHECK(!busy_); }

// makecontext() passes integers only.
void Fiber::Loop(unsigned low, unsigned high) {
  auto* const self = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
  std::exchange(self->work_, nullptr)();
  self->busy_ = false;
  ::setcontext(&self->main_);
}

void Fiber::Switch() {
  running_ = true;
  Disk::Waits(&wait_);
  ::swapcontext(&main_, &own_);
  Disk::Waits(nullptr);
  running_ = false;
  if (!busy_) {
    if (on_end) on_end();
  } else if (on_yield) {
    on_yield(least_);
  }
}

void Fiber::Start(Work work) {
  KS_CHECK(!busy_);
  busy_ = true;
  work_ = std::move(work);
  KS_CHECK(::getcontext(&own_) == 0);
  own_.uc_stack.ss_sp = stack_.data();
  own_.uc_stack.ss_size = stack_.size();
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&own_, reinterpret_cast<void (*)()>(&Loop), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
  Switch();
}

void Fiber::Resume() {
  KS_CHECK(busy_ && !running_);
  Switch();
}

void Fiber::Yield(Time least) {
  KS_CHECK(running_);
  if (hurry) return;
  least_ = least;
  ::swapcontext(&own_, &main_);
}

void World::Die(const char* why) const {
  std::fprintf(stderr, "KEELSON_SIMULATION_SEED=%llu %s\n", static_cast<unsigned long long>(seed_), why);
  std::abort();
}

Time World::Exponential(Time mean) {
  const double drawn = -std::log(1.0 - random_->Unit());
  return Time(static_cast<std::int64_t>(drawn * static_cast<double>(mean.count())));
}

void World::At(Time time, int owner, Work work) {
  events_.emplace(std::pair(std::max(time, now()), ++last_id_), Event{owner, std::move(work)});
}

std::vector<Work> World::Take(int owner) {
  std::vector<Work> taken;
  for (auto at = events_.begin(); at != events_.end();) {
    if (at->second.owner != owner) {
      ++at;
      continue;
    }
    taken.push_back(std::move(at->second.work));
    at = events_.erase(at);
  }
  return taken;
}

bool World::Step() {
  if (events_.empty()) return false;
  auto first = events_.extract(events_.begin());
  clock_.now = first.key().first;
  ++steps_;
  first.mapped().work();
  return true;
}

namespace {

// An executor in Asio's sense.
class LaneExecutor {
 public:
  LaneExecutor(Lanes& lanes, std::size_t lane, boost::asio::io_context& context)
      : lanes_(&lanes), lane_(lane), context_(&context) {}
  bool operator==(const LaneExecutor& other) const noexcept { return lanes_ == other.lanes_ && lane_ == other.lane_; }
  bool operator!=(const LaneExecutor& other) const noexcept { return !(*this == other); }
  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept { return *context_; }
  static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  LaneExecutor require(boost::asio::execution::blocking_t::never_t) const { return *this; }
  template <class F>
  void execute(F&& f) const {
    lanes_->Post(lane_, Work(std::forward<F>(f)));
  }

 private:
  Lanes* lanes_;
  std::size_t lane_;
  boost::asio::io_context* context_;
};

constexpr Time kHandlerMost = std::chrono::microseconds(200);

}  // namespace

Lanes::Lanes(World& world, int owner, int count)
    : world_(world), owner_(owner), last_(static_cast<std::size_t>(count)) {}
Lanes::~Lanes() = default;

boost::asio::any_io_executor Lanes::executor(std::size_t lane) { return LaneExecutor(*this, lane, context_); }

void Lanes::Post(std::size_t lane, Work work) {
  std::lock_guard guard(mutex_);
  if (draining_) {
    drained_.push_back(std::move(work));
    return;
  }
  last_[lane] = std::max(last_[lane], world_.now() + world_.Between(Time(0), kHandlerMost));
  world_.At(last_[lane], owner_, std::move(work));
}

void Lanes::StartDrain() {
  std::lock_guard guard(mutex_);
  draining_ = true;
  for (Work& work : world_.Take(owner_)) drained_.push_back(std::move(work));
}

bool Lanes::DrainOne() {
  Work work;
  {
    std::lock_guard guard(mutex_);
    if (drained_.empty()) return false;
    work = std::move(drained_.front());
    drained_.pop_front();
  }
  work();
  return true;
}

}  // namespace keelson::simulation
