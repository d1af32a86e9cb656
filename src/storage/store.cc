#include "storage/store.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory_resource>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "storage/keys.h"

namespace keelson::storage {
namespace {

constexpr std::size_t kKeyBytesUsual = 512;  // of a key in the store; longer ones are allocated
constexpr std::int64_t kPageMax = 10000;     // of a range that a selector makes us repeat

Error NotFound(std::string key) { return {.code = ErrorCode::kKeyNotFound, .key = std::move(key)}; }
Error Internal(std::string message) { return {.code = ErrorCode::kInternal, .message = std::move(message)}; }

kv::Compare ModRevisionIs(const std::string& key, std::uint64_t revision) {
  return {.key = key, .target = kv::Compare::Target::kModRevision, .number = static_cast<std::int64_t>(revision)};
}

// All that could not be read, so that it can be deleted one by one.
// `first`: the first of them in the words of a watch.
Error CorruptList(const meta::GroupResource& resource, const std::vector<Error>& corrupt, bool left_out,
                  std::string first) {
  meta::StatusDetails details{.name = "list", .group = resource.group, .kind = resource.resource};
  for (const Error& error : corrupt) {
    details.causes.push_back({.reason = "UnexpectedServerResponse", .message = error.ToString(), .field = error.key});
  }
  if (left_out) {
    details.causes.push_back({.reason = "FieldValueTooMany", .message = "too many errors, the list is truncated"});
  }
  Error error =
      StatusError(meta::Status({.code = 500,
                                .reason = meta::StatusReason::kStoreReadError,
                                .message = "failed to read one or more " + resource.ToString() + " from the storage",
                                .details = std::move(details)}));
  error.message = std::move(first);
  return error;
}

}  // namespace

Error FromKV(const kv::Error& error, std::string_view key) {
  switch (error.code) {
    case kv::ErrorCode::kUnavailable:
      return {.code = ErrorCode::kUnreachable, .key = std::string(key), .message = error.message};
    case kv::ErrorCode::kDeadline:
      return {.code = ErrorCode::kTimeout, .key = std::string(key), .message = error.message};
    default:
      return UntypedError(error.message);  // as upstream: etcd's text
  }
}

// State of a key before a change. `object` null: the key does not exist.
struct Store::State {
  ObjectPtr object;
  bool current = false;  // read just now, not taken from a cache
  std::uint64_t revision() const { return object ? object->resource_version() : 0; }
};

Store::Store(StoreParts parts, StoreOptions options)
    : parts_(parts), options_(std::move(options)), path_prefix_(PathPrefix(options_.etcd_prefix)) {
  KS_CHECK(options_.resource_prefix.size() > 1 && options_.resource_prefix[0] == '/');
}

Awaitable<kv::Result<kv::RangeResponse>> Store::Range(std::string_view operation, kv::RangeRequest request,
                                                      telemetry::Caller caller) {
  request.span = caller.span;
  const telemetry::LatencyScope latency(caller.latencies, telemetry::LatencyTrackers::kEtcd);
  const auto begun = std::chrono::steady_clock::now();
  auto range = co_await parts_.kv.Range(std::move(request));
  if (parts_.metrics != nullptr) parts_.metrics->Requested(operation, begun, range.ok());
  co_return range;
}

Awaitable<kv::Result<kv::TxnResponse>> Store::Txn(std::string_view operation, kv::TxnRequest request,
                                                  telemetry::Caller caller) {
  request.span = caller.span;
  const telemetry::LatencyScope latency(caller.latencies, telemetry::LatencyTrackers::kEtcd);
  const auto begun = std::chrono::steady_clock::now();
  auto response = co_await parts_.kv.Txn(std::move(request));
  if (parts_.metrics != nullptr) parts_.metrics->Requested(operation, begun, response.ok());
  co_return response;
}

// Of a write: upstream's "Create etcd3", "GuaranteedUpdate etcd3".
telemetry::Span Store::StartSpan(const telemetry::Caller& caller, std::string_view name, std::string_view key) const {
  const telemetry::Span& parent = caller.span;
  if (!parent.active()) return {};
  const meta::GroupResource& resource = parts_.codec.resource();
  return parent.Start(name, {{"audit-id", parent.audit_id()},
                             {"key", key},
                             {"type", options_.object_type},
                             {"group", resource.group},
                             {"resource", resource.resource}});
}

telemetry::Span Store::StartListSpan(const telemetry::Caller& caller, std::string_view key,
                                     const ListOptions& options) const {
  const telemetry::Span& parent = caller.span;
  if (!parent.active()) return {};
  return parent.Start(options.recursive ? "List(recursive=true) etcd3" : "List(recursive=false) etcd3",
                      {{"audit-id", parent.audit_id()},
                       {"key", key},
                       {"resourceVersion", options.resource_version},
                       {"resourceVersionMatch", options.resource_version_match},
                       {"limit", options.predicate.limit},
                       {"continue", options.predicate.continue_token}});
}

void Store::CountUnreadable(const Unreadable& why) const {
  if (!why.transformed) return;
  decode_errors_.fetch_add(1, std::memory_order_relaxed);
  if (parts_.metrics != nullptr) parts_.metrics->DecodeError();
}

std::string Store::CorruptText(const Unreadable& why) const {
  // Only what was decrypted has a revision in this text (upstream's corruptObjectError).
  return why.transformed ? "object not decodable revision=" + std::to_string(why.revision) + ": " + why.message
                         : "data from the storage is not transformable revision=0: " + why.message;
}

// The error of a read of one object. `key` is the requested one.
Error Store::ReadError(std::string key, const Unreadable& why) const {
  CountUnreadable(why);
  if (options_.report_corrupt)
    return {.code = ErrorCode::kCorruptObject, .key = std::move(key), .message = CorruptText(why)};
  return why.transformed ? UntypedError(why.message) : Internal(why.message);
}

Error Store::ListError(const std::string& full_key, const Unreadable& why) const {
  CountUnreadable(why);
  if (options_.report_corrupt) return {.code = ErrorCode::kCorruptObject, .key = full_key, .message = CorruptText(why)};
  return why.transformed ? UntypedError(why.message)
                         : Internal("unable to transform key \"" + full_key + "\": " + why.message);
}

// Of a read before a change: it is not told apart from other failures.
Error Store::StateError(const Unreadable& why) const {
  CountUnreadable(why);
  std::string text = options_.report_corrupt ? CorruptText(why) : why.message;
  return why.transformed ? UntypedError(text) : Internal(std::move(text));
}

meta::Status Store::WatchError(const Unreadable& why, bool deleted) const {
  if (why.transformed || !options_.report_corrupt) return meta::NewInternalError(why.message);
  if (!deleted) return meta::NewInternalError(CorruptText(why));
  return meta::NewStoreReadError("saw a DELETED event, but object data is corrupt - " + CorruptText(why));
}

Outcome<void, Store::Unreadable> Store::CheckDecodes(std::string_view plain, std::uint64_t revision) const {
  if (!options_.report_corrupt) return {};
  base::Arena arena;
  auto object = parts_.codec.Decode(arena, plain);
  if (!object.ok()) return Unreadable{.message = std::move(object).error(), .revision = revision};
  return {};
}

Outcome<RecentWrites::Read, std::string> Store::ReadBack(const SharedBytes& plain) const {
  KS_TRY(SharedBytes normalized, parts_.codec.Normalize(plain.view()));
  const bool current = parts_.form != nullptr ? parts_.form->IsCurrent(plain.view(), normalized) : normalized.empty();
  return RecentWrites::Read{.normalized = std::move(normalized), .current = current};
}

Outcome<ObjectPtr, std::string> Store::NewObject(std::string_view full_key, const SharedBytes& normalized,
                                                 std::uint64_t revision, bool stale) const {
  KS_TRY(SharedBytes stored, parts_.codec.WithResourceVersion(normalized.view(), revision));
  KS_TRY(Attributes attributes, parts_.codec.GetAttrs(stored));
  return ObjectPtr(new Object(std::string(full_key.substr(path_prefix_.size() - 1)), revision, std::move(stored),
                              std::move(attributes), parts_.forms, stale));
}

Awaitable<Outcome<ObjectPtr, Store::Unreadable>> Store::ObjectOf(kv::KeyValue pair, telemetry::Span span) {
  const auto revision = static_cast<std::uint64_t>(pair.mod_revision);
  const auto sealed = [&](std::string message) {
    return Unreadable{.message = std::move(message), .transformed = false, .revision = revision};
  };
  const auto garbled = [&](std::string message) {
    return Unreadable{.message = std::move(message), .revision = revision};
  };
  if (parts_.transformer.NeedsPrepare(pair.value)) {
    auto prepared = co_await parts_.transformer.Prepare(pair.value);
    if (!prepared.ok()) co_return sealed(prepared.error());
  }
  auto plain = parts_.transformer.TransformFromStorage(pair.value, {pair.key, span});
  if (!plain.ok()) co_return sealed(plain.error());
  KS_CO_RETURN_IF_ERROR(CheckDecodes(plain->data.view(), revision));
  auto known = plain->stale ? std::nullopt : recent_writes_.Find(plain->data);
  if (known && known->object && known->object->resource_version() == revision) co_return std::move(known->object);
  Outcome<RecentWrites::Read, std::string> read = known ? std::move(known->read) : ReadBack(plain->data);
  if (!read.ok()) co_return garbled(read.error());
  const SharedBytes& normalized = read->normalized.empty() ? plain->data : read->normalized;
  auto object = NewObject(pair.key, normalized, revision, plain->stale || !read->current);
  if (!object.ok()) co_return garbled(object.error());
  co_return known ? recent_writes_.Share(plain->data, *std::move(object)) : *std::move(object);
}

Result<ObjectPtr> Store::WithResourceVersion(const Object& object, std::uint64_t resource_version) const {
  auto stored = parts_.codec.WithResourceVersion(object.stored().view(), resource_version);
  if (!stored.ok()) return UntypedError(stored.error());
  auto attributes = parts_.codec.GetAttrs(*stored);
  if (!attributes.ok()) return UntypedError(attributes.error());
  return ObjectPtr(new Object(std::string(object.key()), resource_version, *std::move(stored), *std::move(attributes),
                              parts_.forms));
}

// `plain` is what the codec has made of `object`.
Store::Encoded Store::Complete(Value object, SharedBytes plain) const {
  const bool complete =
      !parts_.codec.completes_on_read() || (parts_.completion != nullptr && parts_.completion->IsComplete(object));
  Outcome<SharedBytes, std::string> completed = complete ? SharedBytes() : parts_.codec.Normalize(plain.view());
  auto stored = parts_.form != nullptr ? parts_.form->ToStorage(plain) : plain;
  return {std::move(plain), std::move(stored), std::move(completed)};
}

Result<ObjectPtr> Store::Written(std::string full_key, Encoded encoded, kv::Revision revision) {
  const auto version = static_cast<std::uint64_t>(revision);
  if (!encoded.completed.ok()) return UntypedError(encoded.completed.error());
  auto known = recent_writes_.Find(*encoded.stored);
  if (known && known->object && known->object->resource_version() == version) return std::move(known->object);
  const bool stale = !encoded.completed->empty();
  auto object = NewObject(full_key, stale ? *encoded.completed : encoded.plain, version, stale);
  if (!object.ok()) return UntypedError(object.error());
  return known ? recent_writes_.Share(*encoded.stored, *std::move(object)) : *std::move(object);
}

Awaitable<Result<Store::State>> Store::StateOf(std::string full_key, kv::RangeResponse range) {
  if (range.kvs.empty()) co_return State{.current = true};
  KS_CHECK(range.kvs[0].key == full_key);
  auto object = co_await ObjectOf(std::move(range.kvs[0]));
  if (!object.ok()) co_return StateError(object.error());
  co_return State{.object = *std::move(object), .current = true};
}

Awaitable<Result<Store::State>> Store::Read(std::string full_key, telemetry::Caller caller) {
  auto range = co_await Range("get", {.key = full_key, .limit = 1}, caller);
  if (!range.ok()) co_return FromKV(range.error(), full_key);
  co_return co_await StateOf(std::move(full_key), *std::move(range));
}

// The initial state of a change: the cached object, or the current one. With the embedded store the revision alone
// costs next to nothing, so that a stale cache is noticed before admission runs: admission sees the change once.
Awaitable<Result<Store::State>> Store::Begin(std::string full_key, ObjectPtr cached, telemetry::Caller caller) {
  if (!cached) co_return co_await Read(std::move(full_key), caller);
  if (!parts_.kv.embedded()) co_return State{.object = std::move(cached)};
  auto range = co_await Range("get", {.key = full_key, .limit = 1, .keys_only = true}, {});
  if (!range.ok()) co_return FromKV(range.error(), full_key);
  if (range->kvs.empty() || static_cast<std::uint64_t>(range->kvs[0].mod_revision) != cached->resource_version())
    co_return co_await Read(std::move(full_key), caller);
  co_return State{.object = std::move(cached), .current = true};
}

Awaitable<bool> Store::LiesInStore(std::string full_key, Encoded encoded, ObjectPtr completed) {
  const auto& complete = encoded.completed;
  // Most updates change something: the store is read only if the result would otherwise be unchanged.
  if (!complete.ok() || complete->empty()) co_return false;
  auto stored = parts_.codec.WithResourceVersion(complete->view(), completed->resource_version());
  if (!stored.ok() || !(*stored == completed->stored())) co_return false;
  auto range = co_await Range("get", {.key = full_key, .limit = 1}, {});
  if (!range.ok() || range->kvs.empty()) co_return false;
  const kv::KeyValue& pair = range->kvs[0];
  if (static_cast<std::uint64_t>(pair.mod_revision) != completed->resource_version()) co_return false;
  if (parts_.transformer.NeedsPrepare(pair.value)) co_return false;
  auto data = parts_.transformer.TransformFromStorage(pair.value, pair.key);
  if (!data.ok() || data->stale) co_return false;
  co_return encoded.stored.ok() && data->data == *encoded.stored;
}

std::optional<Error> Store::Refused(const Preconditions& preconditions, const ObjectPtr& object,
                                    std::string_view full_key) const {
  const std::string uid = object && preconditions.uid ? parts_.codec.UID(object->stored().view()) : std::string();
  return CheckPreconditions(preconditions, uid, object ? object->resource_version() : 0, full_key);
}

Awaitable<Result<ObjectPtr>> Store::Get(std::string key, GetOptions options) {
  KS_CO_TRY(const std::string relative, PrepareKey(options_.resource_prefix, key, false));
  const std::string full_key = FullKey(relative);
  const auto wanted = ParseResourceVersion(options.resource_version);
  if (!wanted.ok()) co_return StatusError(meta::NewBadRequest("invalid resource version: " + wanted.error()));
  auto range = co_await Range("get", {.key = full_key, .limit = 1}, options.caller);
  if (!range.ok()) co_return FromKV(range.error(), full_key);
  const auto revision = static_cast<std::uint64_t>(range->revision);
  if (*wanted > revision) co_return StatusError(meta::NewTooLargeResourceVersion(*wanted, revision, 0));
  if (range->kvs.empty()) co_return NotFound(full_key);
  auto object = co_await ObjectOf(std::move(range->kvs[0]), options.caller.span);
  if (!object.ok()) co_return ReadError(std::move(key), object.error());
  co_return *std::move(object);
}

Awaitable<Result<ObjectPtr>> Store::GetLatest(std::string key, ObjectPtr cached, telemetry::Caller caller) {
  KS_CO_TRY(const std::string relative, PrepareKey(options_.resource_prefix, key, false));
  const std::string full_key = FullKey(relative);
  // In this process the revision alone costs next to nothing; over the network a second question would cost more than
  // the value.
  const bool ask_revision = cached && parts_.kv.embedded();
  for (bool keys_only = ask_revision;; keys_only = false) {
    auto range = co_await Range("get", {.key = full_key, .limit = 1, .keys_only = keys_only}, caller);
    if (!range.ok()) co_return FromKV(range.error(), full_key);
    if (range->kvs.empty()) co_return NotFound(full_key);
    const bool same = cached && static_cast<std::uint64_t>(range->kvs[0].mod_revision) == cached->resource_version();
    // Encrypted bytes from etcd are decrypted even if the cache has the object: the trace's span, the metric of the
    // key's last use and the error for bytes that cannot be read are upstream's.
    if (same && (keys_only || !Transformer::IsEncrypted(range->kvs[0].value))) co_return cached;
    if (keys_only) continue;
    auto object = co_await ObjectOf(std::move(range->kvs[0]), caller.span);
    if (!object.ok()) co_return ReadError(std::move(key), object.error());
    co_return same ? cached : *std::move(object);
  }
}

ObjectPtr Store::TryGetLatest(std::string_view key, const ObjectPtr& cached, const telemetry::Caller& caller) {
  const telemetry::LatencyScope latency(caller.latencies, telemetry::LatencyTrackers::kEtcd);
  const auto begun = std::chrono::steady_clock::now();
  std::array<char, kKeyBytesUsual> buffer;
  std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size());
  std::pmr::string full_key(&memory);
  full_key.reserve(path_prefix_.size() + key.size());
  full_key.append(path_prefix_).append(key.substr(1));
  const auto revision = parts_.kv.TryModRevision(full_key);
  if (!revision || static_cast<std::uint64_t>(*revision) != cached->resource_version()) return nullptr;
  if (parts_.metrics != nullptr) parts_.metrics->Requested("get", begun, true);
  return cached;
}

