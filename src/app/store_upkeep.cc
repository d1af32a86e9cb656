#include "app/store_upkeep.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "app/files.h"
#include "app/repeated.h"
#include "async/blocking_pool.h"
#include "base/strings.h"
#include "storage/compactor.h"
#include "storage/health.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

constexpr std::chrono::seconds kReloadLook{1};    // how often the encryption configuration is looked at
constexpr std::chrono::minutes kReloadPeriod{1};  // how often it is read although it looks unchanged, as upstream
constexpr std::chrono::seconds kKMSPeriod{1};     // how often due KMS probes are checked
constexpr std::chrono::minutes kConsistencyPeriod{5};
constexpr std::chrono::seconds kWritesPeriod{1};
constexpr std::chrono::seconds kFirstPoll{1};  // of figures: when the caches are filled
constexpr std::chrono::nanoseconds kNow{1};
constexpr std::chrono::seconds kHealthToldEvery{1};

std::chrono::milliseconds Millis(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

}  // namespace

Outcome<std::unique_ptr<Encryption>, Error> Encryption::New(async::IOPool& io, const EtcdOptions& options, bool kms_v1,
                                                            telemetry::MetricsRegistry& metrics,
                                                            const std::string& server_id) {
  const std::string& path = options.encryption_provider_config_filepath;
  if (path.empty()) return std::unique_ptr<Encryption>();
  auto text = ReadSmallFile(path);
  if (!text.ok()) {
    return Error(
        "error while parsing file: error while loading file: error reading encryption provider configuration "
        "file " +
        base::GoQuote(path) + ": " + text.error().message());
  }
  std::unique_ptr<Encryption> encryption(new Encryption);
  encryption->metrics_ = std::make_unique<storage::TransformMetrics>(metrics, server_id);
  auto work =
      storage::EncryptionAtRest::New(*std::move(text), {.path = path,
                                                        .reload = options.encryption_provider_config_automatic_reload,
                                                        .kms_v1 = kms_v1,
                                                        .metrics = encryption->metrics_.get()});
  auto made = asio::co_spawn(io.Next(), std::move(work), asio::use_future).get();
  if (!made.ok()) return Error(made.error());
  encryption->rules_ = *std::move(made);
  return encryption;
}

struct StoreUpkeep::Impl {
  // Maintenance of one store.
  struct Care {
    Care(kv::Store& store, const EtcdOptions& options)
        : health(store, base::Clock::Real(), options.prefix, Millis(options.healthcheck_timeout)),
          readiness(store, base::Clock::Real(), options.prefix, Millis(options.readycheck_timeout)),
          compactor(store) {}
    storage::HealthProbe health;
    storage::HealthProbe readiness;
    storage::Compactor compactor;
    std::optional<base::Clock::SteadyTime> ill_since;  // for the log
  };

  // Timeouts of zero are the defaults, as upstream.
  static EtcdOptions WithTimeouts(EtcdOptions options) {
    if (options.healthcheck_timeout.count() == 0) options.healthcheck_timeout = EtcdOptions().healthcheck_timeout;
    if (options.readycheck_timeout.count() == 0) options.readycheck_timeout = EtcdOptions().readycheck_timeout;
    return options;
  }

  Impl(Parts parts_in, const EtcdOptions& options_in)
      : parts(std::move(parts_in)),
        options(WithTimeouts(options_in)),
        db_size(parts.metrics.Gauges({.name = "apiserver_storage_size_bytes",
                                      .help = "Size of the storage database file physically allocated in bytes.",
                                      .stability = telemetry::Stability::kStable,
                                      .labels = {"storage_cluster_id"}})),
        refuses_writes(parts.metrics.NewGauge(
            {.name = "keelson_store_refuses_writes",
             .help = "1 while the embedded store refuses writes because one failed, until it has recovered."})),
        write_failures(parts.metrics.NewCounter(
            {.name = "keelson_store_write_failures_total",
             .help = "Writes of the embedded store to its disk that failed. It refuses writes after each until it has "
                     "recovered."})) {
    cares.emplace_back(parts.store, options);
    for (kv::Store* const store : parts.overrides) cares.emplace_back(*store, options);
  }

  Awaitable<void> Reload();
  Awaitable<void> TellHealth();
  Awaitable<void> Compact(Care& care);
  Awaitable<void> PollSize();
  Awaitable<void> PollWrites();

  const Parts parts;
  const EtcdOptions options;
  std::deque<Care> cares;  // of the store of everything, then of the overrides
  telemetry::GaugeVec& db_size;
  telemetry::Gauge& refuses_writes;
  telemetry::Counter& write_failures;
  std::uint64_t failures_seen = 0;
  std::string config_identity;  // of the encryption configuration when it was read last
  base::Clock::SteadyTime config_read;
  async::BlockingPool files{"encryption", 1};
  std::vector<std::unique_ptr<Repeated>> work;  // last: ends first
};

// An error in a changed file is logged, and the old configuration stays in force.
Awaitable<void> StoreUpkeep::Impl::Reload() {
  const std::string& path = options.encryption_provider_config_filepath;
  std::string identity = co_await files.Run([path] { return FileIdentity(path); });
  const auto now = base::Clock::Real().Monotonic();
  if (identity == config_identity && now - config_read < kReloadPeriod) co_return;
  config_identity = std::move(identity);
  config_read = now;
  auto text = co_await files.Run([path] { return ReadSmallFile(path); });
  if (!text.ok()) {
    log::Error("Could not read the encryption configuration again", "path", path, "err", text.error().message());
    co_return;
  }
  storage::EncryptionAtRest& rules = parts.encryption->rules();
  const auto changed = co_await rules.Reload(*std::move(text));
  if (!changed.ok()) {
    log::Error("Could not take over the encryption configuration", "path", path, "err", changed.error());
  } else if (*changed) {
    log::Info("Took over the changed encryption configuration", "path", path, "hash", rules.hash());
  }
}

