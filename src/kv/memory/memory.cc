#include "kv/memory/memory.h"

#include "base/check.h"

namespace keelson::kv::memory {

std::unique_ptr<mvcc::EmbeddedStore> Open(Options options) {
  auto store = mvcc::EmbeddedStore::Open(nullptr, options);
  KS_CHECK(store.ok());  // Without a backend there is nothing that could fail.
  return *std::move(store);
}

}  // namespace keelson::kv::memory
