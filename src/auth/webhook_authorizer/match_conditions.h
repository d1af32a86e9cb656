// Match conditions of authorization webhooks: CEL over the review's spec as `request`. Compiled once per configuration.
// Thread safety: const members from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "auth/authorizer.h"
#include "base/outcome.h"

namespace keelson::cel {
class TimeZones;  // cel/temporal.h
}
namespace keelson::auth {

class MatchConditions {
 public:
  // The error of the first expression that does not compile: `compilation failed: ...`, `must evaluate to bool but got
  // string`.
  // `time_zones` must outlive the conditions; null: no named zone is known.
  static Outcome<std::shared_ptr<const MatchConditions>, std::string> Compile(
      std::span<const std::string> expressions, const cel::TimeZones* time_zones = nullptr);
  ~MatchConditions();

  // False when one condition is false. The error lists those that failed, when none is false.
  Outcome<bool, std::string> Matches(const Attributes& attributes) const;

 private:
  struct Impl;
  explicit MatchConditions(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::auth
