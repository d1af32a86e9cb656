// One start of the server in a simulation: registry Stores over watch caches over storage Stores over the embedded
// store on RocksDB, with the compactor. No sockets, HTTP, authentication or admission; events come from a World.
#pragma once

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "cacher/cacher.h"
#include "kv/mvcc/store.h"
#include "registry/store.h"
#include "simulation/disk.h"
#include "simulation/model.h"
#include "simulation/world.h"
#include "storage/compactor.h"
#include "storage/lease_manager.h"
#include "storage/store.h"

namespace rocksdb {
class Env;
}

namespace keelson::simulation {

class Background;  // RocksDB's jobs (server.cc)

struct ServerOptions {
  std::string dir;
  int owner = 0;                     // of its events, with the number after it
  std::uint64_t flush_every = 1000;  // steps of the writer, about; ten a second when idle
  std::size_t resident_bytes_max = 64 * 1024;
  std::uint32_t ring_capacity_min = 100;
  std::uint64_t event_ttl_seconds = 120;
};

class Server {
 public:
  struct Resource {
    std::string prefix;  // "/configmaps/"
    std::shared_ptr<const storage::ResourceCodec> codec;
    std::unique_ptr<storage::Store> storage;
    std::unique_ptr<cacher::Cacher> cache;
    std::shared_ptr<registry::Store> registry;
  };

  // kv's error when the store does not open.
  static kv::Result<std::unique_ptr<Server>> Start(World& world, Disk& disk, Model& model, ServerOptions options);
  ~Server();  // REQUIRES: Stop()

  // Ends everything; what is under way is answered or destroyed. Time does not pass, nothing is drawn from the seed.
  void Stop();
  // On the writer's thread: other things happen before it goes on.
  void YieldCommit();

  kv::mvcc::EmbeddedStore& kv() { return *kv_; }
  Resource& resource(std::size_t index) { return resources_[index]; }
  std::size_t resources() const { return resources_.size(); }
  boost::asio::any_io_executor AnyLane();
  boost::asio::any_io_executor lane(std::size_t index) { return lanes_->executor(index); }
  bool Ready() const;
  // Has the work done on one of its threads; `done` gets the result there.
  template <class T>
  void Ask(Awaitable<T> work, std::move_only_function<void(T)> done) {
    ++requests_;
    asio::co_spawn(AnyLane(), Finish(std::move(work), std::move(done), &requests_), asio::detached);
  }
  std::shared_ptr<int> alive = std::make_shared<int>();  // reset before Stop()
  // How long syncs of the log take, beyond a millisecond.
  Time sync_delay{0};

 private:
  Server(World& world, Disk& disk, Model& model, ServerOptions options);
  int ControlOwner() const { return options_.owner + 1; }  // of what ends with the server
  template <class T>
  static Awaitable<void> Finish(Awaitable<T> work, std::move_only_function<void(T)> done, int* requests) {
    T result = co_await std::move(work);
    --*requests;
    done(std::move(result));
  }
  void Run(kv::mvcc::Work kind, Work work);
  void MakeResource(std::string_view group, std::string_view plural, std::uint64_t ttl_seconds);
  void Flush();    // RocksDB's memtables
  void RunJobs();  // RocksDB's
  void Tick();
  void Compact();
  Awaitable<void> CompactOnce();
  Awaitable<void> Follow();  // gives the model the truth
  void Learn(const kv::WatchResponse& response, std::vector<std::pair<kv::Event, storage::ObjectPtr>> events);

  World& world_;
  Disk& disk_;
  Model& model_;
  const ServerOptions options_;
  std::unique_ptr<Lanes> lanes_;
  std::unique_ptr<Fiber> fiber_;
  std::unique_ptr<Background> background_;
  std::unique_ptr<base::Random> random_;
  std::unique_ptr<kv::mvcc::EmbeddedStore> kv_;
  std::unique_ptr<storage::LeaseManager> leases_;
  std::unique_ptr<storage::Compactor> compactor_;
  cacher::HistoryBudget history_{std::size_t{4} << 20};
  std::vector<Resource> resources_;
  std::unique_ptr<kv::Watcher> truth_;
  bool truth_ended_ = true;
  bool compacting_ = false;
  bool sleep_over_ = false;  // of a job of RocksDB's
  bool stopped_ = false;
  int requests_ = 0;
};

// "op" and "saw" of its labels.
WriteID WriteOf(const storage::Object& object);
WriteID SawOf(const storage::Object& object);
std::string_view LabelOf(const storage::Object& object, std::string_view label);
Seen SeenOf(const storage::Object& object);

}  // namespace keelson::simulation
