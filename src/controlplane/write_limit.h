// Rate limit for writes of one object, for controllers whose writes another server may undo: without it two servers
// that disagree write for ever (upstream's shouldDelayUpdate). Thread safety: the owner's.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <string>

#include "base/clock.h"

namespace keelson::controlplane {

class WriteLimit {
 public:
  static constexpr std::size_t kWritesMax = 6;  // in one window
  static constexpr std::chrono::minutes kWindow{1};

  // Counts a write of `name` at `now`. False, and nothing is counted, when there were kWritesMax in the window before.
  bool Take(const std::string& name, base::Clock::SteadyTime now) {
    auto& times = writes_[name];
    while (!times.empty() && now - times.front() > kWindow) times.pop_front();
    if (times.size() >= kWritesMax) return false;
    times.push_back(now);
    return true;
  }
  void Forget(const std::string& name) { writes_.erase(name); }

 private:
  std::map<std::string, std::deque<base::Clock::SteadyTime>> writes_;  // at most kWritesMax each, oldest first
};

}  // namespace keelson::controlplane
