#include "simulation/server.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "kv/rocks/backend.h"
#include "kv/rocks/compaction_room.h"
#include "kv/rocks/log_file.h"
#include "kv/rocks/rocks.h"
#include "registry/catalog.h"
#include "storage/schema_codec.h"

namespace keelson::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr Time kTick = milliseconds(100);
constexpr Time kCompactEvery = minutes(5);
constexpr int kLanes = 3;
constexpr std::uint64_t kHandlersAtEndMax = 10'000'000;

WriteID ToNumber(std::string_view text) {
  WriteID number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

// RocksDB's flushes and compactions on one thread, one after the other, and only while nothing else happens:
// they are held back during a commit or an open. Otherwise the state of the disk would depend on the
// machine. A job that failed sleeps before RocksDB tries it again: in simulated time, so that a full disk gets its
// space back meanwhile.
class Background final : public rocksdb::EnvWrapper {
 public:
  explicit Background(const World& world)
      : EnvWrapper(rocksdb::Env::Default()), world_(world), thread_([this] { Loop(); }) {
    file_system_ = kv::rocks::NewLogFileSystem(kv::rocks::NewRoomFileSystem(rocksdb::FileSystem::Default()));
    system_clock_ = std::make_shared<SleepingClock>(*this);
  }
  ~Background() override {
    {
      std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const char* Name() const override { return "Background"; }
  void Schedule(void (*function)(void*), void* argument, Priority priority, void* tag,
                void (*unscheduled)(void*)) override {
    std::lock_guard guard(mutex_);
    jobs_.push_back({function, argument, priority, tag, unscheduled});
    changed_.notify_all();
  }
  int UnSchedule(void* tag, Priority priority) override {
    std::vector<Job> taken;
    {
      std::lock_guard guard(mutex_);
      const auto matches = [&](const Job& job) { return job.tag == tag && job.priority == priority; };
      std::ranges::copy_if(jobs_, std::back_inserter(taken), matches);
      std::erase_if(jobs_, matches);
      changed_.notify_all();
    }
    for (const Job& job : taken) {
      if (job.unscheduled != nullptr) job.unscheduled(job.argument);
    }
    return static_cast<int>(taken.size());
  }
  unsigned int GetThreadPoolQueueLen(Priority) const override { return 0; }

  void Hold() {
    std::lock_guard guard(mutex_);
    held_ = true;
  }
  void Release() {
    std::lock_guard guard(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // Until no job runs, or the one that runs sleeps. How long it wants to sleep, when it has begun to since the last
  // call. REQUIRES: not held.
  std::optional<Time> WaitIdle() {
    std::unique_lock guard(mutex_);
    const std::uint64_t done_max = jobs_done_ + kJobsMax;
    const auto idle = [&] { return jobs_done_ > done_max || sleeping_ || (jobs_.empty() && !running_); };
    if (!changed_.wait_for(guard, kJobMax, idle)) world_.Die("a job of RocksDB does not end");
    if (jobs_done_ > done_max) world_.Die("jobs of RocksDB follow each other without end");
    return std::exchange(sleep_, std::nullopt);
  }
  void EndSleep() {
    std::lock_guard guard(mutex_);
    sleeping_ = false;
    changed_.notify_all();
  }
  // The simulation's time does not pass any more: from now on jobs sleep by the machine's, a little.
  void StopTime() {
    std::lock_guard guard(mutex_);
    time_stopped_ = true;
    changed_.notify_all();
  }

 private:
  struct Job {
    void (*function)(void*);
    void* argument;
    Priority priority;
    void* tag;
    void (*unscheduled)(void*);
  };
  class SleepingClock final : public rocksdb::SystemClockWrapper {
   public:
    explicit SleepingClock(Background& background)
        : SystemClockWrapper(rocksdb::SystemClock::Default()), background_(background) {}
    const char* Name() const override { return "SleepingClock"; }
    void SleepForMicroseconds(int micros) override {
      if (std::this_thread::get_id() == background_.thread_.get_id()) return background_.Sleep(microseconds(micros));
      SystemClockWrapper::SleepForMicroseconds(micros);
    }

   private:
    Background& background_;
  };
  // A commit that rewrites the store waits for a job, one that opens it again for a job's end; such a one is neither
  // held nor asleep for ever.
  static constexpr std::chrono::seconds kHeldMax{5};
  static constexpr milliseconds kSleepAtEnd{20};
  static constexpr std::uint64_t kJobsMax = 10'000;  // between two commits
  static constexpr std::uint64_t kEarlyMax = 20;     // sleeps in succession that simulated time did not end
  static constexpr minutes kJobMax{30};              // of the machine's time: a deadlock

  void Sleep(Time least) {
    std::unique_lock guard(mutex_);
    if (!time_stopped_) {
      sleeping_ = true;
      sleep_ = least;
      changed_.notify_all();
      const auto over = [&] { return !sleeping_ || stopping_ || time_stopped_; };
      early_ = changed_.wait_for(guard, kHeldMax, over) ? 0 : early_ + 1;
      if (early_ > kEarlyMax) world_.Die("a commit waits without end for a job of RocksDB that fails again and again");
      sleeping_ = false;
      sleep_.reset();
    }
    if (time_stopped_) changed_.wait_for(guard, kSleepAtEnd, [&] { return stopping_; });
  }

  void Loop() {
    std::unique_lock guard(mutex_);
    for (;;) {
      changed_.wait(guard, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      changed_.wait_for(guard, kHeldMax, [&] { return stopping_ || !held_ || jobs_.empty(); });
      if (stopping_) return;
      if (jobs_.empty()) continue;
      const Job job = jobs_.front();
      jobs_.pop_front();
      running_ = true;
      guard.unlock();
      job.function(job.argument);
      guard.lock();
      running_ = false;
      ++jobs_done_;
      changed_.notify_all();
    }
  }

  const World& world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool held_ = true;
  bool running_ = false;
  bool sleeping_ = false;
  bool time_stopped_ = false;
  bool stopping_ = false;
  std::optional<Time> sleep_;
  std::uint64_t jobs_done_ = 0;
  std::uint64_t early_ = 0;
  std::thread thread_;
};

std::string_view LabelOf(const storage::Object& object, std::string_view label) {
  for (const auto& [key, value] : object.attributes().labels) {
    if (key == label) return value;
  }
  return "";
}
WriteID WriteOf(const storage::Object& object) { return ToNumber(LabelOf(object, "op")); }
WriteID SawOf(const storage::Object& object) { return ToNumber(LabelOf(object, "saw")); }
Seen SeenOf(const storage::Object& object) {
  return {std::string(object.key()), object.resource_version(), WriteOf(object)};
}

Server::Server(World& world, Disk& disk, Model& model, ServerOptions options)
    : world_(world),
      disk_(disk),
      model_(model),
      options_(std::move(options)),
      lanes_(std::make_unique<Lanes>(world, options_.owner, kLanes)),
      fiber_(std::make_unique<Fiber>()),
      background_(std::make_unique<Background>(world)),
      random_(base::Seeded(world.random().Next())) {
  fiber_->on_yield = [this](Time least) {
    const Time delay = least + sync_delay + world_.Between(microseconds(20), milliseconds(1));
    world_.After(delay, ControlOwner(), [this] { fiber_->Resume(); });
  };
  fiber_->on_end = [this] {
    if (stopped_) return;
    if (kv_ && world_.Chance(options_.flush_every)) Flush();
    RunJobs();
  };
}

kv::Result<std::unique_ptr<Server>> Server::Start(World& world, Disk& disk, Model& model, ServerOptions options) {
  std::unique_ptr<Server> server(new Server(world, disk, model, std::move(options)));
  Server* const self = server.get();
  kv::rocks::Options store;
  store.dir = self->options_.dir;
  store.clock = &world.clock();
  store.random = self->random_.get();
  store.executor = [self](kv::mvcc::Work kind, Work work) { self->Run(kind, std::move(work)); };
  store.resident_bytes_max = self->options_.resident_bytes_max;
  // RocksDB's skip lists draw heights from the address of a thread, so a memtable is never full by its own measure.
  store.memtable_bytes = std::size_t{64} << 20;
  store.deletion_reserve_bytes = std::int64_t{4} << 20;
  store.disk_reserve_bytes = std::int64_t{8} << 20;
  store.env = self->background_.get();
  auto opened = kv::rocks::Open(std::move(store));
  self->RunJobs();
  if (!opened.ok()) {
    self->stopped_ = true;
    return std::move(opened).error();
  }
  self->kv_ = *std::move(opened);
  self->leases_ = std::make_unique<storage::LeaseManager>(*self->kv_, world.clock());
  self->compactor_ = std::make_unique<storage::Compactor>(*self->kv_);
  self->MakeResource("", "configmaps", 0);
  self->MakeResource("", "events", self->options_.event_ttl_seconds);
  for (Resource& resource : self->resources_) resource.cache->Start();
  self->truth_ended_ = false;
  asio::co_spawn(self->lane(0), self->Follow(), asio::detached);
  world.After(kTick, self->ControlOwner(), [self] { self->Tick(); });
  world.After(world.Between(Time(0), kCompactEvery), self->ControlOwner(), [self] { self->Compact(); });
  return server;
}

Server::~Server() { KS_CHECK(stopped_); }

void Server::MakeResource(std::string_view group, std::string_view plural, std::uint64_t ttl_seconds) {
  const registry::ResourceDefinitionPtr definition = registry::Catalog::BuiltIn()->Find(group, plural);
  Resource resource;
  resource.prefix = definition->layout.resource_prefix + "/";
  resource.codec = storage::NewSchemaCodec({.resource = definition->resource,
                                            .storage = {definition->kind.group, "v1", definition->kind.kind},
                                            .type = definition->hub_version().type});
  resource.storage =
      std::make_unique<storage::Store>(storage::StoreParts{.kv = *kv_, .codec = *resource.codec, .leases = *leases_},
                                       storage::StoreOptions{.resource_prefix = definition->layout.resource_prefix});
  resource.cache = std::make_unique<cacher::Cacher>(
      *resource.storage, lane(resources_.size() % lanes_->size()), world_.clock(), history_,
      cacher::CacherOptions{.ring = {.capacity_min = options_.ring_capacity_min}});
  registry::Store::Options options{registry::StoredKindOf(*definition)};
  options.storage = std::shared_ptr<storage::Interface>(resource.cache.get(), [](storage::Interface*) {});
  options.codec = resource.codec;
  options.key_root = definition->layout.resource_prefix;
  options.clock = &world_.clock();
  options.random = random_.get();
  options.ttl_seconds = ttl_seconds;
  resource.registry = std::make_shared<registry::Store>(std::move(options));
  resources_.push_back(std::move(resource));
}

boost::asio::any_io_executor Server::AnyLane() { return lane(world_.random().Below(lanes_->size())); }

void Server::Run(kv::mvcc::Work kind, Work work) {
  if (stopped_) return lanes_->Post(0, std::move(work));
  const Time delay = world_.Between(microseconds(1), microseconds(300));
  if (kind == kv::mvcc::Work::kRead) return world_.After(delay, options_.owner, std::move(work));
  world_.After(delay, options_.owner, [this, work = std::move(work)]() mutable {
    if (stopped_) return work();
    fiber_->Start(std::move(work));
  });
}

void Server::Tick() {
  kv_->Tick();
  for (Resource& resource : resources_) resource.cache->Tick();
  if (truth_) truth_->RequestProgress();
  world_.After(kTick, ControlOwner(), [this] { Tick(); });
}

void Server::Compact() {
  if (!std::exchange(compacting_, true)) asio::co_spawn(lane(1), CompactOnce(), asio::detached);
  world_.After(kCompactEvery, ControlOwner(), [this] { Compact(); });
}

Awaitable<void> Server::CompactOnce() {
  IgnoreError(co_await compactor_->Compact(), "the store may refuse writes; the next round goes on");
  for (Resource& resource : resources_)
    resource.cache->Compacted(static_cast<std::uint64_t>(compactor_->compact_revision()));
  compacting_ = false;
}

Awaitable<void> Server::Follow() {
  truth_ = kv_->Watch({.key = "/registry/",
                       .range_end = kv::PrefixEnd("/registry/"),
                       .start_revision = static_cast<kv::Revision>(model_.known() + 1)});
  while (!stopped_) {
    auto response = co_await truth_->Next();
    if (!response.ok()) {
      // The store is being opened again after a failed write, or it ends.
      if (response.error().code == kv::ErrorCode::kCompacted) model_.Fail("history was compacted too early");
      if (response.error().code != kv::ErrorCode::kUnavailable) break;
      continue;
    }
    if (stopped_) break;
    std::vector<std::pair<kv::Event, storage::ObjectPtr>> events;
    for (kv::Event& event : response->events) {
      storage::ObjectPtr object;
      if (event.type == kv::Event::Type::kPut) {
        Resource& of = event.kv.key.starts_with("/registry" + resources_[0].prefix) ? resources_[0] : resources_[1];
        kv::KeyValue pair = event.kv;
        auto opened = co_await of.storage->ObjectOf(std::move(pair));
        if (!opened.ok()) model_.Fail("unreadable: " + event.kv.key + ": " + opened.error().message);
        if (opened.ok()) object = *std::move(opened);
      }
      events.emplace_back(std::move(event), std::move(object));
    }
    if (stopped_) break;
    Learn(*response, std::move(events));
  }
  truth_ended_ = true;
}

void Server::Learn(const kv::WatchResponse& response, std::vector<std::pair<kv::Event, storage::ObjectPtr>> events) {
  for (const auto& [event, object] : events) {
    Version version{.revision = static_cast<std::uint64_t>(event.kv.mod_revision),
                    .deleted = event.type == kv::Event::Type::kDelete};
    if (object) {
      version.write = WriteOf(*object);
      version.seen = SawOf(*object);
      version.app = LabelOf(*object, "app");
    }
    world_.Trace(version.revision * 31 + version.write);
    model_.Change(event.kv.key.substr(std::string_view("/registry").size()), std::move(version));
  }
  model_.Known(static_cast<std::uint64_t>(response.revision));
}

bool Server::Ready() const {
  for (const Resource& resource : resources_) {
    if (!resource.cache->Ready()) return false;
  }
  return true;
}

// REQUIRES: no commit is under way.
void Server::Flush() {
  auto* const backend = static_cast<kv::rocks::RocksBackend*>(kv_->backend());
  const kv::rocks::DatabasePtr database = backend->database();
  if (!database) return;
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;  // Else it waits for a compaction, for which a full disk may have no room.
  const auto& families = database->families;
  const auto flushed = database->db->Flush(options, {families.settings, families.changes, families.values});
  flushed.PermitUncheckedError();  // The disk may be full; the log still has everything.
}

void Server::RunJobs() {
  if (std::exchange(sleep_over_, false)) background_->EndSleep();
  background_->Release();
  const std::optional<Time> sleep = background_->WaitIdle();
  background_->Hold();
  if (!sleep) return;
  world_.After(*sleep, ControlOwner(), [this] {
    sleep_over_ = true;
    if (!fiber_->busy()) RunJobs();  // Else at the end of the commit.
  });
}

void Server::YieldCommit() {
  if (fiber_->running()) fiber_->Yield(Time(0));
}

void Server::Stop() {
  stopped_ = true;
  world_.Take(ControlOwner());
  fiber_->hurry = true;
  lanes_->StartDrain();
  background_->StopTime();
  if (fiber_->busy()) fiber_->Resume();
  background_->Release();
  if (truth_) truth_->Cancel();
  std::atomic<bool> ended{false};
  std::thread stopper([&] {
    for (Resource& resource : resources_) resource.cache->Stop();
    ended = true;
  });
  std::uint64_t handlers = 0;
  while (!ended || !truth_ended_ || compacting_ || requests_ > 0) {
    if (!lanes_->DrainOne())
      std::this_thread::yield();
    else if (++handlers > kHandlersAtEndMax)
      world_.Die("the end of the server takes handlers without end");
  }
  stopper.join();
  while (lanes_->DrainOne()) {
    if (++handlers > kHandlersAtEndMax) world_.Die("the end of the server takes handlers without end");
  }
}

}  // namespace keelson::simulation
