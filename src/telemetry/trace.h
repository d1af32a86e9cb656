// What a slow operation spent its time on: steps and nested traces, logged in one piece when the whole took longer than
// a threshold.
//   Trace trace(clock, random, "List", {{"url", path}});
//   ...
//   trace.Step("Listing from storage done", {{"count", n}});
//   trace.LogIfLong(std::chrono::milliseconds{500});
// Below the threshold nothing is formatted; a step costs one clock read and one small append.
// Thread safety: one trace belongs to one request; not from several threads at once. A nested trace is owned by its
// parent and must not be used after the parent's end.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace keelson::telemetry {

using TraceField = std::pair<std::string_view, std::string>;  // the key must be a literal

class Trace {
 public:
  static constexpr std::size_t kItemsMax = 256;  // Steps and nested traces; more are not recorded.

  Trace(const base::Clock& clock, std::string_view name,
        std::initializer_list<TraceField> fields = {});  // `clock` outlives this.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void AddField(std::string_view key, std::string value);  // "resource", known only after the path was read
  void Step(std::string_view message, std::initializer_list<TraceField> fields = {});  // at the end of what it names
  Trace& Nest(std::string_view name, std::initializer_list<TraceField> fields = {});

  // Ends the trace. A nested one is written with its root; the root writes at V(2) if it, or any nested one, took as
  // long as its threshold. `random` numbers the lines of one trace so that they can be told from another's.
  void LogIfLong(std::chrono::nanoseconds threshold, base::Random& random = base::Random::Real());

  std::chrono::nanoseconds TotalTime() const;

 private:
  struct Item;
  void WriteIfLong(base::Random& random) const;
  void WriteItems(std::string& out, const std::string& prefix,
                  std::optional<std::chrono::nanoseconds> step_threshold) const;
  void WriteNested(std::string& out, const std::string& prefix,
                   std::optional<std::chrono::nanoseconds> step_threshold) const;
  bool IsLong() const;
  std::optional<std::chrono::nanoseconds> StepThreshold() const;

  const base::Clock& clock_;
  Trace* parent_ = nullptr;
  std::string name_;
  std::vector<TraceField> fields_;
  base::Clock::SystemTime start_;
  base::Clock::SteadyTime start_steady_;
  std::optional<std::chrono::nanoseconds> total_;  // set when ended
  std::optional<std::chrono::nanoseconds> threshold_;
  std::vector<Item> items_;
};

}  // namespace keelson::telemetry
