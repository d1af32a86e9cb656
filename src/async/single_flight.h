// Joins concurrent calls for the same work (golang.org/x/sync/singleflight), with a rate limit: work that
// unauthenticated clients can cause is started only so many times at once after a quiet time, then once per interval.
// Thread safety: all members from any thread. Ownership: a shared object; work in progress keeps it, and continues when
// its waiters leave.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "async/awaitable.h"
#include "async/event.h"
#include "base/clock.h"

namespace keelson::async {

class SingleFlight : public std::enable_shared_from_this<SingleFlight> {
 public:
  struct Options {
    double burst = 1;                      // rationed starts after a quiet time
    std::chrono::nanoseconds interval{0};  // one more rationed start per interval. REQUIRES: not 0
    const base::Clock* clock = &base::Clock::Real();
  };
  explicit SingleFlight(Options options) : options_(options), left_(options.burst) {}

  enum class Ration : bool { kFree, kRationed };
  using Work = std::function<Awaitable<std::string>()>;  // "" or what went wrong; an exception is an error, too
  // The result of the work under way, or of `work` when there is none; nothing where the ration is used up. `work` must
  // own what it needs.
  Awaitable<std::optional<std::string>> Do(Ration ration, Work work);

 private:
  struct Flight {
    Event done;
    std::string error;
  };
  static Awaitable<void> Run(std::shared_ptr<SingleFlight> self, std::shared_ptr<Flight> flight, Work work);
  bool Take();  // REQUIRES: mutex_ held

  const Options options_;
  std::mutex mutex_;
  std::shared_ptr<Flight> flight_;  // under way
  double left_;
  std::optional<base::Clock::SteadyTime> refilled_;
};

}  // namespace keelson::async
