#include "storage/health.h"

#include "storage/keys.h"

namespace keelson::storage {
namespace {

constexpr const char* kTooSlow = "error getting data from etcd: context deadline exceeded";

}  // namespace

HealthProbe::HealthProbe(kv::Store& kv, const base::Clock& clock, std::string etcd_prefix,
                         std::chrono::milliseconds timeout)
    : kv_(kv), clock_(clock), key_(PathPrefix(etcd_prefix) + "health"), timeout_(timeout) {
  if (!kv.embedded()) last_ = "etcd client connection not yet established";
}

std::optional<std::string> HealthProbe::last() const {
  std::lock_guard lock(mutex_);
  if (waiting_ && clock_.Monotonic() - *asked_ > timeout_) return kTooSlow;
  return last_;
}

Awaitable<std::optional<std::string>> HealthProbe::Check() {
  {
    std::lock_guard lock(mutex_);
    const auto now = clock_.Monotonic();
    if (waiting_ || (asked_ && now - *asked_ < timeout_ / 2)) co_return last_;
    asked_ = now;
    waiting_ = true;
  }
  auto answer = co_await kv_.Range({.key = key_, .limit = 1});
  std::lock_guard lock(mutex_);
  waiting_ = false;
  last_ = answer.ok() ? std::nullopt
                      : std::optional<std::string>("error getting data from etcd: " + answer.error().message);
  if (clock_.Monotonic() - *asked_ > timeout_) last_ = kTooSlow;
  co_return last_;
}

}  // namespace keelson::storage
