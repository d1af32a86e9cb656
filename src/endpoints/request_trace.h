// What a slow request spent its time on: steps by upstream's names, written to the log at V(2) when the request took
// half a second or longer. Recording a step costs a clock read; text is made only for a request that was slow.
// Thread safety: the request's own coroutine, and the connection's thread once the response has been given over.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"

namespace keelson::endpoints {

struct Exchange;  // endpoints/exchange.h

class RequestTrace {
 public:
  static constexpr std::chrono::milliseconds kThreshold{500};
  static constexpr std::size_t kStepsMax = 12;  // no handler has more

  // From here on time counts, when the log would show it. `operation` is upstream's name of the span: Get, Create, ...
  void Start(std::string_view operation, const base::Clock& clock = base::Clock::Real());  // a literal
  // At the end of what `message` (a literal) names. `count`, if any, is told as `unit` ("len", "count").
  void Step(std::string_view message, std::string_view unit = {}, std::int64_t count = 0);
  bool started() const { return clock_ != nullptr; }
  // Ends it with the response's end; writes to the log if it took long.
  void Finish(const Exchange& exchange, base::Random& random = base::Random::Real()) const;

 private:
  struct Item {
    std::string_view message;
    std::string_view unit;
    std::int64_t count = 0;
    base::Clock::SteadyTime at;
  };
  // Atomic: a handler that ran into its deadline may go on on another thread while the 504 is written.
  std::atomic<const base::Clock*> clock_ = nullptr;
  std::string_view operation_;
  base::Clock::SteadyTime start_;
  std::array<Item, kStepsMax> steps_;
  std::atomic<std::size_t> size_ = 0;
};

}  // namespace keelson::endpoints