Awaitable<Result<kv::TxnResponse>> Store::PutIfUnchanged(std::string full_key, Encoded encoded, std::uint64_t revision,
                                                         std::uint64_t ttl_seconds, bool with_failure_read,
                                                         telemetry::Caller caller) {
  kv::LeaseID lease = 0;
  if (ttl_seconds != 0) {
    auto leased = co_await parts_.leases.GetLease(static_cast<std::int64_t>(ttl_seconds));
    if (!leased.ok()) co_return FromKV(leased.error(), full_key);
    lease = *leased;
  }
  if (!encoded.stored.ok()) co_return UntypedError(encoded.stored.error());
  const SharedBytes unsealed = *encoded.stored;
  Outcome<SharedBytes, std::string> data = unsealed;
  if (parts_.transformer.WritesElsewhere()) {
    data = co_await parts_.transformer.AwaitToStorage(unsealed, full_key);
  } else {
    data = parts_.transformer.TransformToStorage(unsealed, {full_key, caller.span});
  }
  if (!data.ok()) co_return Internal(data.error());
  if (data->data() == unsealed.data()) Remember(encoded);  // not encrypted
  const telemetry::Span& span = caller.span;
  span.AddEvent("TransformToStorage succeeded");
  kv::TxnRequest request;
  request.compare.push_back(ModRevisionIs(full_key, revision));
  request.success.push_back(kv::Op::Put({.key = full_key, .value = *std::move(data), .lease = lease}));
  if (with_failure_read) request.failure.push_back(kv::Op::Range({.key = full_key}));
  if (with_failure_read) span.AddEvent("Transaction prepared");
  auto response = co_await Txn(with_failure_read ? "update" : "create", std::move(request), caller);
  if (!response.ok() || !response->succeeded) recent_writes_.Forget(unsealed);
  if (!response.ok()) co_return FromKV(response.error(), full_key);
  span.AddEvent(with_failure_read ? "Txn call completed" : "Txn call succeeded");
  co_return *std::move(response);
}

