#include "kv/mvcc/txn_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::kv::mvcc {
namespace {

constexpr std::size_t kOpOverheadBytes = 16;  // what tags, lengths and flags of one operation take on the wire, about

// Keys written by the operations of one branch.
struct Writes {
  std::set<std::string_view> puts;
  std::vector<std::pair<std::string_view, std::string_view>> deletes;

  // As etcd sees it: the end of a range is taken for a key here, so that a deletion "from here on" is one of nothing.
  bool Deletes(std::string_view key) const {
    return std::ranges::any_of(deletes, [&](const auto& range) {
      return range.second.empty() ? key == range.first : key >= range.first && key < range.second;
    });
  }
};

// Adds the puts of a transaction's branch. `beside`: what its other branch puts, which may be the same.
bool AddPuts(Writes& writes, const std::set<std::string_view>& puts, const std::set<std::string_view>& beside) {
  for (const auto key : puts) {
    if (writes.Deletes(key) || (writes.puts.contains(key) && !beside.contains(key))) return false;
    writes.puts.insert(key);
  }
  return true;
}

// Refuses exactly what etcd refuses, which overlooks a key that one nested transaction puts and a later one deletes:
// then a revision has two changes of a key.
Result<Writes> CollectWrites(const std::vector<Op>& ops) {
  static const std::set<std::string_view> kNone;
  Writes writes;
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::kDeleteRange) writes.deletes.emplace_back(op.delete_range.key, op.delete_range.range_end);
  }
  for (const Op& op : ops) {
    if (op.kind != Op::Kind::kTxn) continue;
    KS_TRY(const Writes success, CollectWrites(op.txn->success));
    KS_TRY(const Writes failure, CollectWrites(op.txn->failure));
    if (!AddPuts(writes, success.puts, kNone) || !AddPuts(writes, failure.puts, success.puts))
      return MakeError(ErrorCode::kDuplicateKey);
    for (const Writes* branch : {&success, &failure})
      writes.deletes.insert(writes.deletes.end(), branch->deletes.begin(), branch->deletes.end());
  }
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::kPut && !AddPuts(writes, {op.put.key}, kNone)) return MakeError(ErrorCode::kDuplicateKey);
  }
  return writes;
}

Result<void> CheckPut(const PutRequest& request) {
  if (request.key.empty()) return MakeError(ErrorCode::kEmptyKey);
  if (request.ignore_value && !request.value.empty()) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "etcdserver: value is provided"};
  }
  if (request.ignore_lease && request.lease != 0) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "etcdserver: lease is provided"};
  }
  return {};
}

Result<void> CheckOps(const TxnRequest& request, std::size_t ops_max) {
  const std::size_t ops = std::max({request.compare.size(), request.success.size(), request.failure.size()});
  if (ops > ops_max) return MakeError(ErrorCode::kTooManyOps);
  for (const Compare& compare : request.compare) {
    if (compare.key.empty()) return MakeError(ErrorCode::kEmptyKey);
  }
  for (const auto* branch : {&request.success, &request.failure}) {
    for (const Op& op : *branch) {
      switch (op.kind) {
        case Op::Kind::kRange:
          KS_RETURN_IF_ERROR(CheckRange(op.range));
          break;
        case Op::Kind::kPut:
          KS_RETURN_IF_ERROR(CheckPut(op.put));
          break;
        case Op::Kind::kDeleteRange:
          if (op.delete_range.key.empty()) return MakeError(ErrorCode::kEmptyKey);
          break;
        case Op::Kind::kTxn:
          KS_RETURN_IF_ERROR(CheckOps(*op.txn, ops_max - ops));
          break;  // so nesting is bounded, too
      }
    }
  }
  return {};
}

std::size_t RequestBytes(const TxnRequest& request, bool writes_only) {
  std::size_t bytes = 0;
  if (!writes_only) {
    for (const Compare& compare : request.compare)
      bytes += compare.key.size() + compare.value.size() + kOpOverheadBytes;
  }
  for (const auto* branch : {&request.success, &request.failure}) {
    for (const Op& op : *branch) {
      if (op.kind == Op::Kind::kPut) {
        bytes += op.put.key.size() + op.put.value.size() + kOpOverheadBytes;
      } else if (op.kind == Op::Kind::kTxn) {
        bytes += RequestBytes(*op.txn, writes_only);
      } else if (!writes_only) {
        bytes += kOpOverheadBytes;
      }
    }
  }
  return bytes;
}

}  // namespace

Result<void> CheckRange(const RangeRequest& request) {
  if (request.key.empty()) return MakeError(ErrorCode::kEmptyKey);
  return {};
}

Result<void> CheckTxn(const TxnRequest& request, const Limits& limits) {
  KS_RETURN_IF_ERROR(CheckOps(request, limits.ops_max));
  KS_RETURN_IF_ERROR(CollectWrites(request.success));
  KS_RETURN_IF_ERROR(CollectWrites(request.failure));
  if (RequestBytes(request, false) > limits.request_bytes_max) return MakeError(ErrorCode::kTooLarge);
  return {};
}

bool MayWrite(const TxnRequest& request) {
  for (const auto* branch : {&request.success, &request.failure}) {
    for (const Op& op : *branch) {
      if (op.kind == Op::Kind::kPut || op.kind == Op::Kind::kDeleteRange) return true;
      if (op.kind == Op::Kind::kTxn && MayWrite(*op.txn)) return true;
    }
  }
  return false;
}

std::size_t WriteBytes(const TxnRequest& request) { return RequestBytes(request, true); }

}  // namespace keelson::kv::mvcc
