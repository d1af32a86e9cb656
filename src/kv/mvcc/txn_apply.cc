// Transactions, leases and compaction on the writer thread: checked first, then applied to the index; nothing is
// visible yet.
#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/random.h"
#include "kv/mvcc/core.h"

namespace keelson::kv::mvcc {
namespace {

template <class T>
bool Compares(kv::Compare::Operator op, const T& left, const T& right) {
  switch (op) {
    case kv::Compare::Operator::kEqual:
      return left == right;
    case kv::Compare::Operator::kGreater:
      return left > right;
    case kv::Compare::Operator::kLess:
      return left < right;
    case kv::Compare::Operator::kNotEqual:
      return left != right;
  }
  return false;
}

bool HoldsFor(const kv::Compare& compare, const Version& version) {
  switch (compare.target) {
    case kv::Compare::Target::kVersion:
      return Compares(compare.op, version.version, compare.number);
    case kv::Compare::Target::kCreateRevision:
      return Compares(compare.op, version.create, compare.number);
    case kv::Compare::Target::kModRevision:
      return Compares(compare.op, version.mod, compare.number);
    case kv::Compare::Target::kLease:
      return Compares(compare.op, version.lease, compare.number);
    case kv::Compare::Target::kValue:
      break;
  }
  return false;
}

KeyValue ToKeyValue(const std::string& key, const Version& version, SharedBytes value) {
  return {.key = key,
          .value = std::move(value),
          .create_revision = version.create,
          .mod_revision = version.mod,
          .version = version.version,
          .lease = version.lease};
}

bool Puts(const TxnRequest& request, std::vector<bool>::const_iterator& step) {
  const bool success = *step++;
  bool puts = false;
  for (const Op& op : success ? request.success : request.failure) {
    if (op.kind == Op::Kind::kPut) puts = true;
    if (op.kind == Op::Kind::kTxn && Puts(*op.txn, step)) puts = true;
  }
  return puts;
}

}  // namespace

Result<SharedBytes> Core::ValueOf(const Version& version) {
  if (version.resident()) return version.value;
  return backend->Read(version.location());
}

void Core::KeepForWatchers(const Version& version) {
  if (version.resident() || !hub.has_prev_kv()) return;
  auto value = backend->Read(version.location());
  if (!value.ok()) return;
  std::lock_guard guard(lock);
  index.MakeResident(const_cast<Version&>(version), *std::move(value));
}

Result<bool> Core::Holds(const kv::Compare& compare) {
  bool holds = true;
  bool any = false;
  std::optional<Error> error;
  index.ForEach(compare.key, compare.range_end, kNewest, [&](const Entry&, const Version& version) {
    any = true;
    if (!holds || error) return;
    if (compare.target != kv::Compare::Target::kValue) {
      holds = HoldsFor(compare, version);
      return;
    }
    auto value = ValueOf(version);
    if (!value.ok()) {
      error = std::move(value).error();
    } else {
      holds = Compares(compare.op, value->view(), compare.value.view());
    }
  });
  if (error) return *std::move(error);
  if (any) return holds;
  // A key that does not exist has all numbers zero, and no value that anything could be compared with.
  return compare.target != kv::Compare::Target::kValue && HoldsFor(compare, Version());
}

// The chosen branch of the transaction and of those nested in it, depth first. All compares are made before
// anything is applied.
Result<void> Core::EvaluatePath(const TxnRequest& request, std::vector<bool>& path) {
  bool success = true;
  for (const auto& compare : request.compare) {
    KS_TRY(const bool holds, Holds(compare));
    if (!holds) {
      success = false;
      break;
    }
  }
  path.push_back(success);
  for (const Op& op : success ? request.success : request.failure) {
    if (op.kind == Op::Kind::kTxn) KS_RETURN_IF_ERROR(EvaluatePath(*op.txn, path));
  }
  return {};
}

Result<void> Core::CheckPath(const TxnRequest& request, bool success, std::vector<bool>::const_iterator& step) {
  for (const Op& op : success ? request.success : request.failure) {
    switch (op.kind) {
      case Op::Kind::kRange:
        // A negative revision means "now" in a Range call, but kCompacted inside a transaction, as in etcd.
        if (op.range.revision < 0 && op.range.revision < compacting_) return MakeError(ErrorCode::kCompacted);
        KS_RETURN_IF_ERROR(ResolveRevision(op.range.revision, assigned_, compacting_));
        break;
      case Op::Kind::kPut: {
        if (op.put.ignore_value || op.put.ignore_lease) {
          const Entry* entry = index.Find(op.put.key);
          if (entry == nullptr || Index::At(entry->second, kNewest) == nullptr)
            return MakeError(ErrorCode::kKeyNotFound);
        }
        if (op.put.lease != 0 && !lessor.Has(op.put.lease)) return MakeError(ErrorCode::kLeaseNotFound);
        break;
      }
      case Op::Kind::kDeleteRange:
        break;
      case Op::Kind::kTxn: {
        const bool nested = *step++;
        KS_RETURN_IF_ERROR(CheckPath(*op.txn, nested, step));
        break;
      }
    }
  }
  return {};
}

Result<TxnResponse> Core::ApplyTxn(const TxnRequest& request) {
  std::vector<bool> path;
  KS_RETURN_IF_ERROR(EvaluatePath(request, path));
  auto check = path.cbegin();
  const bool success = *check++;
  KS_RETURN_IF_ERROR(CheckPath(request, success, check));
  if (backend) {
    auto step = path.cbegin();
    if (Puts(request, step)) KS_RETURN_IF_ERROR(backend->CheckSpace(static_cast<std::int64_t>(WriteBytes(request))));
  }
  sub_ = 0;
  auto step = path.cbegin();
  const std::size_t before = changes_.size();
  auto response = Execute(request, step);
  if (!response.ok()) {
    // A value could not be read half way: what was applied is taken back.
    std::lock_guard guard(lock);
    while (changes_.size() > before) {
      Entry* entry = changes_.back().entry;
      const Version taken = entry->second.back();
      const std::string key = entry->first;
      if (taken.lease != 0) lessor.Detach(taken.lease, key);
      index.TakeBack(entry);
      changes_.pop_back();
      const Entry* left = index.Find(key);
      const Version* previous = left != nullptr ? Index::At(left->second, kNewest) : nullptr;
      if (previous != nullptr && previous->lease != 0) lessor.Attach(previous->lease, key);
    }
    sub_ = 0;
    return response;
  }
  if (sub_ > 0) ++assigned_;
  sub_ = 0;
  return response;
}

Result<TxnResponse> Core::Execute(const TxnRequest& request, std::vector<bool>::const_iterator& step) {
  TxnResponse response;
  response.succeeded = *step++;
  const auto& ops = response.succeeded ? request.success : request.failure;
  response.responses.reserve(ops.size());
  for (const Op& op : ops) {
    OpResponse& one = response.responses.emplace_back();
    one.kind = op.kind;
    switch (op.kind) {
      case Op::Kind::kRange: {
        // A read without a revision sees what the transaction wrote before it.
        Missing missing;
        Gather(op.range, op.range.revision > 0 ? op.range.revision : kNewest, one.range, missing);
        KS_RETURN_IF_ERROR(FillOnWriter(missing));
        FinishRange(op.range, one.range);
        one.range.revision = HeaderRevision();
        break;
      }
      case Op::Kind::kPut:
        KS_RETURN_IF_ERROR(ApplyPut(op.put, one));
        break;
      case Op::Kind::kDeleteRange:
        KS_RETURN_IF_ERROR(ApplyDelete(op.delete_range, one));
        break;
      case Op::Kind::kTxn: {
        KS_TRY(auto nested, Execute(*op.txn, step));
        one.txn = std::make_shared<TxnResponse>(std::move(nested));
        break;
      }
    }
  }
  response.revision = HeaderRevision();
  return response;
}

void Core::AddVersion(const std::string& key, const Version* previous, Version version) {
  version.mod = assigned_ + 1;
  version.sub = sub_++;
  const LeaseID old_lease = previous != nullptr ? previous->lease : 0;
  const LeaseID new_lease = version.lease;
  std::lock_guard guard(lock);
  if (old_lease != new_lease) {
    if (old_lease != 0) lessor.Detach(old_lease, key);
    if (new_lease != 0) lessor.Attach(new_lease, key);
  }
  const Change change{.revision = version.mod, .sub = version.sub, .entry = index.Add(key, std::move(version))};
  changes_.push_back(change);
}

Result<void> Core::ApplyPut(const PutRequest& request, OpResponse& response) {
  const Entry* entry = index.Find(request.key);
  const Version* previous = entry != nullptr ? Index::At(entry->second, kNewest) : nullptr;
  Version version{.create = assigned_ + 1, .version = 1, .lease = request.lease, .value = request.value};
  if (previous != nullptr) {
    KeepForWatchers(*previous);
    if (request.prev_kv || request.ignore_value) {
      KS_TRY(SharedBytes old, ValueOf(*previous));
      if (request.ignore_value) version.value = old;
      if (request.prev_kv) response.put_prev = ToKeyValue(request.key, *previous, std::move(old));
    }
    version.create = previous->create;
    version.version = previous->version + 1;
    if (request.ignore_lease) version.lease = previous->lease;
  }
  version.value_size = static_cast<std::uint32_t>(version.value.size());
  AddVersion(request.key, previous, std::move(version));
  return {};
}

Result<void> Core::ApplyDelete(const DeleteRangeRequest& request, OpResponse& response) {
  std::vector<std::pair<const Entry*, const Version*>> found;
  index.ForEach(request.key, request.range_end, kNewest,
                [&](const Entry& entry, const Version& version) { found.emplace_back(&entry, &version); });
  for (const auto& [entry, version] : found) {
    KeepForWatchers(*version);
    if (request.prev_kv) {
      KS_TRY(SharedBytes old, ValueOf(*version));
      response.delete_prev.push_back(ToKeyValue(entry->first, *version, std::move(old)));
    }
    AddVersion(entry->first, version, Version());
  }
  response.deleted = static_cast<std::int64_t>(found.size());
  return {};
}

Result<Lease> Core::ApplyGrant(std::int64_t ttl, LeaseID id) {
  if (ttl > kLeaseTTLMax) return MakeError(ErrorCode::kLeaseTTLTooLarge);
  if (id != 0 && lessor.Has(id)) return MakeError(ErrorCode::kLeaseExists);
  if (backend) KS_RETURN_IF_ERROR(backend->CheckSpace(0));
  while (id == 0 || lessor.Has(id)) id = static_cast<LeaseID>(options.random->Next() & 0x7fff'ffff'ffff'ffff);
  ttl = std::max(ttl, options.lease_ttl_min);
  std::lock_guard guard(lock);
  lessor.Grant(id, ttl, Now());
  batch_.leases.push_back({.id = id, .ttl = ttl});
  return Lease{.id = id, .granted_ttl = ttl, .remaining_ttl = ttl};
}

Result<Revision> Core::ApplyRevoke(LeaseID id) {
  // The only failure: from here on nothing may return, so that a revocation is applied whole.
  if (!lessor.Has(id)) return MakeError(ErrorCode::kLeaseNotFound);
  sub_ = 0;
  for (const std::string& key : lessor.KeysOf(id)) {
    const Entry* entry = index.Find(key);
    const Version* version = entry != nullptr ? Index::At(entry->second, kNewest) : nullptr;
    KS_CHECK(version != nullptr && version->lease == id);
    KeepForWatchers(*version);
    AddVersion(key, version, Version());
  }
  if (sub_ > 0) ++assigned_;
  sub_ = 0;
  std::lock_guard guard(lock);
  lessor.Revoke(id);
  // Granted in the same commit: then there is nothing to remove.
  if (std::erase_if(batch_.leases, [&](const LeaseRecord& granted) { return granted.id == id; }) == 0)
    batch_.leases_removed.push_back(id);
  return assigned_;
}

Result<Revision> Core::ApplyCompact(Revision revision) {
  if (revision <= compacting_) {
    Error error = MakeError(ErrorCode::kCompacted);
    error.compact_revision = compacting_;
    return error;
  }
  if (revision > assigned_) return MakeError(ErrorCode::kFutureRevision);
  compacting_ = revision;
  batch_.compact = revision;
  return assigned_;
}

}  // namespace keelson::kv::mvcc
