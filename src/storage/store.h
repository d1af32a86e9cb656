// The storage interface on any kv backend (upstream's etcd3 store): one per resource.
// Returned objects are in the stored form with resourceVersion set and attributes read; nothing here builds a tree.
// Thread safety: all members from any thread. Ownership: everything given to the constructor must outlive this
// and its streams.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/gate.h"
#include "base/clock.h"
#include "kv/kv.h"
#include "storage/completion.h"
#include "storage/encoded_forms.h"
#include "storage/interface.h"
#include "storage/lease_manager.h"
#include "storage/list_plan.h"
#include "storage/metrics.h"
#include "storage/recent_writes.h"
#include "storage/resource_codec.h"
#include "storage/stored_form.h"
#include "storage/transformer.h"

namespace keelson::storage {

struct StoreOptions {
  std::string etcd_prefix = "/registry";  // --etcd-prefix
  std::string resource_prefix;            // "/pods"; begins with a slash, and is more than one
  // The gate AllowUnsafeMalformedObjectDeletion: unreadable objects are reported by key (kCorruptObject), and every
  // value is fully decoded when it is read, so that no corrupt one passes.
  bool report_corrupt = false;
  std::string object_type;  // of spans: *core.Pod
};

struct StoreParts {
  kv::Store& kv;
  const ResourceCodec& codec;
  const Transformer& transformer = Transformer::Identity();
  LeaseManager& leases;
  EncodedForms* forms = nullptr;
  ResourceMetrics* metrics = nullptr;      // may be null
  const StoredForm* form = nullptr;        // null: what is encoded is what is stored
  const Completion* completion = nullptr;  // null: what is written is decoded to find out whether it is complete
};

class Store final : public Interface {
 public:
  // Corrupt objects that one list reports.
  static constexpr std::size_t kCorruptMax = 100;

  Store(StoreParts parts, StoreOptions options);
  ~Store() override { watches_.Close(); }  // REQUIRES: no watch is left; what one still fetches ends first

  Awaitable<Result<ObjectPtr>> Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                      telemetry::Caller caller = {}) override;
  Awaitable<Result<ObjectPtr>> Delete(std::string key, Preconditions preconditions, ValidateDeletion validate,
                                      ObjectPtr cached = nullptr, telemetry::Caller caller = {}) override;
  Awaitable<Result<void>> DeleteUnread(std::string key) override;
  Awaitable<Result<ObjectPtr>> Get(std::string key, GetOptions options) override;
  Awaitable<Result<ObjectList>> GetList(std::string key, ListOptions options) override;
  Awaitable<Result<ObjectPtr>> GuaranteedUpdate(std::string key, bool ignore_not_found, Preconditions preconditions,
                                                UpdateFunc update, ObjectPtr cached = nullptr,
                                                telemetry::Caller caller = {}) override;
  Awaitable<Result<std::unique_ptr<WatchStream>>> Watch(std::string key, ListOptions options) override;
  Awaitable<Result<Stats>> GetStats() override;
  Awaitable<Result<std::uint64_t>> GetCurrentResourceVersion() override;
  bool Ready() const override { return true; }

