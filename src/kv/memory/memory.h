// A store that lives as long as the process: etcd's meaning, nothing on disk.
#pragma once

#include <memory>

#include "kv/mvcc/store.h"

namespace keelson::kv::memory {

using Options = mvcc::Options;

std::unique_ptr<mvcc::EmbeddedStore> Open(Options options = {});

}  // namespace keelson::kv::memory
