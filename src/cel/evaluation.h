// State of one evaluation that functions may use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cel/temporal.h"
#include "cel/value.h"

namespace keelson::cel {

class Evaluation {
 public:
  Evaluation(Arena& arena, const TimeZones* zones) : arena(arena), zones(zones) {}

  Arena& arena;
  const TimeZones* zones;

  Val Error(std::string_view message) { return ErrorIn(arena, message); }
  Val String(std::string_view text) { return Val::String(arena.Copy(text)); }  // a copy

  // Ends the evaluation with `message`, where the reference panics.
  Val Stop(std::string_view message) {
    if (!stopped_) stop_message_ = arena.Copy(message);
    stopped_ = true;
    return Val::Error(stop_message_);
  }
  Val Internal(std::string_view message) { return Stop("internal error: " + std::string(message)); }
  Val Pending() {
    pending_ = true;
    return Stop("authorization decision is pending");
  }
  bool stopped() const { return stopped_; }
  bool pending() const { return pending_; }
  std::string_view stop_message() const { return stop_message_; }

  // Units that may still be spent: allocations that are charged afterwards check it first.
  virtual std::uint64_t remaining_cost() const { return UINT64_MAX; }
  // Ends the evaluation as if `cost`, which is above the limit, had been charged.
  virtual Val ExceedCost(std::uint64_t cost) = 0;

 protected:
  ~Evaluation() = default;
  bool stopped_ = false;
  bool pending_ = false;
  std::string_view stop_message_;
};

}  // namespace keelson::cel