void Store::Remember(const Encoded& encoded) {
  if (!encoded.completed.ok()) return;
  RecentWrites::Read read{.normalized = *encoded.completed, .current = encoded.completed->empty()};
  if (read.normalized.empty() && parts_.form != nullptr) read.normalized = encoded.plain;
  recent_writes_.Put(*encoded.stored, std::move(read));
}

Awaitable<Result<ObjectPtr>> Store::Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                           telemetry::Caller caller) {
  const telemetry::ScopedSpan span = StartSpan(caller, "Create etcd3", key);
  KS_CO_TRY(const std::string relative, PrepareKey(options_.resource_prefix, key, false));
  const std::string full_key = FullKey(relative);
  // Text that is not a number counts as unset, as upstream.
  if (base::ParseUint64(object["metadata"]["resourceVersion"].as_string()).value_or(0) != 0) {
    co_return UntypedError("resourceVersion should not be set on objects to be created");
  }
  base::Arena arena;
  span->AddEvent("About to Encode");
  auto plain = parts_.codec.Encode(arena, object);
  if (!plain.ok()) co_return UntypedError(plain.error());
  const std::size_t length = plain->size();
  span->AddEvent("Encode succeeded", {{"len", length}});
  Encoded encoded = Complete(object, *std::move(plain));
  KS_CO_TRY(const kv::TxnResponse response,
            co_await PutIfUnchanged(full_key, encoded, 0, ttl_seconds, false, caller.Under(*span)));
  if (!response.succeeded) co_return Error{.code = ErrorCode::kKeyExists, .key = full_key};
  span->AddEvent("decode succeeded", {{"len", length}});
  co_return Written(full_key, std::move(encoded), response.revision);
}

