#include "kv/rocks/rocks.h"

#include "kv/rocks/backend.h"

namespace keelson::kv::rocks {

Result<std::unique_ptr<mvcc::EmbeddedStore>> Open(Options options) {
  const mvcc::Options common = options;
  KS_TRY(auto backend, RocksBackend::Open(std::move(options)));
  return mvcc::EmbeddedStore::Open(std::move(backend), common);
}

}  // namespace keelson::kv::rocks
