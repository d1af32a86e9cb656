// The decisions of coordinated leader election: when candidates of a lease must be asked whether they are alive, and
// who is elected. Pure: the controller (leader_election.h) reads and writes the objects.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/outcome.h"
#include "object/value.h"

namespace keelson::controllers {

inline constexpr std::string_view kOldestEmulationVersion = "OldestEmulationVersion";
inline constexpr std::chrono::seconds kElectionDuration{5};    // how long candidates have to answer a ping
inline constexpr std::chrono::seconds kElectionRequeue{5};     // a lease is looked at again, for its holder's renewals
inline constexpr std::chrono::minutes kCandidateValidFor{30};  // without a renewal
inline constexpr std::int64_t kElectedLeaseDurationSeconds = 5;  // of a lease that the controller hands out

using ElectionTime = base::Clock::SystemTime;

// metav1.MicroTime; nothing for null and for text that is no time.
std::optional<ElectionTime> ParseMicroTime(Value time);
std::string FormatMicroTime(ElectionTime time);

// The spec of a coordination.k8s.io LeaseCandidate.
struct LeaseCandidate {
  std::string name, lease_name, binary_version, emulation_version, strategy;
  std::optional<ElectionTime> ping_time, renew_time;
  ElectionTime created{};

  static LeaseCandidate FromValue(Value object);
  bool ExpiredAt(ElectionTime now) const { return !renew_time || *renew_time + kCandidateValidFor < now; }
  // Asked, and no answer since.
  bool PingPending() const { return ping_time && renew_time && *renew_time < *ping_time; }
};

// The spec of a Lease as far as elections look at it.
struct ElectedLease {
  std::string holder;  // "": none
  std::optional<ElectionTime> renew_time;
  std::optional<std::int64_t> duration_seconds;

  static ElectedLease FromValue(Value object);
  bool ExpiredAt(ElectionTime now) const {
    return !renew_time || !duration_seconds || *renew_time + std::chrono::seconds(*duration_seconds) < now;
  }
};

using CandidateList = std::vector<const LeaseCandidate*>;

// A candidate with the highest binary version: its strategy counts. An error when those of that version disagree.
Outcome<const LeaseCandidate*, std::string> PickBestStrategy(const CandidateList& candidates);
// The oldest emulation version, then the oldest binary version, then the oldest object. Null without a candidate whose
// versions can be read.
const LeaseCandidate* PickOldestEmulationVersion(const CandidateList& candidates);

// The next step of an election.
struct ElectionStep {
  enum class Action : std::uint8_t { kNothing, kPing, kElect };
  Action action = Action::kNothing;
  std::optional<std::chrono::seconds> requeue;  // nothing: an event will come
  std::string error;                            // "": none
  CandidateList ping;                           // of kPing: their pingTime is to be set to now
  std::string strategy;                         // of kElect
  std::string holder;  // of kElect; "": the strategy is a third party's, which picks the holder
};
// `candidates` have not expired; `lease` is nothing when it does not exist.
ElectionStep PlanElection(const CandidateList& candidates, const std::optional<ElectedLease>& lease, ElectionTime now);

// Brings the election's result into an existing lease. False when nothing had to change.
bool ApplyElection(base::Arena& arena, const ElectionStep& elected, ElectionTime now, Value lease);

}  // namespace keelson::controllers