// A store that stops or starts to answer is logged once each way; clients see only timeouts.
Awaitable<void> StoreUpkeep::Impl::TellHealth() {
  for (std::size_t i = 0; i < cares.size(); ++i) {
    Care& care = cares[i];
    const auto problem = care.health.last();
    const std::string name = "etcd-" + std::to_string(i);
    const auto now = base::Clock::Real().Monotonic();
    if (problem && !care.ill_since) {
      care.ill_since = now;
      log::Error("The store is not healthy: requests fail until it is", "store", name, "err", *problem);
    } else if (!problem && care.ill_since) {
      log::Info("The store is healthy again", "store", name, "after", now - *care.ill_since);
      care.ill_since.reset();
    }
  }
  co_return;
}

Awaitable<void> StoreUpkeep::Impl::PollSize() {
  for (std::size_t i = 0; i <= parts.overrides.size(); ++i) {
    const auto status = i == 0 ? co_await parts.store.Status() : co_await parts.overrides[i - 1]->Status();
    if (!status.ok()) {
      log::Error("Could not ask the store for its size", "err", status.error().message);
      continue;
    }
    const auto size = static_cast<double>(status->db_size);
    const std::string name = "etcd-" + std::to_string(i);
    db_size.With({name}).Set(size);
  }
}

Awaitable<void> StoreUpkeep::Impl::PollWrites() {
  const kv::mvcc::WriteHealth health = parts.write_health();
  refuses_writes.Set(health.refuses_writes ? 1 : 0);
  write_failures.Add(health.failures - std::exchange(failures_seen, health.failures));
  co_return;
}

StoreUpkeep::StoreUpkeep(Parts parts, const EtcdOptions& options)
    : impl_(std::make_unique<Impl>(std::move(parts), options)) {}
StoreUpkeep::~StoreUpkeep() = default;

storage::HealthProbe& StoreUpkeep::health() { return impl_->cares.front().health; }

void StoreUpkeep::AddHealthChecks(server::HealthChecks& checks) {
  for (std::size_t i = 0; i < impl_->cares.size(); ++i) {
    Impl::Care& care = impl_->cares[i];
    const std::string name = i == 0 ? "etcd" : "etcd-override";
    const std::string number = i == 0 ? "" : "-" + std::to_string(i - 1);
    checks.Add(name + number, [&care] { return care.health.last().value_or(""); }, {}, "etcd");
    checks.Add(
        name + "-readiness" + number, [&care] { return care.readiness.last().value_or(""); },
        {.healthz = false, .livez = false, .readyz = true}, "etcd-readiness");
  }
  if (impl_->parts.encryption == nullptr) return;
  if (impl_->options.encryption_provider_config_automatic_reload) {
    // The hook only starts the controller.
    checks.Add("poststarthook/start-encryption-provider-config-automatic-reload",
               [this] { return impl_->work.empty() ? std::string("not finished") : std::string(); }, {});
  }
  storage::EncryptionAtRest& rules = impl_->parts.encryption->rules();
  for (const std::string& name : rules.HealthChecks()) {
    checks.Add(name, [&rules, name] { return rules.Health(name); }, {.healthz = true, .livez = false, .readyz = true});
  }
}

namespace {

Awaitable<void> CheckHealth(storage::HealthProbe& probe) { co_await probe.Check(); }

}  // namespace

Awaitable<void> StoreUpkeep::Impl::Compact(Care& care) {
  auto done = co_await care.compactor.Compact();
  if (!done.ok()) log::Error("Could not compact the store", "err", done.error().message);
  // Caches follow the main store.
  if (&care == &cares.front()) parts.storage.Compacted(static_cast<std::uint64_t>(care.compactor.compact_revision()));
}

void StoreUpkeep::Start() {
  Impl& impl = *impl_;
  const auto every = [&impl](std::chrono::nanoseconds period, std::function<Awaitable<void>()> work, double jitter = 0,
                             std::chrono::nanoseconds first = {}) {
    impl.work.push_back(std::make_unique<Repeated>(impl.parts.io.Next(), period, std::move(work), jitter, first));
  };
  for (Impl::Care& care : impl.cares) {
    // At once, too: readiness waits for the first answer.
    every(impl.options.healthcheck_timeout / 2, [&care] { return CheckHealth(care.health); }, 0, kNow);
    every(impl.options.readycheck_timeout / 2, [&care] { return CheckHealth(care.readiness); }, 0, kNow);
    every(impl.options.compaction_interval, [&impl, &care] { return impl.Compact(care); });
  }
  every(kHealthToldEvery, [&impl] { return impl.TellHealth(); });
  every(impl.options.count_metric_poll_period, [&impl] { return impl.parts.storage.PollCounts(); }, 0.2, kFirstPoll);
  every(impl.options.db_metric_poll_interval, [&impl] { return impl.PollSize(); }, 0.5, kFirstPoll);
  if (impl.parts.write_health) every(kWritesPeriod, [&impl] { return impl.PollWrites(); });
  if (impl.parts.check_consistency) {
    every(kConsistencyPeriod, [&impl] { return impl.parts.storage.CheckConsistency(); }, 0.5);
  }
  if (impl.parts.encryption == nullptr) return;
  every(kKMSPeriod, [&impl] { return impl.parts.encryption->rules().Poll(); });
  if (impl.options.encryption_provider_config_automatic_reload) every(kReloadLook, [&impl] { return impl.Reload(); });
}

}  // namespace keelson::app
