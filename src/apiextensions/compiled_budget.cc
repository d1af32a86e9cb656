#include "apiextensions/compiled_budget.h"

#include <algorithm>
#include <utility>

namespace keelson::apiextensions {

void CompiledBudget::Charge(std::weak_ptr<const Member> member, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  bytes_ += bytes;
  // The newcomer is not among those looked at: a single member beyond the bound is compiled once, not each time.
  for (std::size_t looks = std::min(2 * ring_.size(), kLooksMax); looks > 0 && bytes_ > bytes_max_ && !ring_.empty();
       --looks) {
    Charged next = std::move(ring_.front());
    ring_.pop_front();
    const auto held = next.member.lock();
    const bool spared = held && held->used_.exchange(false, std::memory_order_relaxed);
    if (spared || (held && !held->Drop())) {
      ring_.push_back(std::move(next));
      continue;
    }
    bytes_ -= next.bytes;
  }
  ring_.push_back({std::move(member), bytes});
}

std::size_t CompiledBudget::bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const Charged& one : ring_) sum += one.member.expired() ? 0 : one.bytes;
  return sum;
}

}  // namespace keelson::apiextensions
