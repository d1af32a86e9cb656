// Reads and writes of the garbage collector. Reads of local resources go to their Stores, everything else through the
// client. Thread safety: the controllers' executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/awaitable.h"
#include "base/clock.h"
#include "controllers/client.h"
#include "controllers/dependency_graph.h"
#include "controllers/object_metadata.h"
#include "controllers/resource_table.h"
#include "meta/status.h"
#include "registry/store.h"

namespace keelson::controllers {

// Why an object could not be reached, besides what the server answers.
enum class Unreachable : std::uint8_t {
  kNone,
  kNoMapping,       // the kind is not served (now)
  kWrongNamespace,  // a cluster-scoped object names a namespaced owner: will not get better
};

class GCOperations {
 public:
  // The Store of metadata of a resource that is followed; null when it is not.
  using FindStore = std::function<std::shared_ptr<registry::Store>(const MappedResource& resource)>;
  GCOperations(ClientPtr client, const ResourceTable& table, FindStore find_store)
      : client_(std::move(client)), table_(table), find_store_(std::move(find_store)) {}

  struct Got {
    Unreachable unreachable = Unreachable::kNone;
    bool namespaced = false;
    meta::Result<ObjectMetadata> object = ObjectMetadata();
  };
  Awaitable<Got> Get(ObjectIdentity identity) const;
  // With the object's UID and version as preconditions, as long as it has these owners.
  Awaitable<meta::Result<void>> Delete(ObjectIdentity identity, ObjectMetadata latest,
                                       std::string propagation_policy) const;
  // Strategic merge, or JSON merge where the resource does not take that.
  Awaitable<meta::Result<void>> RemoveOwners(ObjectIdentity identity, std::vector<std::string> owner_uids) const;
  Awaitable<meta::Result<void>> UnblockOwners(ObjectIdentity identity, std::vector<OwnerReference> owners) const;
  // "" or why not.
  Awaitable<std::string> RemoveFinalizer(ObjectIdentity identity, std::string finalizer) const;
  Awaitable<void> ReportInvalidNamespace(ObjectIdentity identity, OwnerReference owner, const base::Clock& clock) const;

 private:
  Awaitable<meta::Result<void>> SendDelete(ObjectIdentity identity, std::string resource_version,
                                           std::string propagation_policy) const;
  Awaitable<meta::Result<void>> Patch(ObjectIdentity identity, std::string type, std::string patch) const;
  // The owners it has now, changed by `change`, as a JSON merge patch.
  Awaitable<meta::Result<void>> MergeOwners(ObjectIdentity identity,
                                            std::function<void(std::vector<OwnerReference>& owners)> change) const;

  const ClientPtr client_;
  const ResourceTable& table_;
  const FindStore find_store_;
};

}  // namespace keelson::controllers
