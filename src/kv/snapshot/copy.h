// A store's contents moved to another store through the contract alone: embedded to etcd, etcd to embedded, or between
// two of a kind.
#pragma once

#include "kv/kv.h"

namespace keelson::kv::snapshot {

struct CopyInfo {
  std::int64_t keys = 0;
  std::int64_t leases = 0;
  Revision from_revision = 0;  // what was copied
  Revision to_revision = 0;    // where the target is afterwards
};

// Keys, values and leases (with their identifiers and their whole time to live) arrive as they are. Revisions are the
// target's own: the copy first moves the target beyond `from`'s revision with writes of a scratch key (as far as
// `revision_steps_max` allows), so that what clients hold as resourceVersion is never newer than the store; then it
// compacts the target, so that a client that watches sees "too old" and lists again. The target must be empty;
// kInvalidArgument when it is not. Nobody may write to `from` meanwhile: what is written after the copy began is not
// copied.
Awaitable<Result<CopyInfo>> Copy(Store& from, Store& to, std::int64_t revision_steps_max = 10'000'000);

}  // namespace keelson::kv::snapshot
