#include "storage/lease_manager.h"

#include <algorithm>

namespace keelson::storage {

std::int64_t LeaseManager::ReuseSeconds(std::int64_t ttl_seconds) const {
  return std::min(ttl_seconds / 20, options_.reuse_duration_seconds);  // five percent, at most the flag
}

Awaitable<kv::Result<kv::LeaseID>> LeaseManager::GetLease(std::int64_t ttl_seconds) {
  const auto reuse = std::chrono::seconds(ReuseSeconds(ttl_seconds));
  const auto ttl = std::chrono::seconds(ttl_seconds);
  const auto now = clock_.Monotonic();
  {
    std::lock_guard lock(mutex_);
    ++attached_;
    // Long enough for this object, yet not so long that an object of a short life would stay for another's sake.
    if (previous_ != 0 && now + ttl < expires_ && now + ttl + reuse > expires_ && attached_ <= options_.objects_max)
      co_return previous_;
  }
  auto granted = co_await kv_.LeaseGrant(ttl_seconds + reuse.count());
  if (!granted.ok()) co_return std::move(granted).error();
  std::lock_guard lock(mutex_);
  if (options_.objects != nullptr && previous_ != 0) options_.objects->Observe(static_cast<double>(attached_ - 1));
  previous_ = granted->id;
  expires_ = now + ttl + reuse;
  attached_ = 1;
  co_return granted->id;
}

}  // namespace keelson::storage
