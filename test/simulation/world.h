// Time and threads of a simulation. Everything happens on one thread, as events in the order of a simulated clock that
// jumps from one to the next; the seed chooses every delay. The store's writer has its own stack (Fiber), so that
// other events can happen in the middle of a commit.
// Thread safety: one thread, but for Post() while Drain() runs.
#pragma once

#include <ucontext.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/seeded_random.h"
#include "simulation/disk.h"

namespace keelson::simulation {

using Time = std::chrono::nanoseconds;  // since the simulation began
using Work = std::move_only_function<void()>;

class SimulatedClock final : public base::Clock {
 public:
  SystemTime Now() const override {
    return SystemTime(std::chrono::hours(24 * 365 * 56)) + std::chrono::duration_cast<SystemTime::duration>(now + skew);
  }
  SteadyTime Monotonic() const override { return SteadyTime(std::chrono::hours(1)) + now; }
  Time now{0};
  Time skew{0};  // of the wall clock
};

// Work on its own stack, which stops in Yield() until Resume(). Switches do not involve the operating system's
// scheduler.
class Fiber {
 public:
  Fiber();
  ~Fiber();  // REQUIRES: idle

  bool busy() const { return busy_; }
  bool running() const { return running_; }
  // Until the work yields or ends. REQUIRES: !busy().
  void Start(Work work);
  void Resume();  // REQUIRES: busy(), not running().
  // In the work: waits for at least so long. Nothing while `hurry` is set. REQUIRES: running().
  void Yield(Time least);

  std::function<void(Time least)> on_yield;  // after a switch back
  std::function<void()> on_end;
  bool hurry = false;

 private:
  static void Loop(unsigned low, unsigned high);
  void Switch();

  std::vector<char> stack_;
  ucontext_t main_{};
  ucontext_t own_{};
  Disk::WaitFunction wait_;
  Work work_;
  Time least_{0};
  bool busy_ = false;
  bool running_ = false;
};

class World {
 public:
  explicit World(std::uint64_t seed) : seed_(seed), random_(base::Seeded(seed)) {}

  // Ends the process with the seed: for threads that cannot go on.
  [[noreturn]] void Die(const char* why) const;
  SimulatedClock& clock() { return clock_; }
  Time now() const { return clock_.now; }
  base::Random& random() { return *random_; }
  bool Chance(std::uint64_t one_in) { return random_->Below(one_in) == 0; }
  Time Between(Time least, Time most) {
    return least + Time(random_->Below(static_cast<std::uint64_t>((most - least).count()) + 1));
  }
  Time Exponential(Time mean);

  // `owner`: Take(owner) takes back what was not done.
  void At(Time time, int owner, Work work);
  void After(Time delay, int owner, Work work) { At(now() + delay, owner, std::move(work)); }
  std::vector<Work> Take(int owner);
  // The next event, if there is one.
  bool Step();
  std::uint64_t steps() const { return steps_; }

  // Adds to the trace by which two runs are compared.
  void Trace(std::uint64_t value) {
    if (trace)
      std::fprintf(stderr, "%12.6f trace %llu\n", std::chrono::duration<double>(now()).count(),
                   static_cast<unsigned long long>(value));
    hash_ = (hash_ ^ value ^ static_cast<std::uint64_t>(now().count())) * 0x9E3779B97F4A7C15ULL;
    hash_ ^= hash_ >> 29;
  }
  bool trace = false;
  std::uint64_t hash() const { return hash_; }

 private:
  struct Event {
    int owner;
    Work work;
  };
  const std::uint64_t seed_;
  SimulatedClock clock_;
  std::unique_ptr<base::Random> random_;
  std::map<std::pair<Time, std::uint64_t>, Event> events_;
  std::uint64_t last_id_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t hash_ = 0;
};

// The I/O threads of one server: each a queue whose handlers run in order, some time after they were posted. While it
// drains, handlers run at once, and may be posted from any thread.
class Lanes {
 public:
  Lanes(World& world, int owner, int count);
  ~Lanes();

  boost::asio::any_io_executor executor(std::size_t lane);
  std::size_t size() const { return last_.size(); }
  void Post(std::size_t lane, Work work);
  void StartDrain();
  bool DrainOne();  // false: there was nothing

 private:
  World& world_;
  const int owner_;
  boost::asio::io_context context_;  // what executors name; never run
  std::vector<Time> last_;           // when the last handler of each lane is due
  std::mutex mutex_;
  bool draining_ = false;
  std::deque<Work> drained_;
};

}  // namespace keelson::simulation