Awaitable<Result<ObjectPtr>> Store::Delete(std::string key, Preconditions preconditions, ValidateDeletion validate,
                                           ObjectPtr cached, telemetry::Caller caller) {
  KS_CO_TRY(const std::string relative, PrepareKey(options_.resource_prefix, key, false));
  const std::string full_key = FullKey(relative);
  KS_CO_TRY(State state, co_await Begin(full_key, std::move(cached), caller));
  for (;;) {
    if (!state.object) co_return NotFound(full_key);
    auto refused = Refused(preconditions, state.object, full_key);
    if (!refused && validate) {
      auto allowed = co_await validate(state.object);
      if (!allowed.ok()) refused = StatusError(std::move(allowed).error());
    }
    if (refused) {
      if (state.current) co_return *std::move(refused);
      const std::uint64_t judged = state.revision();
      KS_CO_TRY(state, co_await Read(full_key, caller));
      if (state.object && state.revision() == judged) co_return *std::move(refused);
      continue;
    }
    kv::TxnRequest request;
    request.compare.push_back(ModRevisionIs(full_key, state.revision()));
    request.success.push_back(kv::Op::DeleteRange({.key = full_key}));
    request.failure.push_back(kv::Op::Range({.key = full_key}));
    auto response = co_await Txn("delete", std::move(request), caller);
    if (!response.ok()) co_return FromKV(response.error(), full_key);
    if (response->succeeded)
      co_return WithResourceVersion(*state.object, static_cast<std::uint64_t>(response->revision));
    KS_CO_TRY(state, co_await StateOf(full_key, std::move(response->responses[0].range)));
  }
}

