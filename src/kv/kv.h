// The storage interface: the semantics of etcd's v3 API, as far as an API server needs them.
// Revisions count changes to the whole store and are never reused; every read returns the revision it was made at.
// Thread safety: all members from any thread. Coroutines resume on the caller's executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "base/outcome.h"
#include "base/shared_bytes.h"
#include "telemetry/span.h"

namespace keelson::kv {

using Revision = std::int64_t;
using LeaseID = std::int64_t;
using base::SharedBytes;

struct KeyValue {
  std::string key;
  SharedBytes value;
  Revision create_revision = 0;
  Revision mod_revision = 0;
  std::int64_t version = 0;  // writes since it was created
  LeaseID lease = 0;
};

enum class ErrorCode : std::uint8_t {
  kCompacted,       // the requested revision was compacted; `compact_revision` is the oldest kept
  kFutureRevision,  // the requested revision does not exist yet
  kLeaseNotFound,
  kLeaseExists,
  kDuplicateKey,  // one transaction writes a key twice
  kTooLarge,      // "etcdserver: request is too large"
  kTooManyOps,
  kNoSpace,  // "etcdserver: mvcc: database space exceeded"
  kEmptyKey,
  kCorrupt,
  kUnavailable,  // no server answers
  kDeadline,
  kCanceled,
  kClosed,  // this store was shut down
  kInternal,
  kKeyNotFound,      // ignore_value or ignore_lease without a key to keep them of
  kInvalidArgument,  // value with ignore_value, lease with ignore_lease
  kLeaseTTLTooLarge,
  kTooManyRequests,  // the queue of writes is full
  kInUse,            // another process has the data folder
};

struct Error {
  ErrorCode code;
  std::string message;  // etcd's text where it has one
  Revision compact_revision = 0;
};

template <class T>
using Result = Outcome<T, Error>;

enum class SortOrder : std::uint8_t { kNone, kAscend, kDescend };
enum class SortTarget : std::uint8_t { kKey, kVersion, kCreateRevision, kModRevision, kValue };

// Keys [key, range_end). range_end "" means the key alone; PrefixEnd(p) all with the prefix; "\0" all from key on.
struct RangeRequest {
  std::string key;
  std::string range_end;
  std::int64_t limit = 0;  // 0: no limit
  Revision revision = 0;   // 0: now
  bool keys_only = false;
  bool count_only = false;
  // Sorting and the bounds below apply before the limit; they cost a read of the whole range. `count` ignores the
  // bounds.
  SortOrder sort_order = SortOrder::kNone;
  SortTarget sort_target = SortTarget::kKey;
  Revision min_mod_revision = 0;  // 0: no bound
  Revision max_mod_revision = 0;
  Revision min_create_revision = 0;
  Revision max_create_revision = 0;
  telemetry::Span span;  // the parent of the call's span
};

struct RangeResponse {
  Revision revision = 0;      // of the store when read (not the requested revision)
  std::vector<KeyValue> kvs;  // by key, unless sorted otherwise
  bool more = false;
  std::int64_t count = 0;  // all keys of the range, whatever the limit
};

struct Compare {
  enum class Target : std::uint8_t { kVersion, kCreateRevision, kModRevision, kValue, kLease };
  enum class Operator : std::uint8_t { kEqual, kGreater, kLess, kNotEqual };
  std::string key;
  Target target = Target::kModRevision;
  Operator op = Operator::kEqual;
  std::int64_t number = 0;
  SharedBytes value;      // of Target::kValue
  std::string range_end;  // every key of the range must satisfy it
};

struct PutRequest {
  std::string key;
  SharedBytes value;
  LeaseID lease = 0;
  bool prev_kv = false;
  bool ignore_value = false;
  bool ignore_lease = false;
};

struct DeleteRangeRequest {
  std::string key;
  std::string range_end;
  bool prev_kv = false;
};

struct TxnRequest;

struct Op {
  enum class Kind : std::uint8_t { kRange, kPut, kDeleteRange, kTxn };
  Kind kind = Kind::kRange;
  RangeRequest range;
  PutRequest put;
  DeleteRangeRequest delete_range;
  std::shared_ptr<const TxnRequest> txn;

