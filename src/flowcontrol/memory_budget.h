// --memory-limit: how many bytes of responses may be under way at once, so that the process stays below a limit. A
// request takes its estimate before it is served and gives it back when its response has ended; one that does not fit
// beside the memory in use is refused, to be sent again.
// Thread safety: all members from any thread. Ownership: reservations keep the budget.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "flowcontrol/work_estimator.h"

namespace keelson::flowcontrol {

class MemoryBudget : public std::enable_shared_from_this<MemoryBudget> {
 public:
  struct Options {
    std::int64_t limit_bytes = 0;
    std::function<std::int64_t()> memory_in_use;  // of the process, in bytes
    std::function<void()> release;                // gives freed memory back to the system; may take a while
    const base::Clock* clock = &base::Clock::Real();
  };
  // The memory in use is sampled at most this often.
  static constexpr std::chrono::milliseconds kSampleAge{20};
  // Freed memory is given back this often at most, when requests are refused for want of it.
  static constexpr std::chrono::seconds kReleaseAge{1};

  explicit MemoryBudget(Options options);

  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept : budget_(std::move(other.budget_)), bytes_(other.bytes_) {}
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation() { Release(); }
    void Release();

   private:
    friend class MemoryBudget;
    Reservation(std::shared_ptr<MemoryBudget> budget, std::int64_t bytes) : budget_(std::move(budget)), bytes_(bytes) {}
    std::shared_ptr<MemoryBudget> budget_;
    std::int64_t bytes_ = 0;
  };

  // None when `bytes` do not fit. An estimate above half of what was free at the start counts as that half: large
  // responses are streamed, and one that alone exceeds the budget must be served some time.
  std::optional<Reservation> Reserve(std::int64_t bytes);

  std::int64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }

 private:
  std::int64_t MemoryInUse();
  void MaybeRelease();

  const Options options_;
  const std::int64_t estimate_max_;
  std::atomic<std::int64_t> reserved_{0};
  std::atomic<std::int64_t> in_use_{0};
  std::atomic<std::int64_t> sampled_{0};   // steady clock, nanoseconds
  std::atomic<std::int64_t> released_{0};  // the same
};

// Bytes that the response of a request may need while it is made: lists and initial events of watches by what is
// stored, writes by the body that was announced.
std::int64_t EstimateResponseBytes(const request::RequestInfo& info, std::string_view raw_query,
                                   const std::optional<ObjectStats>& stats, std::int64_t body_bytes);

}  // namespace keelson::flowcontrol
