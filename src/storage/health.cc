#include "storage/health.h"

#include "storage/keys.h"

namespace keelson::storage {

HealthProbe::HealthProbe(kv::Store& kv, const base::Clock& clock, std::string etcd_prefix,
                         std::chrono::milliseconds timeout)
    : kv_(kv), clock_(clock), key_(PathPrefix(etcd_prefix) + "health"), period_(timeout / 2) {
  if (!kv.embedded()) last_ = "etcd client connection not yet established";
}

std::optional<std::string> HealthProbe::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

Awaitable<std::optional<std::string>> HealthProbe::Check() {
  {
    std::lock_guard lock(mutex_);
    const auto now = clock_.Monotonic();
    if (asked_ && now - *asked_ < period_) co_return last_;
    asked_ = now;
  }
  auto answer = co_await kv_.Range({.key = key_, .limit = 1});
  std::lock_guard lock(mutex_);
  last_ = answer.ok() ? std::nullopt
                      : std::optional<std::string>("error getting data from etcd: " + answer.error().message);
  co_return last_;
}

}  // namespace keelson::storage
