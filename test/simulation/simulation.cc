#include "simulation/simulation.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <utility>

#include "async/io_pool.h"
#include "base/failpoint.h"
#include "kv/rocks/rocks.h"
#include "simulation/clients.h"

namespace keelson::simulation {
namespace {

using base::Failpoints;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kFaultOwner = 1;
constexpr int kFirstServerOwner = 10;
constexpr Time kSettleEvery = minutes(10);
constexpr Time kSettleMost = seconds(120);
constexpr int kWriters = 6;
constexpr std::uint64_t kStepsMax = 2000;  // events in a simulated second, on the average: a run that goes in circles
constexpr std::int64_t kEventTTL = 120;

// Of a commit, where other things may happen.
constexpr const char* kYields[] = {"kv/commit/before-write", "kv/commit/before-publish", "kv/compact/before-forget",
                                   "kv/compact/after-forget"};
// Of a commit, where it may fail.
constexpr const char* kFailures[] = {"kv/commit/before-write", "kv/rocks/before-write", "kv/rocks/after-sync",
                                     "kv/rocks/forget"};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Time duration, const std::string& dir, bool trace);
  ~Simulation();
  Outcome Run();

 private:
  // Until then, a failure or the last event.
  void RunUntil(Time time);
  void StartServer();
  void EndServer(const char* why, std::optional<Disk::Loss> loss);
  void NextFault();
  void Fault();
  void FailNextCommit();
  void Heal();
  void Settle();
  void CheckSettled(Time since);
  std::string Unsettled();
  static Awaitable<kv::Result<kv::RangeResponse>> ReadAll(kv::Store& store);
  void CheckStore();
  void CheckAll(const kv::RangeResponse& all);
  void StopServer(std::optional<Disk::Loss> loss);
  void EndOnALyingDisk();

  const Time duration_;
  const std::string dir_;
  World world_;
  Model model_{world_};
  Statistics statistics_;
  Disk disk_;
  Cluster cluster_{.world = world_, .model = model_, .statistics = statistics_};
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<std::unique_ptr<Informer>> informers_;
  ServerOptions options_;
  Time fault_mean_;
  bool checking_ = false;
  bool ending_ = false;  // no more faults
};