Awaitable<Result<void>> Store::DeleteUnread(std::string key) {
  KS_CO_TRY(const std::string relative, PrepareKey(options_.resource_prefix, key, false));
  const std::string full_key = FullKey(relative);
  kv::TxnRequest request;
  request.success.push_back(kv::Op::DeleteRange({.key = full_key}));
  auto response = co_await Txn("delete", std::move(request), {});
  if (!response.ok()) co_return FromKV(response.error(), full_key);
  if (response->responses[0].deleted == 0) co_return NotFound(full_key);
  co_return Result<void>();
}

Awaitable<Result<ObjectPtr>> Store::GuaranteedUpdate(std::string key, bool ignore_not_found,
                                                     Preconditions preconditions, UpdateFunc update, ObjectPtr cached,
                                                     telemetry::Caller caller) {
  const telemetry::ScopedSpan span = StartSpan(caller, "GuaranteedUpdate etcd3", key);
  caller.span = *span;
  KS_CO_TRY(const std::string relative, PrepareKey(options_.resource_prefix, key, false));
  const std::string full_key = FullKey(relative);
  KS_CO_TRY(State state, co_await Begin(full_key, std::move(cached), caller));
  span->AddEvent("initial value restored");
  for (;;) {
    if (!state.object && !ignore_not_found) co_return NotFound(full_key);
    if (auto refused = Refused(preconditions, state.object, full_key)) {
      if (state.current) co_return *std::move(refused);
      KS_CO_TRY(state, co_await Read(full_key, caller));
      continue;
    }
    auto updated = co_await update(state.object);
    if (!updated.ok()) {
      if (state.current) co_return StatusError(std::move(updated).error());
      const std::uint64_t judged = state.revision();
      KS_CO_TRY(state, co_await Read(full_key, caller));
      if (state.object && state.revision() == judged) co_return StatusError(std::move(updated).error());
      continue;
    }
    if (updated->action == Updated::Action::kLeave) {
      KS_CHECK(state.object);
      if (state.current) co_return state.object;
      const std::uint64_t judged = state.revision();
      KS_CO_TRY(state, co_await Read(full_key, caller));
      if (state.object && state.revision() == judged) co_return state.object;
      continue;
    }
    base::Arena arena;
    span->AddEvent("About to Encode");
    auto plain = parts_.codec.Encode(arena, updated->object);
    if (!plain.ok()) co_return UntypedError(plain.error());
    const std::size_t length = plain->size();
    span->AddEvent("Encode succeeded", {{"len", length}});
    if (state.object && !state.object->stale()) {
      auto same = parts_.codec.WithResourceVersion(plain->view(), state.revision());
      if (same.ok() && *same == state.object->stored()) {
        if (state.current) co_return state.object;  // nothing changed: no write, no event, the same revision
        const std::uint64_t judged = state.revision();
        const ObjectPtr believed = state.object;
        KS_CO_TRY(state, co_await Read(full_key, caller));
        if (state.object && state.revision() == judged && !state.object->stale()) co_return believed;
        continue;
      }
    }
    Encoded encoded = Complete(updated->object, *std::move(plain));
    if (state.object && state.object->stale() && co_await LiesInStore(full_key, encoded, state.object))
      co_return state.object;
    KS_CO_TRY(kv::TxnResponse response, co_await PutIfUnchanged(full_key, encoded, state.revision(),
                                                                updated->ttl_seconds.value_or(0), true, caller));
    if (response.succeeded) {
      span->AddEvent("Transaction committed");
      span->AddEvent("decode succeeded", {{"len", length}});
      co_return Written(full_key, std::move(encoded), response.revision);
    }
    KS_CO_TRY(state, co_await StateOf(full_key, std::move(response.responses[0].range)));
  }
}

