#include "kv/etcdpb/locks.h"

#include <absl/synchronization/mutex.h>

namespace keelson::kv::etcdpb {

void DoNotCheckLockCycles() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace keelson::kv::etcdpb