std::string Fresh(const std::string& dir) {
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

Simulation::Simulation(std::uint64_t seed, Time duration, const std::string& dir, bool trace)
    : duration_(duration), dir_(dir), world_(seed), disk_(Fresh(dir)) {
  cluster_.trace = trace;
  world_.trace = trace;
  model_.ttl = seconds(kEventTTL);
  model_.ttl_prefix = "/events/";
  options_.dir = dir_ + "/data";
  options_.event_ttl_seconds = kEventTTL;
  options_.flush_every = std::uint64_t{100} << world_.random().Below(6);
  options_.resident_bytes_max = std::size_t{4096} << world_.random().Below(8);
  options_.ring_capacity_min = world_.Chance(3) ? 8 : 100;
  fault_mean_ = seconds(20 + static_cast<int>(world_.random().Below(280)));
  for (const char* name : kYields) {
    Failpoints::Arm(name, [this] {
      if (server_ && world_.Chance(4)) server_->YieldCommit();
      return false;
    });
  }
  for (int i = 0; i < kWriters; ++i) writers_.push_back(std::make_unique<Writer>(cluster_, i));
  informers_.push_back(std::make_unique<Informer>(cluster_, 0, "", ""));
  informers_.push_back(std::make_unique<Informer>(cluster_, 0, "a", ""));
  informers_.push_back(std::make_unique<Informer>(cluster_, 0, "", "web"));
  informers_.push_back(std::make_unique<Informer>(cluster_, 0, "b", "db"));
  informers_.push_back(std::make_unique<Informer>(cluster_, 1, "", ""));
  informers_.push_back(std::make_unique<Informer>(cluster_, 1, "a-b", "web"));
}

Simulation::~Simulation() {
  for (const char* name : kYields) Failpoints::Arm(name, nullptr);
  for (const char* name : kFailures) Failpoints::Arm(name, nullptr);
}

void Simulation::StartServer() {
  // Now and then the power fails again while the store is being opened.
  if (statistics_.restarts + statistics_.kills + statistics_.power_losses > 0 && world_.Chance(5)) {
    disk_.FreezeAfter(static_cast<int>(1 + world_.random().Below(80)));
  }
  options_.owner = kFirstServerOwner + 2 * ++cluster_.start;
  auto started = Server::Start(world_, disk_, model_, options_);
  if (disk_.frozen()) {
    ++statistics_.crashes_in_recovery;
    if (started.ok()) (*started)->Stop();
    started = kv::Error{.code = kv::ErrorCode::kClosed, .message = "power failed"};
    disk_.Thaw(world_.Chance(3) ? Disk::Loss::kNothing : Disk::Loss::kUnsynced, world_.random());
    cluster_.Say("power failed while the store was opened");
    world_.After(seconds(1), kFaultOwner, [this] { StartServer(); });
    return;
  }
  disk_.FreezeAfter(0);
  if (!started.ok()) {
    cluster_.Say("start: " + started.error().message);
    if (started.error().code == kv::ErrorCode::kCorrupt)
      return model_.Fail("the store does not open: " + started.error().message);
    // The disk is full, or a sync failed. It opens once that is over, or nothing settles.
    ++statistics_.failed_starts;
    world_.After(seconds(5), kFaultOwner, [this] { StartServer(); });
    return;
  }
  server_ = *std::move(started);
  cluster_.server = server_.get();
  model_.Restarted();
  cluster_.Say("server started");
  CheckStore();
}

void Simulation::EndServer(const char* why, std::optional<Disk::Loss> loss) {
  if (!server_) return;
  cluster_.Say(why);
  StopServer(loss);
  world_.After(world_.Between(milliseconds(200), seconds(8)), kFaultOwner, [this] { StartServer(); });
}

void Simulation::StopServer(std::optional<Disk::Loss> loss) {
  if (loss) disk_.Freeze();
  cluster_.server = nullptr;
  ++cluster_.start;
  server_->alive.reset();
  for (auto& writer : writers_) writer->ServerGone();
  for (auto& informer : informers_) informer->ServerGone();
  server_->Stop();
  server_.reset();
  checking_ = false;
  if (loss) disk_.Thaw(*loss, world_.random());
}

Awaitable<kv::Result<kv::RangeResponse>> Simulation::ReadAll(kv::Store& store) {
  co_return co_await store.Range({.key = "/registry/", .range_end = kv::PrefixEnd("/registry/"), .keys_only = true});
}

// The store itself, against the history that the model has.
void Simulation::CheckStore() {
  if (std::exchange(checking_, true)) return;
  server_->Ask<kv::Result<kv::RangeResponse>>(
      ReadAll(server_->kv()), [this, start = cluster_.start](kv::Result<kv::RangeResponse> all) {
        if (start != cluster_.start) return;
        checking_ = false;
        if (!all.ok()) return;
        const auto revision = static_cast<std::uint64_t>(all->revision);
        if (revision < model_.told())
          return model_.Fail(fmt::format("revision {} was told, the store is at {}", model_.told(), revision));
        CheckAll(*all);
      });
}

void Simulation::CheckAll(const kv::RangeResponse& all) {
  std::vector<Seen> items;
  for (const kv::KeyValue& kv : all.kvs)
    items.push_back({kv.key.substr(std::string_view("/registry").size()), static_cast<std::uint64_t>(kv.mod_revision)});
  model_.CheckStore(static_cast<std::uint64_t>(all.revision), std::move(items));
}

// The last fault of a run, since nothing can be promised behind it: for a while syncs do nothing, then the power fails.
// The store must refuse to open or have a state that once was. That state may be older than the last one that was
// durable before: the removal of a log can reach the disk while the table that replaced it, whose sync lied, does not.
void Simulation::EndOnALyingDisk() {
  if (model_.failed() || !server_) return;
  ++statistics_.lying_disks;
  cluster_.Say("syncs do nothing from now on");
  ending_ = true;
  cluster_.burst = true;
  disk_.Lie();
  const Time until = world_.now() + world_.Between(seconds(1), seconds(60));
  RunUntil(until);
  disk_.SetFree(-1);
  if (model_.failed()) return;
  StopServer(Disk::Loss::kUnsynced);
  kv::rocks::Options options;
  options.dir = options_.dir;
  auto opened = kv::rocks::Open(std::move(options));
  async::IOPool io(1);
  auto all = kv::Result<kv::RangeResponse>(kv::MakeError(kv::ErrorCode::kClosed));
  if (opened.ok()) all = asio::co_spawn(io.executor(0), ReadAll(**opened), asio::use_future).get();
  if (!all.ok()) {
    ++statistics_.lies_refused;
    return;
  }
  CheckAll(*all);
}

void Simulation::NextFault() {
  world_.After(world_.Exponential(fault_mean_), kFaultOwner, [this] {
    if (!cluster_.calm && !ending_ && server_) Fault();
    NextFault();
  });
}

void Simulation::FailNextCommit() {
  const char* const name = kFailures[world_.random().Below(std::size(kFailures))];
  ++statistics_.failed_commits;
  cluster_.Say(fmt::format("a commit will fail at {}", name));
  Failpoints::Arm(name, [done = std::make_shared<bool>(false)] { return !std::exchange(*done, true); });
}

void Simulation::Heal() {
  disk_.SetFree(-1);
  disk_.FailSyncs(0);
  for (const char* name : kFailures) Failpoints::Arm(name, nullptr);
  for (const char* name : kYields) {
    Failpoints::Arm(name, [this] {
      if (server_ && world_.Chance(4)) server_->YieldCommit();
      return false;
    });
  }
  if (server_) server_->sync_delay = Time(0);
}

void Simulation::Fault() {
  switch (world_.random().Below(12)) {
    case 0:
    case 1:
    case 2:
      ++statistics_.power_losses;
      return EndServer("power loss", Disk::Loss::kUnsynced);
    case 3:
    case 4:
      ++statistics_.kills;
      return EndServer("kill", Disk::Loss::kNothing);
    case 5:
      ++statistics_.restarts;
      return EndServer("restart", std::nullopt);
    case 6: {
      ++statistics_.full_disks;
      const auto free = static_cast<std::int64_t>(world_.random().Below(3) * (std::uint64_t{4} << 20));
      cluster_.Say(fmt::format("disk full, {} left", free));
      disk_.SetFree(free);
      world_.After(world_.Between(seconds(1), seconds(60)), kFaultOwner, [this] { disk_.SetFree(-1); });
      return;
    }
    case 7:
      ++statistics_.slow_disks;
      server_->sync_delay = world_.Between(milliseconds(20), seconds(4));
      world_.After(world_.Between(seconds(5), seconds(60)), kFaultOwner, [this] {
        if (server_) server_->sync_delay = Time(0);
      });
      return;
    case 8:
      ++statistics_.failed_syncs;
      return disk_.FailSyncs(1);
    case 9: {
      ++statistics_.clock_jumps;
      const Time by = world_.Between(seconds(1), std::chrono::hours(24));
      world_.clock().skew += world_.Chance(2) ? by : -by;
      return;
    }
    case 10:
      cluster_.burst = true;
      world_.After(world_.Between(seconds(1), seconds(10)), kFaultOwner, [this] { cluster_.burst = false; });
      return;
    default:
      return FailNextCommit();
  }
}

std::string Simulation::Unsettled() {
  if (!server_) return "no server";
  if (!server_->Ready()) return "a watch cache is not ready";
  if (server_->kv().write_health().refuses_writes) return "the store refuses writes";
  for (const auto& writer : writers_) {
    if (writer->busy()) return "a request has no answer";
  }
  if (model_.waiting() > 0) return "unknown: " + model_.FirstWaiting();
  if (model_.known() < model_.told()) return "history is behind";
  for (const auto& informer : informers_) {
    if (!informer->CaughtUp()) return "a watch is behind: " + informer->Describe();
  }
  return "";
}

void Simulation::Settle() {
  cluster_.calm = true;
  cluster_.burst = false;
  Heal();
  for (auto& informer : informers_) informer->Hurry();
  world_.After(seconds(10), kFaultOwner, [this, since = world_.now()] { CheckSettled(since); });
}

void Simulation::CheckSettled(Time since) {
  const std::string why = Unsettled();
  if (!why.empty() && world_.now() - since < kSettleMost) {
    world_.After(seconds(1), kFaultOwner, [this, since] { CheckSettled(since); });
    return;
  }
  if (!why.empty()) return model_.Fail("does not settle: " + why);
  ++statistics_.settled;
  model_.CheckExpired(seconds(60) + kSettleMost);
  CheckStore();
  cluster_.calm = false;
  world_.After(kSettleEvery, kFaultOwner, [this] { Settle(); });
}

void Simulation::RunUntil(Time time) {
  const auto length = std::chrono::duration_cast<seconds>(time).count();
  const std::uint64_t steps_max = kStepsMax * (60 + static_cast<std::uint64_t>(length));
  while (!model_.failed() && world_.now() < time && world_.Step()) {
    if (world_.steps() > steps_max) model_.Fail(fmt::format("more than {} events until {} s", steps_max, length));
  }
}

Outcome Simulation::Run() {
  Disk::ObeyFreeze();
  StartServer();
  for (auto& writer : writers_) writer->Begin();
  for (auto& informer : informers_) informer->Begin();
  NextFault();
  world_.After(kSettleEvery, kFaultOwner, [this] { Settle(); });
  RunUntil(duration_);
  Outcome outcome;
  outcome.hash = world_.hash();
  outcome.simulated = world_.now();
  statistics_.events_run = world_.steps();
  EndOnALyingDisk();
  if (server_) StopServer(std::nullopt);
  outcome.failures = model_.failures();
  statistics_.changes = model_.known();
  const Disk::Figures disk = disk_.figures();
  statistics_.torn_pages = disk.torn_pages;
  statistics_.lost_pages = disk.lost_pages;
  statistics_.lost_entries = disk.lost_entries;
  outcome.statistics = statistics_;
  return outcome;
}

}  // namespace

void Statistics::Add(const Statistics& other) {
  auto* const mine = reinterpret_cast<std::uint64_t*>(this);
  const auto* const theirs = reinterpret_cast<const std::uint64_t*>(&other);
  for (std::size_t i = 0; i < sizeof(Statistics) / sizeof(std::uint64_t); ++i) mine[i] += theirs[i];
}

Outcome Simulate(std::uint64_t seed, Time duration, const std::string& dir, bool trace) {
  Simulation simulation(seed, duration, dir, trace);
  return simulation.Run();
}

}  // namespace keelson::simulation
