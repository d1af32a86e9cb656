// The stored resources of the server: for each a codec from the tables, a storage Store, a watch cache, and the
// registry Store above them. Thread safety: construction and Start()/Stop() by the owner; everything handed out from
// any thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/io_pool.h"
#include "base/clock.h"
#include "kv/kv.h"
#include "registry/store.h"
#include "schema/schema.h"
#include "telemetry/metrics.h"

namespace keelson::storage {
class EncryptionAtRest;  // storage/transform/encryption_at_rest.h
}

namespace keelson::controlplane {

struct StorageConfig {
  kv::Store* kv = nullptr;  // must outlive this
  // Stores of single resources, by "group/resource" (--etcd-servers-overrides); must outlive this.
  std::map<std::string, kv::Store*> kv_overrides;
  async::IOPool* io = nullptr;  // must outlive this and run until Stop() returned
  const base::Clock* clock = &base::Clock::Real();
  std::string etcd_prefix = "/registry";
  bool watch_cache = true;
  std::set<std::string> uncached;  // resource.group of --watch-cache-sizes entries with 0
  std::size_t encoded_cache_bytes = 64 * 1024 * 1024;
  std::size_t history_bytes = 64 * 1024 * 1024;
  std::uint64_t event_ttl_seconds = 3600;
  std::int64_t lease_reuse_seconds = 60;
  bool garbage_collector = true;
  bool allow_privileged = false;
  bool (*feature_enabled)(std::string_view gate) = nullptr;
  // Last words on a resource's Store before it is made: hooks around its writes.
  std::function<void(const schema::Resource& resource, registry::Store::Options& options)> customize;
  storage::EncryptionAtRest* encryption = nullptr;  // null: nothing is encrypted; must outlive this
  bool report_corrupt = false;                      // the gate AllowUnsafeMalformedObjectDeletion
  std::string media_type;                           // --storage-media-type; "": protobuf
  // Null: nothing is counted. Must outlive this, and not be exposed after it.
  telemetry::MetricsRegistry* metrics = nullptr;
};

class ResourceStorage {
 public:
  explicit ResourceStorage(StorageConfig config);
  ~ResourceStorage();  // REQUIRES: Stop() if Start() was called

  // The registry Store of a resource, made on first use. `resource` is the table of the hub version. Null when the kind
  // has no strategy.
  std::shared_ptr<registry::Store> Get(const schema::Resource& resource);
  std::shared_ptr<registry::Store> Find(std::string_view group, std::string_view plural) const;

  // Starts the watch caches; Stop() ends them and waits.
  void Start();
  void Stop();
  bool Ready() const;  // every cache has its first state
  std::vector<std::string> NotReady() const;
  void Tick();                             // about every 100 ms
  void Compacted(std::uint64_t revision);  // the store has forgotten what was before

  struct Count {
    std::string group, resource;
    std::int64_t objects;
  };
  std::vector<Count> Counts() const;  // of cached resources

  // Background work, each about as often as upstream does it.
  Awaitable<void> PollCounts();        // --etcd-count-metric-poll-period
  Awaitable<void> CheckConsistency();  // caches beside the store, every five minutes

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::controlplane