Awaitable<Result<ObjectList>> Store::GetList(std::string key, ListOptions options) {
  const telemetry::ScopedSpan span = StartListSpan(options.caller, key, options);
  const telemetry::Caller caller = options.caller.Under(*span);
  KS_CO_TRY(const std::string relative, PrepareKey(options_.resource_prefix, key, options.recursive));
  KS_CO_TRY(const ListPlan plan, ResolveListOptions(relative, options));
  const std::string prefix = FullKey(relative);
  const std::int64_t limit = options.recursive ? options.predicate.limit : 0;
  const bool paging = limit > 0;
  // A resourceVersion beyond int64 is in the store's future, too.
  constexpr auto kRevisionMax = static_cast<std::uint64_t>(std::numeric_limits<kv::Revision>::max());

  kv::RangeRequest request{.key = plan.start_key.empty() ? prefix : FullKey(plan.start_key),
                           .limit = paging ? limit : 0,
                           .revision = static_cast<kv::Revision>(std::min(plan.exact_revision, kRevisionMax))};
  if (options.recursive) request.range_end = kv::PrefixEnd(prefix);
  ObjectList list;
  std::string last_key;
  bool has_more = false;
  std::int64_t count = 0;
  std::size_t fetched = 0;
  std::size_t evaluated = 0;
  std::vector<Error> corrupt;
  std::string corrupt_first;
  bool corrupt_left_out = false;
  for (;;) {
    auto range = co_await Range(options.recursive ? "list" : "get", request, caller);
    if (!range.ok()) {
      if (range.error().code == kv::ErrorCode::kCompacted) co_return CompactedListError(plan.start_key, relative);
      if (range.error().code == kv::ErrorCode::kFutureRevision) {
        auto current = co_await parts_.kv.CurrentRevision();
        co_return StatusError(meta::NewTooLargeResourceVersion(
            plan.exact_revision, current.ok() ? static_cast<std::uint64_t>(*current) : 0, 0));
      }
      co_return FromKV(range.error(), prefix);
    }
    const auto revision = static_cast<std::uint64_t>(range->revision);
    if (list.resource_version == 0) {
      if (plan.not_older_than > revision)
        co_return StatusError(meta::NewTooLargeResourceVersion(plan.not_older_than, revision, 0));
      list.resource_version = plan.exact_revision != 0 ? plan.exact_revision : revision;
      request.revision = static_cast<kv::Revision>(list.resource_version);  // later pages show the same state
    }
    count = range->count;
    has_more = options.recursive && static_cast<std::int64_t>(range->kvs.size()) < count;
    if (range->kvs.empty() && has_more) {
      co_return UntypedError("no results were found, but etcd indicated there were more values remaining");
    }
    fetched += range->kvs.size();
    for (std::size_t i = 0; i < range->kvs.size() && !corrupt_left_out; ++i) {
      if (paging && static_cast<std::int64_t>(list.items.size()) >= limit) {
        has_more = true;
        break;
      }
      last_key = range->kvs[i].key;
      ++evaluated;
      auto object = co_await ObjectOf(std::move(range->kvs[i]));
      if (!object.ok()) {
        Error error = ListError(last_key, object.error());
        if (corrupt.empty()) corrupt_first = object.error().transformed ? object.error().message : error.message;
        if (error.code != ErrorCode::kCorruptObject) co_return error;
        corrupt_left_out = corrupt.size() == kCorruptMax;
        if (!corrupt_left_out) corrupt.push_back(std::move(error));
        continue;
      }
      if (options.predicate.Matches(**object)) list.items.push_back(*std::move(object));
    }
    if (corrupt_left_out) break;
    if (!has_more || !paging || static_cast<std::int64_t>(list.items.size()) >= limit) break;
    if (request.limit < kPageMax) request.limit = std::min(request.limit * 2, kPageMax);
    request.key = last_key;
    request.key.push_back('\0');
  }
  if (!corrupt.empty())
    co_return CorruptList(parts_.codec.resource(), corrupt, corrupt_left_out, std::move(corrupt_first));
  if (parts_.metrics != nullptr) parts_.metrics->Listed(fetched, evaluated, list.items.size());
  if (has_more) {
    const std::string_view last_relative = std::string_view(last_key).substr(path_prefix_.size() - 1);
    PageEnd end = EndPage(last_relative, relative, list.resource_version, count, true, options);
    list.continue_token = std::move(end.continue_token);
    list.remaining_item_count = end.remaining_item_count;
  }
  co_return list;
}

