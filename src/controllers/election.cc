#include "controllers/election.h"

#include <algorithm>

#include "base/strings.h"
#include "cel/library_values.h"
#include "object/time.h"

namespace keelson::controllers {
namespace {

// github.com/blang/semver's ParseTolerant.
std::optional<cel::Semver> ParseVersion(base::Arena& arena, std::string_view text) {
  auto parsed = cel::ParseSemverNormalized(arena, arena.Copy(base::Trim(text)));
  if (!parsed.ok()) return std::nullopt;
  return *parsed;
}

// The zero version for text that is no version.
cel::Semver VersionOrZero(base::Arena& arena, std::string_view text) {
  return ParseVersion(arena, text).value_or(cel::Semver());
}

bool IsBetter(const LeaseCandidate& left, const LeaseCandidate& right) {
  base::Arena arena;
  int order =
      cel::CompareSemver(VersionOrZero(arena, left.emulation_version), VersionOrZero(arena, right.emulation_version));
  if (order == 0) {
    order = cel::CompareSemver(VersionOrZero(arena, left.binary_version), VersionOrZero(arena, right.binary_version));
  }
  return order == 0 ? left.created <= right.created : order < 0;
}

// Upstream's electionNeeded.
Outcome<bool, std::string> ElectionNeeded(const CandidateList& candidates, const std::optional<ElectedLease>& lease,
                                          ElectionTime now) {
  if (!lease || lease->ExpiredAt(now) || lease->holder.empty()) return true;
  // Candidates that have not renewed for half of their validity are asked to, before they are collected as garbage.
  const bool stale = std::ranges::any_of(candidates, [&](const LeaseCandidate* candidate) {
    return candidate->renew_time && *candidate->renew_time + kCandidateValidFor / 2 < now;
  });
  if (stale) return true;
  KS_TRY(const LeaseCandidate* const newest, PickBestStrategy(candidates));
  if (newest->strategy != kOldestEmulationVersion) return false;
  const LeaseCandidate* const best = PickOldestEmulationVersion(candidates);
  return best != nullptr && best->name != lease->holder;
}

// Which candidates to ask; true when all answers are there or too late.
bool CollectPings(const CandidateList& candidates, ElectionTime now, CandidateList& ping) {
  bool can_vote = true;
  for (const LeaseCandidate* candidate : candidates) {
    const bool asked_lately = candidate->ping_time && *candidate->ping_time + kElectionDuration > now;
    if (asked_lately && candidate->PingPending()) {
      can_vote = false;
      continue;
    }
    if (candidate->renew_time && *candidate->renew_time + kElectionDuration > now) continue;
    const bool answered_long_ago =
        candidate->ping_time && *candidate->ping_time + kElectionDuration < now && !candidate->PingPending();
    if (candidate->ping_time && !answered_long_ago) continue;
    ping.push_back(candidate);
    can_vote = false;
  }
  return can_vote;
}

ElectionStep Failed(std::string error, std::optional<std::chrono::seconds> requeue = std::nullopt) {
  return {.requeue = requeue, .error = std::move(error)};
}

}  // namespace

std::optional<ElectionTime> ParseMicroTime(Value time) {
  if (!time.is_string()) return std::nullopt;
  const auto parsed = object::ParseTime(time.as_string(), true);
  if (!parsed.ok()) return std::nullopt;
  const auto since = std::chrono::seconds(parsed->seconds) + std::chrono::nanoseconds(parsed->nanos);
  return ElectionTime(std::chrono::duration_cast<ElectionTime::duration>(since));
}

std::string FormatMicroTime(ElectionTime time) {
  const auto now = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds);
  return object::FormatMicroTime({.seconds = seconds.count(), .nanos = static_cast<std::int32_t>(nanos.count())});
}

LeaseCandidate LeaseCandidate::FromValue(Value object) {
  const Value spec = object["spec"];
  const auto created = object::ParseTime(object.Get("metadata", "creationTimestamp").as_string());
  return {.name = std::string(object.Get("metadata", "name").as_string()),
          .lease_name = std::string(spec["leaseName"].as_string()),
          .binary_version = std::string(spec["binaryVersion"].as_string()),
          .emulation_version = std::string(spec["emulationVersion"].as_string()),
          .strategy = std::string(spec["strategy"].as_string()),
          .ping_time = ParseMicroTime(spec["pingTime"]),
          .renew_time = ParseMicroTime(spec["renewTime"]),
          .created = ElectionTime(std::chrono::seconds(created.ok() ? created->seconds : 0))};
}

