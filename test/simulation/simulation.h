// A simulated cluster: one server that is killed and started again, clients that write, read and watch, and faults, all
// chosen by one seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simulation/disk.h"
#include "simulation/model.h"
#include "simulation/server.h"
#include "simulation/world.h"

namespace keelson::simulation {

struct Statistics {
  std::uint64_t writes = 0, acknowledged = 0, refused = 0, unknown = 0;
  std::uint64_t gets = 0, lists = 0, watches = 0, events = 0, bookmarks = 0, expired = 0;
  std::uint64_t power_losses = 0, kills = 0, restarts = 0, crashes_in_recovery = 0, failed_starts = 0;
  std::uint64_t full_disks = 0, slow_disks = 0, failed_syncs = 0, failed_commits = 0, clock_jumps = 0,
                connections_lost = 0;
  std::uint64_t lying_disks = 0, lies_refused = 0;
  std::uint64_t compactions = 0, settled = 0, changes = 0, events_run = 0;
  std::uint64_t torn_pages = 0, lost_pages = 0, lost_entries = 0;
  void Add(const Statistics& other);
};

struct Outcome {
  std::vector<std::string> failures;
  std::uint64_t hash = 0;  // equal for equal runs
  Time simulated{0};
  Statistics statistics;
};

// `dir` is emptied. `trace`: every answer is printed.
Outcome Simulate(std::uint64_t seed, Time duration, const std::string& dir, bool trace = false);

}  // namespace keelson::simulation