Awaitable<Result<Stats>> Store::GetStats() {
  const std::string prefix = FullKey(options_.resource_prefix + "/");
  auto range =
      co_await Range("listWithCount", {.key = prefix, .range_end = kv::PrefixEnd(prefix), .count_only = true}, {});
  if (!range.ok()) co_return FromKV(range.error(), prefix);
  co_return Stats{.object_count = range->count};
}

Awaitable<Result<std::uint64_t>> Store::GetCurrentResourceVersion() { return CurrentResourceVersion({}); }

Awaitable<Result<std::uint64_t>> Store::CurrentResourceVersion(telemetry::Caller caller) {
  ListOptions options{.recursive = false};
  options.predicate.limit = 1;
  const telemetry::ScopedSpan span = StartListSpan(caller, options_.resource_prefix, options);
  const std::string full_key = FullKey(options_.resource_prefix);
  kv::Revision revision = 0;
  if (parts_.kv.embedded()) {
    auto current = co_await parts_.kv.CurrentRevision();
    if (!current.ok()) co_return FromKV(current.error(), full_key);
    revision = *current;
  } else {
    // A linearizable read of nothing: its header has the cluster's current revision.
    const telemetry::LatencyScope latency(caller.latencies, telemetry::LatencyTrackers::kEtcd);
    auto range = co_await parts_.kv.Range({.key = full_key, .limit = 1, .count_only = true, .span = *span});
    if (!range.ok()) co_return FromKV(range.error(), full_key);
    revision = range->revision;
  }
  if (revision == 0) co_return UntypedError("the current resource version must be greater than 0");
  co_return static_cast<std::uint64_t>(revision);
}

}  // namespace keelson::storage
