// How many seats a request is worth: a LIST by the bytes it loads, a write by the watchers it wakes, the rest one.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "flowcontrol/queue_set.h"
#include "request/request_info.h"

namespace keelson::flowcontrol {

inline constexpr std::uint64_t kListSeatsMax = 100;
inline constexpr std::uint64_t kMutatingSeatsMax = 10;

// Objects of one resource.
struct ObjectStats {
  std::int64_t count = 0;
  std::int64_t average_bytes = 0;
  // Counts that are not kept up to date any more are taken for the worst.
  static constexpr ObjectStats Stale() { return {1'000'000'000, 1'500'000}; }
};

// Consistent LISTs (no resourceVersion) come from the watch cache if the store reports progress, else from
// storage.
enum class ConsistentReads : std::uint8_t { kFromCache, kFromStorage };

// `level_max_seats` 0: the level sets no limit. `stats` none: the resource is not known (one seat).
WorkEstimate EstimateList(const request::RequestInfo& info, std::string_view raw_query,
                          const std::optional<ObjectStats>& stats, std::uint64_t level_max_seats,
                          ConsistentReads consistent_reads);
WorkEstimate EstimateMutating(const request::RequestInfo& info, int interested_watchers, std::uint64_t level_max_seats);

enum class WorkKind : std::uint8_t { kSimple, kList, kMutating };
// Whether the read and write metrics count the request as mutating: every verb but get, list and watch.
inline bool IsMutating(const request::RequestInfo& info) {
  return info.verb != "get" && info.verb != "list" && info.verb != "watch";
}
WorkKind WorkKindOf(const request::RequestInfo& info);

}  // namespace keelson::flowcontrol
