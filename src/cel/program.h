// A compiled expression, planned once and evaluated any number of times. Constants are folded when the program is made,
// exactly where the reference does it; evaluation counts the actual cost as the reference's tracker does.
// Thread safety: immutable; evaluations may run at the same time.
// Ownership: a program keeps its environment; the tree it was made of may go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "cel/ast.h"
#include "cel/environment.h"
#include "cel/library_values.h"
#include "cel/temporal.h"
#include "cel/value.h"

namespace keelson::cel {

inline constexpr std::uint64_t kPerCallLimit = 1'000'000;
inline constexpr std::uint32_t kInterruptCheckFrequency = 100;  // iterations of comprehensions

// The variables of an evaluation. Each is looked up at most once.
class Activation {
 public:
  virtual ~Activation() = default;
  // False if there is no such variable. An error value is the result of everything that uses the variable.
  virtual bool Find(Arena& arena, std::string_view name, Val* out) = 0;
};

// A handful of named values.
class ValueActivation final : public Activation {
 public:
  void Set(std::string_view name, const Val& value);  // `name` must outlive this
  bool Find(Arena& arena, std::string_view name, Val* out) override;

 private:
  std::vector<std::pair<std::string_view, Val>> values_;
};

// Stops evaluations of a request that has ended.
class Interrupt {
 public:
  virtual ~Interrupt() = default;
  virtual bool Requested() const = 0;
};

struct EvalOptions {
  std::uint64_t cost_limit = kPerCallLimit;
  const TimeZones* time_zones = nullptr;
  const Interrupt* interrupt = nullptr;
};

struct EvalResult {
  Val value;               // an error value where the evaluation failed
  std::uint64_t cost = 0;  // also of a failed one; the first value above the limit where that was exceeded
  bool cost_exceeded = false;
  bool pending = false;  // an authorizer has no answer yet: evaluate again later

  bool ok() const { return !value.is_error(); }
  std::string_view error() const { return value.is_error() ? value.text() : std::string_view(); }
};

class Program;
using ProgramPtr = std::shared_ptr<const Program>;

class Program {
 public:
  // The error is the reference's text; Kubernetes puts "program instantiation failed: " before it.
  static Outcome<ProgramPtr, std::string> New(const EnvironmentPtr& env, const Ast& ast);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Values of the result live in `arena` and in the program.
  EvalResult Evaluate(Arena& arena, Activation& activation, const EvalOptions& options = {}) const;

  std::span<const std::string_view> variables() const;  // that it reads
  std::size_t bytes() const;                            // of memory

  struct Plan;  // cel/plan.h

 private:
  friend class Planner;
  explicit Program(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

}  // namespace keelson::cel
