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

// What the operations of one branch write.
struct Writes {
  std::set<std::string_view> puts;
  std::vector<std::pair<std::string_view, std::string_view>> deletes;

  bool Deletes(std::string_view key) const {
    return std::ranges::any_of(deletes, [&](const auto& range) { return InRange(key, range.first, range.second); });
  }
};

bool Clash(const Writes& a, const Writes& b) {
  for (const auto key : a.puts) {
    if (b.puts.contains(key) || b.Deletes(key)) return true;
  }
  return std::ranges::any_of(b.puts, [&](const auto key) { return a.Deletes(key); });
}

void Merge(Writes& into, Writes&& from) {
  into.puts.merge(from.puts);
  into.deletes.insert(into.deletes.end(), from.deletes.begin(), from.deletes.end());
}

Result<Writes> CollectWrites(const std::vector<Op>& ops) {
  Writes writes;
  for (const Op& op : ops) {
    Writes one;
    switch (op.kind) {
      case Op::Kind::kRange:
        continue;
      case Op::Kind::kPut:
        one.puts.insert(op.put.key);
        break;
      case Op::Kind::kDeleteRange:
        one.deletes.emplace_back(op.delete_range.key, op.delete_range.range_end);
        break;
      case Op::Kind::kTxn: {
        // Only one of the two branches will run, so they may write the same keys.
        KS_TRY(Writes success, CollectWrites(op.txn->success));
        KS_TRY(Writes failure, CollectWrites(op.txn->failure));
        one = std::move(success);
        Merge(one, std::move(failure));
        break;
      }
    }
    if (Clash(writes, one)) return MakeError(ErrorCode::kDuplicateKey);
    Merge(writes, std::move(one));
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
