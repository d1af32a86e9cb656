#include "controllers/lease.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "controllers/work_queue.h"
#include "object/json_text.h"
#include "object/time.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kAPIVersion = "coordination.k8s.io/v1";

std::string LeasePath(const std::string& name) {
  return APIPath(kAPIVersion, kLeaseNamespace, name.empty() ? "leases" : "leases/" + name);
}

std::string MicroTime(const base::Clock& clock) {
  const auto now = clock.Now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds);
  return object::FormatMicroTime({.seconds = seconds.count(), .nanos = static_cast<std::int32_t>(nanos.count())});
}

}  // namespace

bool ObservedLease::Observe(Value lease, base::Clock::SteadyTime now) {
  const Value spec = lease["spec"];
  const std::string_view holder = spec["holderIdentity"].as_string(), renewed = spec["renewTime"].as_string();
  if (holder == holder_ && renewed == renewed_) return false;
  holder_ = holder;
  renewed_ = renewed;
  expires_ = now + std::chrono::seconds(spec["leaseDurationSeconds"].as_int());
  return true;
}

struct LeaseWatcher::State : std::enable_shared_from_this<LeaseWatcher::State> {
  asio::any_io_executor executor;
  const base::Clock* clock;
  std::function<void(bool)> on_change;
  ObservedLease lease;
  std::optional<bool> told;
  std::shared_ptr<void> timer;

  void Look() {
    const auto now = clock->Monotonic();
    const bool held = lease.HeldAt(now);
    timer.reset();
    if (held) {
      timer = CallAtDeadline(executor, lease.expires(), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->Look();
      });
    }
    if (told == held) return;
    told = held;
    on_change(held);
  }
};

LeaseWatcher::LeaseWatcher(asio::any_io_executor executor, std::shared_ptr<registry::Store> leases, std::string name,
                           const base::Clock& clock, std::function<void(bool held)> on_change)
    : state_(std::make_shared<State>()), informer_(std::make_unique<registry::Informer>(std::move(leases))) {
  state_->executor = executor;
  state_->clock = &clock;
  state_->on_change = std::move(on_change);
  informer_->Narrow(std::string(kLeaseNamespace), std::move(name));
  informer_->AddHandler([weak = std::weak_ptr(state_)](std::vector<registry::Informer::Change>& changes) {
    const auto state = weak.lock();
    if (!state) return;
    for (const auto& change : changes)
      state->lease.Observe(change.deleted ? Value() : change.value, state->clock->Monotonic());
    state->Look();
  });
  informer_->OnSynced([weak = std::weak_ptr(state_)] {
    if (const auto state = weak.lock()) state->Look();
  });
  informer_->Start(executor);
}

LeaseWatcher::~LeaseWatcher() { Stop(); }

const std::string& LeaseWatcher::holder() const { return state_->lease.holder(); }

struct LeaderElector::State {
  Options options;
  bool stopping = false;
  bool leading = false;
  ObservedLease observed;
  base::Clock::SteadyTime renewed{};
  async::Event wake;

  void Set(bool lead) {
    if (leading == lead) return;
    leading = lead;
    if (!stopping) options.on_change(lead);
  }
  Awaitable<bool> TryAcquireOrRenew();
  Awaitable<void> Release();
  Value Spec(base::Arena& arena, Value old) const;
};

// The spec to write: transitions are counted when the holder changes.
Value LeaderElector::State::Spec(base::Arena& arena, Value old) const {
  const Value now = Value::String(arena, MicroTime(*options.clock));
  const bool same = old["holderIdentity"].as_string() == options.identity;
  Value spec = Value::Map(arena);
  spec.Set(arena, "holderIdentity", std::string_view(options.identity));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.lease_duration);
  spec.Set(arena, "leaseDurationSeconds", Value(static_cast<std::int64_t>(seconds.count())));
  spec.Set(arena, "acquireTime", same ? old["acquireTime"] : now);
  spec.Set(arena, "renewTime", now);
  const std::int64_t transitions = old["leaseTransitions"].as_int();
  spec.Set(arena, "leaseTransitions", Value(same || old.is_null() ? transitions : transitions + 1));
  return spec;
}

