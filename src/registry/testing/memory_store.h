// A Store of one built-in resource over real storage on the memory kv. For tests.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "kv/kv.h"
#include "registry/resource_definition.h"
#include "registry/store.h"
#include "storage/lease_manager.h"
#include "storage/resource_codec.h"

namespace keelson::registry::testing {

class MemoryStore {
 public:
  // `customize` has the last word on the Store's options. `clock` must outlive this.
  MemoryStore(std::string_view group, std::string_view plural, const base::Clock& clock,
              const std::function<void(Store::Options&)>& customize = nullptr);

  const ResourceDefinition& definition() const { return *definition_; }
  const ResourceDefinitionPtr& definition_ptr() const { return definition_; }
  const std::shared_ptr<Store>& store() const { return store_; }

 private:
  ResourceDefinitionPtr definition_;
  std::unique_ptr<kv::Store> kv_;
  std::unique_ptr<storage::LeaseManager> leases_;
  std::shared_ptr<const storage::ResourceCodec> codec_;
  std::shared_ptr<Store> store_;
};

}  // namespace keelson::registry::testing