  static Op Range(RangeRequest request) { return {.kind = Kind::kRange, .range = std::move(request)}; }
  static Op Put(PutRequest request) { return {.kind = Kind::kPut, .put = std::move(request)}; }
  static Op DeleteRange(DeleteRangeRequest request) {
    return {.kind = Kind::kDeleteRange, .delete_range = std::move(request)};
  }
  static Op Txn(TxnRequest request);
};

struct TxnRequest {
  std::vector<Compare> compare;  // all must hold
  std::vector<Op> success;
  std::vector<Op> failure;
  telemetry::Span span;  // the parent of the call's span
};

inline Op Op::Txn(TxnRequest request) {
  return {.kind = Kind::kTxn, .txn = std::make_shared<const TxnRequest>(std::move(request))};
}

struct TxnResponse;

struct OpResponse {
  Op::Kind kind = Op::Kind::kRange;
  RangeResponse range;
  std::optional<KeyValue> put_prev;
  std::int64_t deleted = 0;
  std::vector<KeyValue> delete_prev;
  std::shared_ptr<TxnResponse> txn;
};

struct TxnResponse {
  Revision revision = 0;  // of the store after the transaction
  bool succeeded = false;
  std::vector<OpResponse> responses;
};

struct Event {
  enum class Type : std::uint8_t { kPut, kDelete };
  Type type = Type::kPut;
  KeyValue kv;  // of a deletion: key and mod_revision only
  std::optional<KeyValue> prev_kv;
  bool is_create() const { return type == Type::kPut && kv.create_revision == kv.mod_revision; }
};

struct WatchRequest {
  std::string key;
  std::string range_end;
  Revision start_revision = 0;  // the first revision wanted; 0: from now on
  bool prev_kv = false;
  bool progress_notify = false;  // empty responses now and then report the watch's revision
  bool no_put = false;           // etcd's filters
  bool no_delete = false;
};

// Events of one or more whole revisions, in order; a revision is never split between two responses.
struct WatchResponse {
  Revision revision = 0;  // everything up to here has been delivered
  std::vector<Event> events;
  bool is_progress() const { return events.empty(); }
};

// One watch: a cursor into the store's history; nothing is queued for it beyond what Next() returns.
// Never misses, repeats or reorders. Thread safety: Next() by one caller at a time, Cancel() from any thread.
class Watcher {
 public:
  virtual ~Watcher() = default;  // cancels; REQUIRES: no Next() is pending
  // Waits for the next events. kCompacted when the history it needs is gone; kCanceled after Cancel(); then it is over.
  // Asio's cancellation ends the wait with kCanceled, too; such a watch may be continued with another Next().
  virtual Awaitable<Result<WatchResponse>> Next() = 0;
  // Requests a progress response once everything up to now was delivered.
  virtual void RequestProgress() = 0;
  virtual void Cancel() = 0;
};

struct Lease {
  LeaseID id = 0;
  std::int64_t granted_ttl = 0;    // seconds
  std::int64_t remaining_ttl = 0;  // -1: expired or unknown
  std::vector<std::string> keys;
};

struct StoreStatus {
  std::string version;  // "3.6.5"; the embedded store reports the etcd version whose semantics it has
  Revision revision = 0;
  Revision compact_revision = 0;
  std::int64_t db_size = 0;  // bytes on disk
  std::int64_t db_size_in_use = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Awaitable<Result<RangeResponse>> Range(RangeRequest request) = 0;
  virtual Awaitable<Result<TxnResponse>> Txn(TxnRequest request) = 0;  // durable once it returns success
  virtual std::unique_ptr<Watcher> Watch(WatchRequest request) = 0;
  virtual Awaitable<Result<Revision>> Compact(Revision revision, bool physical) = 0;
  // The revision a consistent read must have reached. Embedded: no waiting.
  virtual Awaitable<Result<Revision>> CurrentRevision() = 0;

  virtual Awaitable<Result<Lease>> LeaseGrant(std::int64_t ttl_seconds, LeaseID id = 0) = 0;  // id 0: chosen here
  virtual Awaitable<Result<Revision>> LeaseRevoke(LeaseID id) = 0;                            // deletes its keys
  virtual Awaitable<Result<Lease>> LeaseKeepAlive(LeaseID id) = 0;
  virtual Awaitable<Result<Lease>> LeaseTimeToLive(LeaseID id, bool keys) = 0;
  virtual Awaitable<Result<std::vector<LeaseID>>> Leases() = 0;

  // The revision of the key's last change, 0 if the key does not exist, if the store knows it without waiting.
  // None: call Range().
  virtual std::optional<Revision> TryModRevision(std::string_view /*key*/) { return std::nullopt; }

  virtual Awaitable<Result<StoreStatus>> Status() = 0;
  // True when the store is in this process, so that commits reach watchers in order without a round trip.
  virtual bool embedded() const = 0;
};

// The end of the range of all keys with `prefix`.
std::string PrefixEnd(std::string_view prefix);

// Whether `key` lies in [begin, range_end) with the meanings of RangeRequest.
bool InRange(std::string_view key, std::string_view begin, std::string_view range_end);

// An error with etcd's own text for its code.
Error MakeError(ErrorCode code);

}  // namespace keelson::kv
