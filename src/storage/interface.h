// The storage interface (upstream's storage.Interface): objects of one resource by key, with resourceVersions.
// Two implementations: Store over kv (storage/store.h), and Cacher over another Interface (cacher/cacher.h).
// Keys are relative to the etcd prefix and begin with the resource prefix: /pods/default/web; a list's key is /pods or
// /pods/default. Thread safety: all members from any thread; coroutines resume on the caller's executor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/outcome.h"
#include "meta/selector.h"
#include "meta/status.h"
#include "object/value.h"
#include "storage/error.h"
#include "storage/object.h"
#include "telemetry/span.h"

namespace keelson::storage {

template <class T>
using Result = Outcome<T, Error>;

struct Preconditions {
  std::optional<std::string> uid;
  std::optional<std::string> resource_version;
};

struct GetOptions {
  std::string resource_version;  // not older than
  telemetry::Caller caller;
};

class ShardFilter;  // storage/shard_filter.h

// Selects the objects of a list or watch (upstream's SelectionPredicate).
struct SelectionPredicate {
  std::shared_ptr<const meta::LabelSelector> label;  // null: everything
  std::shared_ptr<const meta::FieldSelector> field;  // null: everything
  std::int64_t limit = 0;
  std::string continue_token;
  bool allow_watch_bookmarks = false;
  std::string shard_selector;                // as it was sent; the registry's Store makes `shard` of it
  std::shared_ptr<const ShardFilter> shard;  // null: everything
  bool Matches(const Object& object) const;
  // Upstream's Empty(): a shard selector does not count, so that remainingItemCount counts other shards' objects too.
  bool Empty() const { return (!label || label->Empty()) && (!field || field->Empty()); }
  bool MatchesEverything() const { return Empty() && !shard; }
};

struct ListOptions {
  std::string resource_version;
  std::string resource_version_match;  // "", Exact, NotOlderThan
  SelectionPredicate predicate;
  bool recursive = true;  // false: the key is one object
  std::optional<bool> send_initial_events;
  // Scope of a watch: the request's namespace and name, "" for all.
  std::string scope_namespace;
  std::string scope_name;
  bool with_previous = false;  // events of a watch bring WatchEvent::previous
  // When the request's time is up: a watch that allows bookmarks gets one two seconds before.
  std::optional<base::Clock::SteadyTime> deadline;
  telemetry::Caller caller;
};

struct ObjectList {
  std::vector<ObjectPtr> items;  // by key; shared, never copied
  std::uint64_t resource_version = 0;
  std::string continue_token;
  std::optional<std::int64_t> remaining_item_count;
  std::string shard_selector;  // metadata.shardInfo.selector; "": the list was not sharded
};

struct WatchEvent {
  enum class Type : std::uint8_t { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kAdded;
  ObjectPtr object;                    // null for kBookmark and kError
  ObjectPtr previous;                  // of kModified with ListOptions::with_previous: the object before the change
  std::uint64_t resource_version = 0;  // of kBookmark
  bool initial_events_end = false;     // of kBookmark
  std::optional<meta::Status> error;   // of kError: the stream ends after it
};

// A watch: a cursor, polled on the connection's thread. It has no queue.
class WatchStream {
 public:
  enum class Poll : std::uint8_t { kEvent, kPending, kEnd };
  virtual ~WatchStream() = default;
  // `wake` is called (any thread) after kPending once there may be something; also after the stream is gone.
  // Called once, before Next().
  virtual void Start(std::function<void()> wake) = 0;
  // One caller at a time.
  virtual Poll Next(WatchEvent& event) = 0;
};

// Decides about a deletion with the object that would be deleted. A Status stops it.
using ValidateDeletion = std::function<Awaitable<meta::Result<void>>(const ObjectPtr& existing)>;

// The decision of an update callback about the object.
struct Updated {
  enum class Action : std::uint8_t {
    kWrite,
    kLeave,  // nothing is written; the result of the update is the existing object. REQUIRES: there is one
  };
  Value object;  // in the caller's arena; of kWrite
  std::optional<std::uint64_t> ttl_seconds;
  Action action = Action::kWrite;
};
// Decides about the existing object (null when there is none). May be called several times: the last call counts. A
// Status refuses the update.
using UpdateFunc = std::function<Awaitable<meta::Result<Updated>>(const ObjectPtr& existing)>;

struct Stats {
  std::int64_t object_count = 0;
  std::int64_t estimated_average_size = 0;
};

class Interface {
 public:
  virtual ~Interface() = default;

  // kKeyExists when there is one. The result is what was stored. `object` must have no resourceVersion.
  virtual Awaitable<Result<ObjectPtr>> Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                              telemetry::Caller caller = {}) = 0;
  // The deleted object, with the deletion's revision as its resourceVersion.
  // `cached` (here and below): what the caller believes is stored; saves a read when it is, costs a retry when it is
  // not. May be null. `validate` may be empty.
  virtual Awaitable<Result<ObjectPtr>> Delete(std::string key, Preconditions preconditions, ValidateDeletion validate,
                                              ObjectPtr cached = nullptr, telemetry::Caller caller = {}) = 0;
  // Deletes what lies at the key whatever it is: for objects that cannot be read (kCorruptObject). kKeyNotFound.
  virtual Awaitable<Result<void>> DeleteUnread(std::string key) = 0;
  virtual Awaitable<Result<ObjectPtr>> Get(std::string key, GetOptions options) = 0;
  // The result of Get() if it is available without waiting; null: call Get().
  virtual ObjectPtr TryGet(std::string_view /*key*/, const GetOptions& /*options*/) { return nullptr; }
  virtual Awaitable<Result<ObjectList>> GetList(std::string key, ListOptions options) = 0;
  // Reads, calls `update`, writes if the object is unchanged meanwhile, else retries. Unchanged bytes are not
  // written.
  virtual Awaitable<Result<ObjectPtr>> GuaranteedUpdate(std::string key, bool ignore_not_found,
                                                        Preconditions preconditions, UpdateFunc update,
                                                        ObjectPtr cached = nullptr, telemetry::Caller caller = {}) = 0;
  virtual Awaitable<Result<std::unique_ptr<WatchStream>>> Watch(std::string key, ListOptions options) = 0;
  virtual Awaitable<Result<Stats>> GetStats() = 0;
  virtual Awaitable<Result<std::uint64_t>> GetCurrentResourceVersion() = 0;
  virtual bool Ready() const = 0;
};

}  // namespace keelson::storage
