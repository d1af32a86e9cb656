// The server, its watch caches and its store in simulated time, on a disk that loses power. A failure prints its seed;
// the seed repeats it.
//   simulation_test                                        a few seeds, part of ctest
//   KEELSON_SIMULATION_HOURS=1000 simulation_test          so many simulated hours, two for each seed
//   KEELSON_SIMULATION_SEED=17 simulation_test             one seed, or the first of several; with _TRACE=1 every
//   answer
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "simulation/simulation.h"

namespace keelson::simulation {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

std::string Folder() {
  const bool memory = ::access("/dev/shm", W_OK) == 0;
  const std::string base = memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  return base + "/keelson-simulation-" + std::to_string(::getpid());
}

const char* Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] != '\0' ? value : nullptr;
}

Outcome RunSeed(std::uint64_t seed, Time duration) {
  const std::string folder = Folder();
  Outcome outcome = Simulate(seed, duration, folder, Environment("KEELSON_SIMULATION_TRACE") != nullptr);
  std::filesystem::remove_all(folder);
  for (const std::string& failure : outcome.failures) {
    ADD_FAILURE() << "KEELSON_SIMULATION_SEED=" << seed << " " << failure;
  }
  return outcome;
}

void Print(const Statistics& s, double simulated_hours, std::uint64_t first, std::uint64_t last) {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "simulated %.1f hours, seeds %llu to %llu: %llu writes (%llu acknowledged, %llu refused, %llu unknown), %llu "
      "gets, "
      "%llu lists, %llu watches with %llu events and %llu bookmarks (%llu expired)\n",
      simulated_hours, number(first), number(last), number(s.writes), number(s.acknowledged), number(s.refused),
      number(s.unknown), number(s.gets), number(s.lists), number(s.watches), number(s.events), number(s.bookmarks),
      number(s.expired));
  std::printf(
      "faults: %llu power losses (%llu pages lost, %llu torn, %llu directory entries lost), %llu kills, %llu restarts, "
      "%llu crashes while opening, %llu failed starts, %llu full disks, %llu slow disks, %llu failed syncs, %llu "
      "failed commits, "
      "%llu clock jumps, %llu connections lost, %llu disks that lied (%llu refused to open); settled %llu times\n",
      number(s.power_losses), number(s.lost_pages), number(s.torn_pages), number(s.lost_entries), number(s.kills),
      number(s.restarts), number(s.crashes_in_recovery), number(s.failed_starts), number(s.full_disks),
      number(s.slow_disks), number(s.failed_syncs), number(s.failed_commits), number(s.clock_jumps),
      number(s.connections_lost), number(s.lying_disks), number(s.lies_refused), number(s.settled));
}

TEST(Simulation, InvariantsHold) {
  constexpr Time kEach = hours(2);
  const char* const seed_text = Environment("KEELSON_SIMULATION_SEED");
  const char* const hours_text = Environment("KEELSON_SIMULATION_HOURS");
  const std::uint64_t first = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : 1;
  Time total = seed_text != nullptr ? kEach : Time(minutes(60));
  if (hours_text != nullptr) total = Time(static_cast<std::int64_t>(std::strtod(hours_text, nullptr) * 3.6e12));
  const bool quick = seed_text == nullptr && hours_text == nullptr;
  Statistics all;
  Time simulated{0};
  std::uint64_t seed = first;
  for (; simulated < total && !HasFailure(); ++seed) {
    const Outcome outcome = RunSeed(seed, quick ? Time(minutes(20)) : kEach);
    simulated += outcome.simulated;
    all.Add(outcome.statistics);
    if (!quick && (seed - first) % 20 == 19) {
      Print(all, std::chrono::duration<double, std::ratio<3600>>(simulated).count(), first, seed);
      std::fflush(stdout);
    }
  }
  Print(all, std::chrono::duration<double, std::ratio<3600>>(simulated).count(), first, seed - 1);
}

TEST(Simulation, ASeedRepeatsItsRun) {
  // With many restarts, and commits that RocksDB's jobs follow.
  for (const std::uint64_t seed : {5, 7, 4711}) {
    SCOPED_TRACE(seed);
    const Outcome once = RunSeed(seed, minutes(40));
    const Outcome again = RunSeed(seed, minutes(40));
    EXPECT_EQ(once.hash, again.hash);
    EXPECT_EQ(once.statistics.events_run, again.statistics.events_run);
  }
}

}  // namespace
}  // namespace keelson::simulation