  // For the cacher.
  // The newest object; `cached` itself when it is that, so that its encoded forms are shared.
  Awaitable<Result<ObjectPtr>> GetLatest(std::string key, ObjectPtr cached, telemetry::Caller caller = {});
  // `cached` if it is known to be the newest without waiting; null: call GetLatest(). REQUIRES: `cached` is not
  // null.
  ObjectPtr TryGetLatest(std::string_view key, const ObjectPtr& cached, const telemetry::Caller& caller);
  // The revision that a consistent read must have reached.
  Awaitable<Result<std::uint64_t>> CurrentResourceVersion(telemetry::Caller caller);
  // Why a value cannot be read as an object.
  struct Unreadable {
    std::string message;
    bool transformed = true;  // it could be decrypted, but not decoded; false: not even that
    std::uint64_t revision = 0;
  };
  // The object in a value read from the store.
  Awaitable<Outcome<ObjectPtr, Unreadable>> ObjectOf(kv::KeyValue pair, telemetry::Span span = {});
  // The list's error for an unreadable value.
  Error ListError(const std::string& full_key, const Unreadable& why) const;
  // The watch's error event for an unreadable value; `deleted`: it is the last value of a deleted key.
  meta::Status WatchError(const Unreadable& why, bool deleted) const;
  // `object` as it is shown when it was deleted at, or left a selection at, `resource_version`.
  Result<ObjectPtr> WithResourceVersion(const Object& object, std::uint64_t resource_version) const;
  // Whether later writes are read back by ObjectOf(): the watch cache follows this store.
  void SetReadBack(bool read_back) { recent_writes_.SetWanted(read_back && parts_.kv.embedded()); }
  kv::Store& kv() const { return parts_.kv; }
  ResourceMetrics* metrics() const { return parts_.metrics; }
  async::Gate& watches() { return watches_; }  // held by what fetches for a watch
  const ResourceCodec& codec() const { return parts_.codec; }
  const std::string& path_prefix() const { return path_prefix_; }
  const std::string& resource_prefix() const { return options_.resource_prefix; }
  std::string FullKey(std::string_view relative) const {
    std::string key;
    key.reserve(path_prefix_.size() + relative.size() - 1);
    return key.append(path_prefix_).append(relative.substr(1));
  }

  std::uint64_t decode_errors() const { return decode_errors_.load(std::memory_order_relaxed); }

 private:
  struct State;
  // An object as the codec writes it.
  struct Encoded {
    SharedBytes plain;
    Outcome<SharedBytes, std::string> stored;     // the form in which it lies in the store; most often `plain` itself
    Outcome<SharedBytes, std::string> completed;  // what reading makes of it; empty: the same
  };
  Awaitable<kv::Result<kv::RangeResponse>> Range(std::string_view operation, kv::RangeRequest request,
                                                 telemetry::Caller caller);
  Awaitable<kv::Result<kv::TxnResponse>> Txn(std::string_view operation, kv::TxnRequest request,
                                             telemetry::Caller caller);
  Outcome<void, Unreadable> CheckDecodes(std::string_view plain, std::uint64_t revision) const;
  void CountUnreadable(const Unreadable& why) const;
  std::string CorruptText(const Unreadable& why) const;
  Error ReadError(std::string key, const Unreadable& why) const;
  Error StateError(const Unreadable& why) const;
  Awaitable<Result<State>> Read(std::string full_key, telemetry::Caller caller);
  Awaitable<Result<State>> Begin(std::string full_key, ObjectPtr cached, telemetry::Caller caller);
  // Of an object that reading completes (defaults): whether what lies in the store is `plain`, byte for byte.
  Awaitable<bool> LiesInStore(std::string full_key, Encoded encoded, ObjectPtr completed);
  std::optional<Error> Refused(const Preconditions& preconditions, const ObjectPtr& object,
                               std::string_view full_key) const;
  Encoded Complete(Value object, SharedBytes plain) const;
  Outcome<RecentWrites::Read, std::string> ReadBack(const SharedBytes& plain) const;
  void Remember(const Encoded& encoded);
  Outcome<ObjectPtr, std::string> NewObject(std::string_view full_key, const SharedBytes& normalized,
                                            std::uint64_t revision, bool stale) const;
  Result<ObjectPtr> Written(std::string full_key, Encoded encoded, kv::Revision revision);
  Awaitable<Result<State>> StateOf(std::string full_key, kv::RangeResponse range);
  Awaitable<Result<kv::TxnResponse>> PutIfUnchanged(std::string full_key, Encoded encoded, std::uint64_t revision,
                                                    std::uint64_t ttl_seconds, bool with_failure_read,
                                                    telemetry::Caller caller);
  telemetry::Span StartSpan(const telemetry::Caller& caller, std::string_view name, std::string_view key) const;
  telemetry::Span StartListSpan(const telemetry::Caller& caller, std::string_view key,
                                const ListOptions& options) const;

  const StoreParts parts_;
  const StoreOptions options_;
  const std::string path_prefix_;
  mutable std::atomic<std::uint64_t> decode_errors_{0};
  async::Gate watches_;
  RecentWrites recent_writes_;
};

// kv's errors as storage's. `key` is the etcd key.
Error FromKV(const kv::Error& error, std::string_view key);

}  // namespace keelson::storage
