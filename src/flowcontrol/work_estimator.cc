#include "flowcontrol/work_estimator.h"

#include <algorithm>
#include <cmath>

#include "base/url.h"
#include "meta/options.h"

namespace keelson::flowcontrol {
namespace {

constexpr std::int64_t kBytesPerSeat = 100'000;
constexpr std::int64_t kStreamedBytesMax = 1'000'000;  // a LIST from the cache is streamed and never in memory whole
constexpr std::int64_t kObjectBytesMax = 1'500'000;
constexpr double kWatchersPerSeat = 10;
constexpr std::chrono::milliseconds kEventDuration{5};

// The watch cache's delegation rules (upstream's delegator, without snapshots).
bool FromStorage(const meta::ListOptions& options, ConsistentReads consistent_reads) {
  if (options.resource_version_match == "Exact") return true;
  if (options.resource_version_match == "NotOlderThan") return false;
  if (!options.resource_version_match.empty()) return true;
  if (!options.continue_token.empty()) return true;
  if (options.resource_version.empty()) return consistent_reads == ConsistentReads::kFromStorage;
  return options.limit > 0 && options.resource_version != "0";
}

std::uint64_t SeatsBySize(ObjectStats stats, const meta::ListOptions& options, bool from_cache, bool single) {
  if (stats.average_bytes <= 0 && stats.count != 0) stats.average_bytes = kObjectBytesMax;
  const std::int64_t limited = options.limit > 0 ? std::min(options.limit, stats.count) : stats.count;
  std::int64_t loaded = limited;
  if (single) {
    loaded = 1;
  } else if (!from_cache && (!options.field_selector.Empty() || !options.label_selector.Empty())) {
    loaded = std::max(limited, stats.count / 2);
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(loaded, stats.average_bytes, &bytes)) bytes = INT64_MAX;
  if (from_cache) bytes = std::min(bytes, kStreamedBytesMax);
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(bytes) / static_cast<double>(kBytesPerSeat)));
}

}  // namespace

WorkKind WorkKindOf(const request::RequestInfo& info) {
  if (info.verb == "list" || info.verb == "watch") return WorkKind::kList;
  if (info.verb == "create" || info.verb == "update" || info.verb == "patch" || info.verb == "delete")
    return WorkKind::kMutating;
  return WorkKind::kSimple;
}

WorkEstimate EstimateList(const request::RequestInfo& info, std::string_view raw_query,
                          const std::optional<ObjectStats>& stats, std::uint64_t level_max_seats,
                          ConsistentReads consistent_reads) {
  const std::uint64_t max_seats = level_max_seats == 0 ? kListSeatsMax : std::min(level_max_seats, kListSeatsMax);
  const auto options = meta::ListOptions::FromQuery(base::Query(raw_query));
  if (!options.ok()) return {.initial_seats = max_seats};
  const bool is_watch = info.verb == "watch";
  if (is_watch && !options->send_initial_events.value_or(false) && !options->resource_version.empty() &&
      options->resource_version != "0") {
    return {};
  }
  if (!stats) return {};
  const bool from_cache = is_watch || !FromStorage(*options, consistent_reads);
  const std::uint64_t seats = SeatsBySize(*stats, *options, from_cache, !info.name.empty());
  return {.initial_seats = std::clamp<std::uint64_t>(seats, 1, max_seats)};
}

WorkEstimate EstimateMutating(const request::RequestInfo& info, int interested_watchers,
                              std::uint64_t level_max_seats) {
  // A token request changes no watched object.
  if (info.resource == "serviceaccounts" && info.subresource == "token") return {};
  if (interested_watchers < static_cast<int>(kWatchersPerSeat)) return {};
  const std::uint64_t max_seats =
      level_max_seats == 0 ? kMutatingSeatsMax : std::min(level_max_seats, kMutatingSeatsMax);
  const auto uncapped = static_cast<std::uint64_t>(std::ceil(interested_watchers / kWatchersPerSeat));
  const SeatSeconds work = SeatSeconds::Of(static_cast<double>(uncapped), kEventDuration);
  const std::uint64_t final_seats = std::min(uncapped, max_seats);
  return {.initial_seats = 1,
          .final_seats = final_seats,
          .additional_latency = work.DurationPerSeat(static_cast<double>(final_seats))};
}

}  // namespace keelson::flowcontrol
