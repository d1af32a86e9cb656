// PlanDeletion: preconditions, grace periods, propagation policies and finalizers.
#include <algorithm>

#include "registry/write_pipeline.h"

namespace keelson::registry {
namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

bool HasFinalizer(Value metadata, std::string_view name) {
  return std::ranges::any_of(metadata["finalizers"].items(), [&](Value item) { return item.as_string() == name; });
}

void BumpGeneration(base::Arena& arena, Value metadata) {
  if (const auto generation = metadata["generation"].as_int(); generation > 0)
    metadata.Set(arena, "generation", generation + 1);
}

meta::Result<void> CheckPreconditions(const StoredKind& kind, Value metadata, const DeleteOptions& options) {
  const std::string_view name = metadata["name"].as_string();
  const meta::GroupResource named{kind.kind.group, kind.kind.kind};  // upstream names the Kind here
  if (options.uid && *options.uid != metadata["uid"].as_string()) {
    return meta::NewConflict(named, name,
                             "the UID in the precondition (" + *options.uid + ") does not match the UID in record (" +
                                 std::string(metadata["uid"].as_string()) +
                                 "). The object might have been deleted and then recreated");
  }
  if (options.resource_version && *options.resource_version != metadata["resourceVersion"].as_string()) {
    return meta::NewConflict(named, name,
                             "the ResourceVersion in the precondition (" + *options.resource_version +
                                 ") does not match the ResourceVersion in record (" +
                                 std::string(metadata["resourceVersion"].as_string()) +
                                 "). The object might have been modified");
  }
  return {};
}

enum class Grace : std::uint8_t { kNone, kPending, kGranted };

// Writes the grace period and the moment it ends into metadata. A second deletion can only shorten the period.
Grace GrantGrace(const StoredKind& kind, const Call& call, Value object, const DeleteOptions& options) {
  const auto grace_period = kind.strategy->row().grace_period;
  if (grace_period == nullptr) return Grace::kNone;
  base::Arena& arena = call.arena;
  Value metadata = object["metadata"];
  const auto now = call.clock.Now();
  if (const Value timestamp = metadata["deletionTimestamp"]; timestamp.is_string()) {
    const std::int64_t grace = metadata["deletionGracePeriodSeconds"].as_int();
    if (grace == 0) return Grace::kNone;
    if (!options.grace_period_seconds) return Grace::kPending;
    const std::int64_t wanted = grace_period(object, options.grace_period_seconds);
    if (wanted >= grace) return Grace::kPending;
    std::int64_t period = wanted;
    const auto marked = ParseTime(timestamp.as_string());
    auto ends = (marked ? *marked : now) - std::chrono::seconds(grace) + std::chrono::seconds(wanted);
    if (ends < now) {
      ends = now;
      if (period != 0) period = 1;
    }
    metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(ends)));
    metadata.Set(arena, "deletionGracePeriodSeconds", period);
    return Grace::kGranted;
  }
  const std::int64_t period = grace_period(object, options.grace_period_seconds);
  metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(now + std::chrono::seconds(period))));
  metadata.Set(arena, "deletionGracePeriodSeconds", period);
  BumpGeneration(arena, metadata);
  return Grace::kGranted;
}

// The finalizers of the garbage collector, by propagation policy. True when they changed.
bool UpdateDeletionFinalizers(const StoredKind& kind, base::Arena& arena, Value metadata,
                              const DeleteOptions& options) {
  const GarbageCollection collection = kind.strategy->row().garbage_collection;
  const bool had_orphan = HasFinalizer(metadata, kOrphan);
  const bool had_foreground = HasFinalizer(metadata, kForeground);
  bool orphan = false;
  bool foreground = false;
  if (collection != GarbageCollection::kUnsupported) {
    if (options.orphan_dependents) {
      orphan = *options.orphan_dependents;
    } else if (options.propagation_policy) {
      orphan = *options.propagation_policy == "Orphan";
      foreground = *options.propagation_policy == "Foreground";
    } else {
      orphan = had_orphan || (!had_foreground && collection == GarbageCollection::kOrphan);
      foreground = had_foreground;
    }
  }
  if (orphan == had_orphan && foreground == had_foreground) return false;
  Value finalizers = Value::List(arena);
  for (const Value item : metadata["finalizers"].items()) {
    if (item.as_string() != kOrphan && item.as_string() != kForeground) finalizers.Append(arena, item);
  }
  if (orphan) finalizers.Append(arena, kOrphan);
  if (foreground) finalizers.Append(arena, kForeground);
  if (finalizers.empty()) {
    metadata.Erase("finalizers");
  } else {
    metadata.Set(arena, "finalizers", finalizers);
  }
  return true;
}

}  // namespace

meta::Result<DeletionPlan> PlanDeletion(const StoredKind& kind, const Call& call, Value object,
                                        const DeleteOptions& options, bool garbage_collector) {
  using enum DeletionPlan::Step;
  base::Arena& arena = call.arena;
  Value metadata = object["metadata"];
  KS_RETURN_IF_ERROR(CheckPreconditions(kind, metadata, options));
  const bool was_deleting = metadata["deletionTimestamp"].is_string();
  const Grace grace = GrantGrace(kind, call, object, options);
  if (grace == Grace::kPending) return DeletionPlan{.step = kPending};

  DeletionPlan plan;
  plan.finalizers_changed = garbage_collector && UpdateDeletionFinalizers(kind, arena, metadata, options);
  const bool spec_pending = kind.spec_finalizers && !object.Get("spec", "finalizers").empty();
  const bool stays = spec_pending || !metadata["finalizers"].empty();
  if (grace == Grace::kGranted) {
    plan.step = metadata["deletionGracePeriodSeconds"].as_int() == 0 && !stays ? kMarkThenRemove : kMark;
    return plan;
  }
  if (!stays) return plan;
  plan.step = kMark;
  const auto now = call.clock.Now();
  const auto marked = ParseTime(metadata["deletionTimestamp"].as_string());
  if (!marked || *marked > now) metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(now)));
  if (spec_pending) {
    object.EnsureMap(arena, "status").Set(arena, "phase", "Terminating");
  } else {
    metadata.Set(arena, "deletionGracePeriodSeconds", 0);
    if (!was_deleting) BumpGeneration(arena, metadata);
  }
  return plan;
}

}  // namespace keelson::registry
