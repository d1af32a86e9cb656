// Leases as client-go's leader election uses them: observing another holder, and holding one.
// Thread safety: none, the executor's thread only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/event.h"
#include "async/gate.h"
#include "base/clock.h"
#include "controllers/client.h"
#include "object/value.h"
#include "registry/informer.h"

namespace keelson::controllers {

inline constexpr std::string_view kLeaseNamespace = "kube-system";

// Another holder's lease as observed here: held until a lease duration has passed without a change. The lease's own
// times are ignored, since clocks differ.
class ObservedLease {
 public:
  // The lease as it is now, null when there is none. True when something changed.
  bool Observe(Value lease, base::Clock::SteadyTime now);
  const std::string& holder() const { return holder_; }
  bool HeldAt(base::Clock::SteadyTime now) const { return !holder_.empty() && now < expires_; }
  base::Clock::SteadyTime expires() const { return expires_; }

 private:
  std::string holder_;
  std::string renewed_;
  base::Clock::SteadyTime expires_{};
};

// Follows one lease; wakes up only when it changes or expires.
class LeaseWatcher {
 public:
  // `on_change` is called when the lease is taken or becomes free, and once when it is known at first.
  LeaseWatcher(asio::any_io_executor executor, std::shared_ptr<registry::Store> leases, std::string name,
               const base::Clock& clock, std::function<void(bool held)> on_change);
  ~LeaseWatcher();
  // Ends the watch; the result is ready when it has ended.
  std::future<void> Stop() { return informer_->Abandon(); }
  const std::string& holder() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<registry::Informer> informer_;
};

// Holds a lease in competition with other servers.
class LeaderElector {
 public:
  struct Options {
    asio::any_io_executor executor;
    ClientPtr client;
    std::string name;
    std::string identity;
    const base::Clock* clock = &base::Clock::Real();
    async::Gate* gate = nullptr;
    std::chrono::nanoseconds lease_duration = std::chrono::seconds(15), renew_deadline = std::chrono::seconds(10),
                             retry_period = std::chrono::seconds(2);
    std::function<void(bool leading)> on_change;
  };
  explicit LeaderElector(Options options);
  ~LeaderElector();  // Stop()
  // Gives the lease up if it is held; on_change is not called any more.
  void Stop();

 private:
  struct State;
  static Awaitable<void> Run(std::shared_ptr<State> state, std::optional<async::Gate::Entry> held);
  std::shared_ptr<State> state_;
};

}  // namespace keelson::controllers
