// Calls functions at about a given time, for many waiters at little cost each: one thread, one ordered map, a
// resolution of kResolution. For watches' time-outs and the like, where a timer per waiter would cost more than the
// waiter. Thread safety: all members from any thread. Callbacks run on the deadline thread and must be quick.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"

namespace keelson::async {

class Deadlines {
 public:
  static constexpr std::chrono::milliseconds kResolution{5};

  // Forgets the callback when it is destroyed (a call that is under way may still finish).
  class Entry {
   public:
    Entry() = default;
    Entry(Entry&& other) noexcept;
    Entry& operator=(Entry&& other) noexcept;
    ~Entry();

   private:
    friend class Deadlines;
    Deadlines* owner_ = nullptr;
    base::Clock::SteadyTime at_{};
    std::uint64_t id_ = 0;
  };

  Deadlines();
  ~Deadlines();
  Entry Add(base::Clock::SteadyTime at, std::function<void()> callback);
  static Deadlines& Global();  // started on first use

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::async
