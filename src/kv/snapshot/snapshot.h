// The contents of a store at one revision as a stream of bytes, with a checksum at its end. Works on any kv::Store,
// while it is used. Keys keep their values, leases and revisions; older history is not part of
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kv/kv.h"

namespace keelson::kv::snapshot {

constexpr std::int64_t kPageKeys = 500;
constexpr std::int64_t kEndedLeaseTTL = 1;  // seconds; of an expired lease whose keys are in the snapshot

struct Info {
  Revision revision = 0;  // what the snapshot is of
  std::int64_t keys = 0;
  std::int64_t leases = 0;
  std::int64_t bytes = 0;
};

// Takes the next bytes; an error stops the snapshot.
using Sink = std::function<Awaitable<Result<void>>(std::string bytes)>;

// After every page: keys so far, and about how many there are.
using Progress = std::function<void(std::int64_t keys, std::int64_t about)>;

// kCompacted when a store elsewhere was compacted beyond the revision before the end was reached; then it may be tried
// again. A store in this process keeps the revision.
Awaitable<Result<Info>> Write(Store& store, Sink sink, Progress progress = nullptr);
// Into a file: under another name first, synced, then renamed. Blocks on the disk: on a thread that may.
Awaitable<Result<Info>> WriteFile(Store& store, std::string path, Progress progress = nullptr);

// The contents of a snapshot file: keys by key, each after its lease.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual Result<void> OnLease(LeaseID id, std::int64_t ttl) = 0;
  virtual Result<void> OnKey(KeyValue kv) = 0;
};

// kCorrupt when the checksum or anything else is wrong; the checksum is verified before the visitor is called.
Result<Info> ReadFile(const std::string& path, Visitor* visitor);  // null: verifies only

}  // namespace keelson::kv::snapshot
