// gRPC's locks are abseil's, and Debian builds abseil with the check for lock cycles on: every lock then goes through
// one graph of all locks, which cost 4 % of the CPU of a served store. Called before gRPC is used.
#pragma once

namespace keelson::kv::etcdpb {

void DoNotCheckLockCycles();

}  // namespace keelson::kv::etcdpb
