// Named places where a test can make something go wrong: KS_FAILPOINT("kv/rocks/before-sync").
// A failpoint that is not armed costs one relaxed load. Armed by tests, or by
// KEELSON_FAILPOINTS="name=action;name=action" with the actions `crash` (exit at once, as kill -9 would) and `crash:N`
// (at the Nth pass).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

namespace keelson::base {

class Failpoints {
 public:
  // Runs the armed action. True if the caller is to fail.
  static bool Hit(std::string_view name);
  static void Arm(std::string name, std::function<bool()> action);  // an empty action disarms
  static void ArmFromEnvironment();
  static bool any_armed() { return any_armed_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<bool> any_armed_;
};

}  // namespace keelson::base

// True when the place should fail.
#define KS_FAILPOINT(name) (::keelson::base::Failpoints::any_armed() && ::keelson::base::Failpoints::Hit(name))
