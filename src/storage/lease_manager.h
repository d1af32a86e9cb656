// Leases for objects with a time to live, shared by many objects so that a busy resource (events) does not cost a lease
// each. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "async/awaitable.h"
#include "base/clock.h"
#include "kv/kv.h"
#include "telemetry/metrics.h"

namespace keelson::storage {

struct LeaseOptions {
  std::int64_t reuse_duration_seconds = 60;  // --lease-reuse-duration-seconds
  std::int64_t objects_max = 1000;           // attached to one lease
  telemetry::Histogram* objects = nullptr;   // how many there were on each; may be null
};

class LeaseManager {
 public:
  LeaseManager(kv::Store& kv, const base::Clock& clock, LeaseOptions options = {})
      : kv_(kv), clock_(clock), options_(options) {}

  // A lease that lives at least `ttl_seconds` from now.
  Awaitable<kv::Result<kv::LeaseID>> GetLease(std::int64_t ttl_seconds);

 private:
  std::int64_t ReuseSeconds(std::int64_t ttl_seconds) const;

  kv::Store& kv_;
  const base::Clock& clock_;
  const LeaseOptions options_;
  std::mutex mutex_;
  kv::LeaseID previous_ = 0;
  base::Clock::SteadyTime expires_{};
  std::int64_t attached_ = 0;
};

}  // namespace keelson::storage
