// Checks of a request that need no look at the store. etcd reports their errors before all others.
#pragma once

#include <cstddef>

#include "kv/kv.h"

namespace keelson::kv::mvcc {

struct Limits {
  std::size_t ops_max = 128;                    // of each of compare, success and failure, nested ones included
  std::size_t request_bytes_max = 1536 * 1024;  // keys and values of one request
};

Result<void> CheckRange(const RangeRequest& request);
// kEmptyKey, kTooManyOps, kDuplicateKey, kTooLarge, kInvalidArgument.
Result<void> CheckTxn(const TxnRequest& request, const Limits& limits);

// Whether any branch could write; a transaction that cannot is a read.
bool MayWrite(const TxnRequest& request);
// The bytes of keys and values that a transaction could write.
std::size_t WriteBytes(const TxnRequest& request);

}  // namespace keelson::kv::mvcc
