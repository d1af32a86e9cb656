// The generic registry Store: what happens between a decoded request and storage, the same for every kind; a Strategy
// says where kinds differ. Upstream's genericregistry.Store. Turns storage errors into Statuses. Thread safety: all
// members from any I/O thread. Values given to it live in the request's arena, which must outlive the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "base/clock.h"
#include "base/random.h"
#include "meta/status.h"
#include "object/value.h"
#include "registry/write_pipeline.h"
#include "request/context.h"
#include "storage/interface.h"
#include "storage/resource_codec.h"

namespace keelson::registry {

template <class T>
using Task = Awaitable<meta::Result<T>>;

using storage::ObjectPtr;

// Admission's place in a write: sees the object (and the old one), may refuse.
using ValidateObject = std::function<Task<void>(Value object)>;
using ValidateObjectUpdate = std::function<Task<void>(Value object, Value old)>;
// Makes the new object of the existing one (null when there is none and creation is allowed): patching, mutating
// admission and managed fields happen in here. Called again when somebody else wrote meanwhile.
using UpdatedObject = std::function<Task<Value>(Value existing)>;

struct WriteResult {
  ObjectPtr object;
  bool created = false;
};

struct DeleteResult {
  ObjectPtr object;
  bool deleted = false;  // false: it stays until its grace period or finalizers are over
};

struct UpdateParameters {
  Endpoint endpoint;
  std::optional<std::string> uid;               // precondition: the uid of the object sent
  std::optional<std::string> resource_version;  // precondition
  bool force_allow_create = false;              // server-side apply may create whatever the kind says
  bool dry_run = false;
};

class Store {
 public:
  struct Options : StoredKind {  // defaults_on_read follows from the codec
    std::shared_ptr<storage::Interface> storage;
    std::shared_ptr<const storage::ResourceCodec> codec;
    std::string key_root;           // "/pods"
    std::uint64_t ttl_seconds = 0;  // events
    bool garbage_collector = true;
    bool allow_privileged = false;
    const base::Clock* clock = &base::Clock::Real();
    base::Random* random = &base::Random::Real();
    bool (*feature_enabled)(std::string_view gate) = nullptr;
    // Work around a write that is more than a pure function: allocation of addresses and ports. Runs before validation;
    // the function it returns is told whether the write succeeded.
    using Finish = std::function<Awaitable<void>(bool success)>;
    std::function<Task<Finish>(request::Context& context, Value object, Value old, bool dry_run)> begin_write;
    std::function<Awaitable<void>(request::Context& context, Value object)> after_delete;
    // May refuse a create (`old` null) or an update before validation, decided again for each attempt of an update:
    // protection of RBAC objects against privilege escalation.
    std::function<Task<void>(request::Context& context, Value object, Value old)> authorize_write;
  };
  explicit Store(Options options);

  const Options& options() const { return options_; }
  const Strategy& strategy() const { return options_.strategy->row(); }
  const RESTStrategy& rest_strategy() const { return *options_.strategy; }

  Task<ObjectPtr> Get(std::string name_space, std::string name, std::string resource_version,
                      telemetry::Caller caller = {}) const;
  Task<storage::ObjectList> List(std::string name_space, storage::ListOptions options) const;
  Task<std::unique_ptr<storage::WatchStream>> Watch(std::string name_space, storage::ListOptions options) const;
  Task<WriteResult> Create(request::Context& context, Value object, ValidateObject validate, bool dry_run) const;
  Task<WriteResult> Update(request::Context& context, std::string name, UpdatedObject updated,
                           ValidateObject validate_create, ValidateObjectUpdate validate_update,
                           UpdateParameters parameters) const;
  Task<DeleteResult> Delete(request::Context& context, std::string name_space, std::string name, DeleteOptions options,
                            ValidateObject validate) const;
  // Deletes an object that cannot be read, whatever it is; preconditions, finalizers, admission and what follows a
  // deletion are skipped (upstream's corruptObjectDeleter). Invalid when it can be read, or is not there.
  Task<void> DeleteCorrupt(std::string name_space, std::string name) const;
  // Deletes what the selectors match; the list of them as they were. `workers` at a time.
  Task<storage::ObjectList> DeleteCollection(request::Context& context, std::string name_space, DeleteOptions options,
                                             storage::ListOptions list, ValidateObject validate, int workers) const;

  // The object as a Value in the context's arena.
  meta::Result<Value> Decode(base::Arena& arena, const ObjectPtr& object) const;
  meta::Result<std::string> KeyFor(std::string_view name_space, std::string_view name) const;
  std::string KeyRootFor(std::string_view name_space) const;

 private:
  friend class UpdateOperation;  // one update, in store_update.cc

  storage::Interface& StorageFor(bool dry_run) const { return dry_run ? *dry_run_storage_ : *options_.storage; }
  Call MakeCall(request::Context& context, std::vector<std::string>& warnings) const;
  Task<void> BeginCreate(request::Context& context, Value object, bool dry_run, Options::Finish& finish) const;
  Task<WriteResult> CreateOnce(request::Context& context, Value object, ValidateObject validate, bool dry_run) const;
  // `object` as it would be read back at `resource_version`.
  meta::Result<ObjectPtr> Wrap(std::string key, Value object, std::uint64_t resource_version) const;
  // 409 in the words of the kinds that check before all others (namespaces, definitions).
  meta::Result<void> CheckDeletePreconditions(Value object, std::string_view name, const DeleteOptions& options) const;
  // Upstream's REST of customresourcedefinitions: the object stays, marked.
  Task<DeleteResult> MarkDeletion(request::Context& context, std::string key, std::string name, DeleteOptions options,
                                  ValidateObject validate) const;
  struct Removal {
    storage::Preconditions preconditions;
    ValidateObject validate;        // may be empty
    ObjectPtr existing;             // the result when it is gone already
    bool ignore_not_found = false;  // somebody else may have deleted it meanwhile
    bool dry_run = false;
  };
  Task<DeleteResult> Remove(request::Context& context, std::string key, std::string name, Removal removal) const;
  meta::Status InterpretError(const storage::Error& error, std::string_view verb, std::string_view name) const;

  const Options options_;
  const std::unique_ptr<storage::Interface> dry_run_storage_;
};

}  // namespace keelson::registry
