#include "storage/health.h"

#include "storage/keys.h"

namespace keelson::storage {
namespace {

constexpr const char* kTooSlow = "error getting data from etcd: context deadline exceeded";

constexpr kv::LeaseID kNoLease = 0;

// A store in this process that failed to write once refuses all writes and still serves reads. Renewing a lease that
// cannot exist goes the way of a write and changes nothing.
Awaitable<std::optional<kv::Error>> RefusedWrites(kv::Store& kv) {
  auto answer = co_await kv.LeaseKeepAlive(kNoLease);
  if (answer.ok() || answer.error().code == kv::ErrorCode::kLeaseNotFound ||
      answer.error().code == kv::ErrorCode::kTooManyRequests) {
    co_return std::nullopt;
  }
  co_return std::move(answer).error();
}

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
  std::optional<std::string> problem;
  if (!answer.ok()) {
    problem = "error getting data from etcd: " + answer.error().message;
  } else if (kv_.embedded()) {
    if (const auto refused = co_await RefusedWrites(kv_)) problem = "the store refuses writes: " + refused->message;
  }
  std::lock_guard lock(mutex_);
  waiting_ = false;
  last_ = std::move(problem);
  if (clock_.Monotonic() - *asked_ > timeout_) last_ = kTooSlow;
  co_return last_;
}

}  // namespace keelson::storage
