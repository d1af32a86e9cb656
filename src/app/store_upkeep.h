// Background maintenance of the server's store: encryption at rest, compaction, health checks, metrics.
// Thread safety: the owner's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/error.h"
#include "app/options.h"
#include "async/io_pool.h"
#include "base/outcome.h"
#include "controlplane/resource_storage.h"
#include "kv/kv.h"
#include "kv/mvcc/store.h"
#include "server/health.h"
#include "storage/health.h"
#include "storage/transform/encryption_at_rest.h"
#include "telemetry/metrics.h"

namespace keelson::app {

// --encryption-provider-config. Calls KMS plugins once, so that their keys are available when the first object is read.
class Encryption {
 public:
  // Null when the flag is not set. `kms_v1`: the gate KMSv1. All must outlive it.
  static Outcome<std::unique_ptr<Encryption>, Error> New(async::IOPool& io, const EtcdOptions& options, bool kms_v1,
                                                         telemetry::MetricsRegistry& metrics,
                                                         const std::string& server_id);
  storage::EncryptionAtRest& rules() { return *rules_; }

 private:
  Encryption() = default;
  std::unique_ptr<storage::TransformMetrics> metrics_;
  std::unique_ptr<storage::EncryptionAtRest> rules_;
};

class StoreUpkeep {
 public:
  struct Parts {
    async::IOPool& io;
    kv::Store& store;
    std::vector<kv::Store*> overrides;  // of --etcd-servers-overrides
    controlplane::ResourceStorage& storage;
    Encryption* encryption = nullptr;  // may be null
    telemetry::MetricsRegistry& metrics;
    std::function<kv::mvcc::WriteHealth()> write_health;  // of the embedded store; may be empty
    bool check_consistency = true;                        // the gate DetectCacheInconsistency
  };
  StoreUpkeep(Parts parts, const EtcdOptions& options);
  ~StoreUpkeep();

  // etcd, etcd-readiness, the same of each override, kms-providers.
  void AddHealthChecks(server::HealthChecks& checks);
  storage::HealthProbe& health();  // of the main store
  void Start();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::app
