// Health of the store: it answers and, if embedded, still takes writes; for /healthz, /livez and /readyz ("etcd").
// Results are shared, so that many requests cause few probes. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "async/awaitable.h"
#include "base/clock.h"
#include "kv/kv.h"

namespace keelson::storage {

class HealthProbe {
 public:
  // `timeout`: --etcd-healthcheck-timeout or --etcd-readycheck-timeout; an answer that takes longer is none. All must
  // outlive this.
  HealthProbe(kv::Store& kv, const base::Clock& clock, std::string etcd_prefix, std::chrono::milliseconds timeout);
  // nullopt when it answers; else the text for the health check.
  Awaitable<std::optional<std::string>> Check();
  // Result of the last check, without a new one. A check that has run for too long counts as failed.
  std::optional<std::string> last() const;

 private:
  kv::Store& kv_;
  const base::Clock& clock_;
  const std::string key_;
  const std::chrono::milliseconds timeout_;  // at most two probes within it
  mutable std::mutex mutex_;
  std::optional<base::Clock::SteadyTime> asked_;
  bool waiting_ = false;  // for an answer since then
  std::optional<std::string> last_;
};

}  // namespace keelson::storage
