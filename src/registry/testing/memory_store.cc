#include "registry/testing/memory_store.h"

#include "kv/memory/memory.h"
#include "registry/catalog.h"
#include "storage/schema_codec.h"
#include "storage/store.h"

namespace keelson::registry::testing {

MemoryStore::MemoryStore(std::string_view group, std::string_view plural, const base::Clock& clock,
                         const std::function<void(Store::Options&)>& customize)
    : definition_(Catalog::BuiltIn()->Find(group, plural)),
      kv_(kv::memory::Open()),
      leases_(std::make_unique<storage::LeaseManager>(*kv_, clock)) {
  codec_ = storage::NewSchemaCodec({.resource = definition_->resource,
                                    .storage = {definition_->kind.group, "v1", definition_->kind.kind},
                                    .type = definition_->hub_version().type});
  Store::Options options{StoredKindOf(*definition_)};
  options.storage =
      std::make_shared<storage::Store>(storage::StoreParts{.kv = *kv_, .codec = *codec_, .leases = *leases_},
                                       storage::StoreOptions{.resource_prefix = definition_->layout.resource_prefix});
  options.codec = codec_;
  options.key_root = definition_->layout.resource_prefix;
  options.clock = &clock;
  if (customize) customize(options);
  store_ = std::make_shared<Store>(std::move(options));
}

}  // namespace keelson::registry::testing
