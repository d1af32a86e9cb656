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
#include "registry/rest_strategy.h"
#include "request/context.h"
#include "schema/schema.h"
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

struct DeleteOptions {
  std::optional<std::int64_t> grace_period_seconds;
  std::optional<std::string> propagation_policy;
  std::optional<bool> orphan_dependents;
  std::optional<std::string> uid;  // preconditions
  std::optional<std::string> resource_version;
  bool dry_run = false;
};

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
  struct Options {
    meta::GroupResource resource;
    meta::GroupKind kind;
    bool namespaced = true;
    const schema::Struct* type = nullptr;  // of the hub version; null: custom resources
    std::shared_ptr<const RESTStrategy> strategy;
    bool spec_finalizers = false;  // spec.finalizers hold deletion back (namespaces)
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
  explicit Store(Options options) : options_(std::move(options)) {}

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
  struct DeletePlan {
    bool graceful = false;  // stays for a grace period that was written into the object
    bool pending = false;   // is being deleted already, nothing changes
  };

  Call MakeCall(request::Context& context, std::vector<std::string>& warnings) const;
  bool SpecChanged(Value object, Value old) const;
  meta::Result<void> CheckNamespace(request::Context& context, Value metadata) const;
  meta::Result<void> BeforeCreate(request::Context& context, Value object) const;
  meta::Result<void> BeforeUpdate(request::Context& context, Value object, Value old, const Endpoint& endpoint) const;
  Task<WriteResult> CreateOnce(request::Context& context, Value object, ValidateObject validate, bool dry_run) const;
  Task<ObjectPtr> DryRunCreate(request::Context& context, std::string key, Value object) const;
  meta::Result<ObjectPtr> Wrap(request::Context& context, std::string key, Value object,
                               std::uint64_t resource_version) const;
  // Upstream's REST of customresourcedefinitions: the object stays, marked.
  Task<DeleteResult> MarkDeletion(request::Context& context, std::string key, std::string name, ObjectPtr existing,
                                  DeleteOptions options, ValidateObject validate) const;
  meta::Result<DeletePlan> BeforeDelete(request::Context& context, Value object, const DeleteOptions& options) const;
  bool UpdateDeletionFinalizers(base::Arena& arena, Value object, const DeleteOptions& options) const;
  Task<DeleteResult> DeleteForReal(request::Context& context, std::string key, std::string name,
                                   storage::Preconditions preconditions, ValidateObject validate, ObjectPtr existing,
                                   bool ignore_not_found, bool dry_run) const;
  meta::Status InterpretError(const storage::Error& error, std::string_view verb, std::string_view name) const;

  Options options_;
};

// Now, as Kubernetes writes times: seconds, UTC.
std::string FormatTime(base::Clock::SystemTime time);
std::optional<base::Clock::SystemTime> ParseTime(std::string_view text);

}  // namespace keelson::registry
