#include "flowcontrol/memory_budget.h"

#include <algorithm>
#include <utility>

#include "base/url.h"
#include "meta/options.h"

namespace keelson::flowcontrol {
namespace {

constexpr std::int64_t kSmallest = 64 * 1024;  // a request with its arena and buffers
constexpr std::int64_t kFormsPerObject = 3;    // stored bytes, their JSON form, and a piece on its way
constexpr std::int64_t kCopiesOfBody = 4;      // the body, its tree, what is stored, the answer
constexpr std::int64_t kEstimateMin = 1024 * 1024;

std::int64_t Nanoseconds(base::Clock::SteadyTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::int64_t Product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}

}  // namespace

MemoryBudget::MemoryBudget(Options options)
    : options_(std::move(options)),
      estimate_max_(std::max((options_.limit_bytes - options_.memory_in_use()) / 2, kEstimateMin)) {}

MemoryBudget::Reservation& MemoryBudget::Reservation::operator=(Reservation&& other) noexcept {
  Release();
  budget_ = std::move(other.budget_);
  bytes_ = other.bytes_;
  return *this;
}

void MemoryBudget::Reservation::Release() {
  if (const auto budget = std::exchange(budget_, nullptr))
    budget->reserved_.fetch_sub(bytes_, std::memory_order_relaxed);
}

std::int64_t MemoryBudget::MemoryInUse() {
  const std::int64_t now = Nanoseconds(options_.clock->Monotonic());
  std::int64_t sampled = sampled_.load(std::memory_order_relaxed);
  const bool old = sampled == 0 || now - sampled >= std::chrono::nanoseconds(kSampleAge).count();
  if (old && sampled_.compare_exchange_strong(sampled, now, std::memory_order_relaxed))
    in_use_.store(options_.memory_in_use(), std::memory_order_relaxed);
  return in_use_.load(std::memory_order_relaxed);
}

void MemoryBudget::MaybeRelease() {
  if (!options_.release) return;
  const std::int64_t now = Nanoseconds(options_.clock->Monotonic());
  std::int64_t released = released_.load(std::memory_order_relaxed);
  if (released != 0 && now - released < std::chrono::nanoseconds(kReleaseAge).count()) return;
  if (released_.compare_exchange_strong(released, now, std::memory_order_relaxed)) options_.release();
}

std::optional<MemoryBudget::Reservation> MemoryBudget::Reserve(std::int64_t bytes) {
  bytes = std::clamp(bytes, std::int64_t{0}, estimate_max_);
  const std::int64_t reserved = reserved_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (MemoryInUse() + reserved <= options_.limit_bytes) return Reservation(shared_from_this(), bytes);
  reserved_.fetch_sub(bytes, std::memory_order_relaxed);
  MaybeRelease();
  return std::nullopt;
}

std::int64_t EstimateResponseBytes(const request::RequestInfo& info, std::string_view raw_query,
                                   const std::optional<ObjectStats>& stats, std::int64_t body_bytes) {
  const std::int64_t body = Product(std::max<std::int64_t>(body_bytes, 0), kCopiesOfBody);
  if (WorkKindOf(info) != WorkKind::kList || !stats) return std::max(kSmallest, body);
  const auto options = meta::ListOptions::FromQuery(base::Query(raw_query));
  std::int64_t objects = stats->count;
  if (!info.name.empty()) objects = std::min<std::int64_t>(objects, 1);
  if (options.ok() && options->limit > 0) objects = std::min(objects, options->limit);
  if (info.verb == "watch" && options.ok() && !options->send_initial_events.value_or(false) &&
      !options->resource_version.empty() && options->resource_version != "0")
    objects = 0;
  return std::max(kSmallest, Product(Product(objects, stats->average_bytes), kFormsPerObject));
}

}  // namespace keelson::flowcontrol
