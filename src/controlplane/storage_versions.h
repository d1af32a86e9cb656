// Publishes to other servers and the storage migrator in which version this server stores each built-in resource: the
// StorageVersion objects of internal.apiserver.k8s.io (upstream's storageversion.Manager). Behind the gates
// StorageVersionAPI and APIServerIdentity. Thread safety: the owner's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/gate.h"
#include "controlplane/resource_storage.h"
#include "endpoints/filters/storage_version.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

// The StorageVersion entry of one resource.
struct StorageVersionInfo {
  meta::GroupResource resource;
  std::string encoding_version;
  std::vector<std::string> decodable_versions, served_versions;
  std::vector<meta::GroupResource> equivalents;  // the same objects under other groups' names; `resource` is the first
};
// Of all stored resources that `server` and its delegates serve, by group and name. Resources with the same objects
// (events) appear once.
std::vector<StorageVersionInfo> StorageVersionInfos(const server::GenericAPIServer& server);
// `object` (a StorageVersion, changed in place) with this server's entry, the common version and its condition.
void SetServerStorageVersion(base::Arena& arena, Value object, std::string_view server_id,
                             const StorageVersionInfo& info, std::string_view now);

class StorageVersionManager {
 public:
  // REQUIRES: all API groups are installed in `server`. `identity` is the name of the server's lease.
  StorageVersionManager(server::GenericAPIServer& server, ResourceStorage& storage, std::string identity);
  ~StorageVersionManager();  // Stop()

  std::shared_ptr<const endpoints::filters::StorageVersionBarrier> barrier() const;
  // Writes all objects; the owner repeats it every kStorageVersionPeriod, in case they were changed.
  Awaitable<void> Update();
  void Stop();  // not on an I/O thread

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

constexpr std::chrono::minutes kStorageVersionPeriod{10};

}  // namespace keelson::controlplane