Awaitable<bool> LeaderElector::State::TryAcquireOrRenew() {
  base::Arena arena;
  auto got = co_await options.client->Do({.method = "GET", .target = LeasePath(options.name)});
  Value lease = Value::Map(arena);
  Client::Request request{.method = "POST", .target = LeasePath("")};
  if (got.ok()) {
    const auto parsed = object::ParseJSON(arena, *got);
    if (!parsed) co_return false;
    lease = *parsed;
    observed.Observe(lease, options.clock->Monotonic());
    if (observed.holder() != options.identity && observed.HeldAt(options.clock->Monotonic())) co_return false;
    request.method = "PUT";
    request.target = LeasePath(options.name);
  } else if (got.error().reason() != meta::StatusReason::kNotFound) {
    co_return false;
  } else {
    lease.Set(arena, "kind", "Lease");
    lease.Set(arena, "apiVersion", kAPIVersion);
    Value metadata = lease.EnsureMap(arena, "metadata");
    metadata.Set(arena, "name", std::string_view(options.name));
    metadata.Set(arena, "namespace", kLeaseNamespace);
  }
  lease.Set(arena, "spec", Spec(arena, lease["spec"]));
  request.body = object::ToJSON(lease);
  const auto written = co_await options.client->Do(std::move(request));
  if (!written.ok()) co_return false;
  renewed = options.clock->Monotonic();
  observed.Observe(lease, renewed);
  co_return true;
}

Awaitable<void> LeaderElector::State::Release() {
  base::Arena arena;
  auto got = co_await options.client->Do({.method = "GET", .target = LeasePath(options.name)});
  if (!got.ok()) co_return;
  const auto parsed = object::ParseJSON(arena, *got);
  if (!parsed || parsed->Get("spec", "holderIdentity").as_string() != options.identity) co_return;
  Value lease = *parsed;
  Value spec = lease.EnsureMap(arena, "spec");
  spec.Set(arena, "holderIdentity", "");
  spec.Set(arena, "leaseDurationSeconds", Value(1));
  IgnoreError(
      co_await options.client->Do({.method = "PUT", .target = LeasePath(options.name), .body = object::ToJSON(lease)}),
      "the lease expires by itself");
}

LeaderElector::LeaderElector(Options options) : state_(std::make_shared<State>()) {
  state_->options = std::move(options);
  std::optional<async::Gate::Entry> held;
  if (state_->options.gate != nullptr && !(held = state_->options.gate->Enter())) return;
  auto run = Run(state_, std::move(held));
  asio::co_spawn(state_->options.executor, std::move(run), asio::detached);
}

LeaderElector::~LeaderElector() { Stop(); }

void LeaderElector::Stop() {
  state_->stopping = true;
  state_->wake.Set();
}

Awaitable<void> LeaderElector::Run(std::shared_ptr<State> state, std::optional<async::Gate::Entry> held) {
  const Options& options = state->options;
  while (!state->stopping) {
    const bool renewed = co_await state->TryAcquireOrRenew();
    if (state->stopping) break;
    if (renewed) state->Set(true);
    if (!renewed && state->leading && options.clock->Monotonic() - state->renewed >= options.renew_deadline) {
      log::Error("Failed to renew the lease of a leader", "lease", options.name);
      state->Set(false);
      co_await state->Release();  // another server need not wait until it expires
    }
    state->wake.Reset();
    if (state->stopping) break;
    const auto timer = CallAtDeadline(options.executor, options.clock->Monotonic() + options.retry_period,
                                      [weak = std::weak_ptr(state)] {
                                        if (const auto alive = weak.lock()) alive->wake.Set();
                                      });
    co_await state->wake.Wait();
  }
  if (state->leading) co_await state->Release();
  (void)held;
}

}  // namespace keelson::controllers