ElectedLease ElectedLease::FromValue(Value object) {
  const Value spec = object["spec"], duration = spec["leaseDurationSeconds"];
  return {.holder = std::string(spec["holderIdentity"].as_string()),
          .renew_time = ParseMicroTime(spec["renewTime"]),
          .duration_seconds = duration.is_int() ? std::optional(duration.as_int()) : std::nullopt};
}

Outcome<const LeaseCandidate*, std::string> PickBestStrategy(const CandidateList& candidates) {
  if (candidates.empty()) return std::string("no candidates");
  base::Arena arena;
  const LeaseCandidate* best = candidates.front();
  cel::Semver highest = VersionOrZero(arena, best->binary_version);
  for (const LeaseCandidate* candidate : std::span(candidates).subspan(1)) {
    const cel::Semver version = VersionOrZero(arena, candidate->binary_version);
    const int order = cel::CompareSemver(highest, version);
    if (order < 0) {
      best = candidate;
      highest = version;
    } else if (order == 0 && candidate->strategy != best->strategy) {
      return "candidates " + base::GoQuote(best->name) + ", " + base::GoQuote(candidate->name) +
             " at same binary version but received differing strategies " + best->strategy + ", " + candidate->strategy;
    }
  }
  return best;
}

const LeaseCandidate* PickOldestEmulationVersion(const CandidateList& candidates) {
  const LeaseCandidate* electee = nullptr;
  for (const LeaseCandidate* candidate : candidates) {
    base::Arena arena;
    if (!ParseVersion(arena, candidate->emulation_version) || !ParseVersion(arena, candidate->binary_version)) continue;
    if (electee == nullptr || !IsBetter(*electee, *candidate)) electee = candidate;
  }
  return electee;
}

ElectionStep PlanElection(const CandidateList& candidates, const std::optional<ElectedLease>& lease, ElectionTime now) {
  if (candidates.empty()) return {};
  const auto needed = ElectionNeeded(candidates, lease, now);
  if (!needed.ok()) return Failed(needed.error(), kElectionRequeue);
  if (!*needed) return {.requeue = kElectionRequeue};
  ElectionStep step{.requeue = kElectionRequeue};
  if (!CollectPings(candidates, now, step.ping)) {
    if (!step.ping.empty()) step.action = ElectionStep::Action::kPing;
    return step;
  }
  CandidateList answered;
  for (const LeaseCandidate* candidate : candidates) {
    if (*candidate->renew_time + kElectionDuration > now) answered.push_back(candidate);
  }
  if (answered.empty()) return Failed("no available candidates");
  const auto strategy = PickBestStrategy(answered);
  if (!strategy.ok()) return Failed(strategy.error());
  step.action = ElectionStep::Action::kElect;
  step.strategy = (*strategy)->strategy;
  if (step.strategy != kOldestEmulationVersion) return step;
  const LeaseCandidate* const electee = PickOldestEmulationVersion(answered);
  if (electee == nullptr) return Failed("should not happen, could not find suitable electee");
  step.holder = electee->name;
  return step;
}

bool ApplyElection(base::Arena& arena, const ElectionStep& elected, ElectionTime now, Value lease) {
  const ElectedLease existing = ElectedLease::FromValue(lease);
  Value spec = lease.EnsureMap(arena, "spec");
  bool changed = false;
  if (spec["strategy"].as_string() != elected.strategy) {
    spec.Set(arena, "strategy", Value::String(arena, elected.strategy));
    changed = true;
  }
  if (elected.holder.empty()) return changed;
  const Value holder = Value::String(arena, elected.holder);
  if (existing.holder.empty() || (existing.ExpiredAt(now) && existing.holder != elected.holder)) {
    spec.Erase("preferredHolder");
    spec.Erase("acquireTime");
    spec.Set(arena, "holderIdentity", holder);
    spec.Set(arena, "renewTime", Value::String(arena, FormatMicroTime(now)));
    spec.Set(arena, "leaseDurationSeconds", Value(kElectedLeaseDurationSeconds));
    return true;
  }
  if (existing.holder == elected.holder || spec["preferredHolder"].as_string() == elected.holder) return changed;
  spec.Set(arena, "preferredHolder", holder);
  return true;
}

}  // namespace keelson::controllers
