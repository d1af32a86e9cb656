// The stored resources of the server: for each a codec, a storage Store, a watch cache, and the registry Store above
// them. Built-in resources are there from the start; others are added and removed while the server runs. The entries
// are an immutable tree behind an atomic reference: a look-up takes no lock. Thread safety: construction and
// Start()/Stop() by the owner; all other members from any thread.
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
#include "registry/catalog.h"
#include "registry/resource_definition.h"
#include "registry/store.h"
#include "storage/resource_codec.h"
#include "telemetry/metrics.h"

namespace keelson::storage {
class EncryptionAtRest;  // storage/transform/encryption_at_rest.h
}

namespace keelson::server {

struct StorageConfig {
  std::shared_ptr<const registry::Catalog> catalog = registry::Catalog::BuiltIn();  // resources that are always there
  kv::Store* kv = nullptr;                                                          // must outlive this
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
  std::function<void(registry::Store::Options& options)> customize;
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

  const registry::Catalog& catalog() const;
  // The registry Store of a built-in resource, made on first use. Null if the kind has no strategy, or the resource
  // does not exist.
  std::shared_ptr<registry::Store> Get(const registry::ResourceDefinition& definition);
  std::shared_ptr<registry::Store> Get(std::string_view group, std::string_view plural);
  // Null when there is none of that name (now).
  std::shared_ptr<registry::Store> Find(std::string_view group, std::string_view plural) const;

  // A resource that comes while the server runs, in place of the one of the same name, if there is one. Its watch cache
  // starts with the first read.
  std::shared_ptr<registry::Store> Add(const registry::ResourceDefinition& definition,
                                       std::shared_ptr<const storage::ResourceCodec> codec);
  // A Store for reading the same objects by another codec, without a cache, not registered. This must outlive it.
  std::shared_ptr<registry::Store> NewView(const registry::ResourceDefinition& definition,
                                           std::shared_ptr<const storage::ResourceCodec> codec);
  // Removes `store` if it is the current one of its resource; its watches end after `grace`, its cache is destroyed
  // when the last request that uses it is done.
  void Remove(const std::shared_ptr<registry::Store>& store, std::chrono::milliseconds grace);

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
    std::int64_t average_bytes;  // 0 before the first PollCounts()
  };
  std::vector<Count> Counts() const;  // of cached resources

  // Background work, each about as often as upstream does it.
  Awaitable<void> PollCounts();        // --etcd-count-metric-poll-period
  Awaitable<void> CheckConsistency();  // caches beside the store, every five minutes

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::server
