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
#include "registry/rest.h"
#include "registry/write_pipeline.h"
#include "request/context.h"
#include "storage/interface.h"
#include "storage/resource_codec.h"

namespace keelson::registry {

class Store final : public REST,
                    public Getter,
                    public Lister,
                    public Watcher,
                    public Creater,
                    public Updater,
                    public GracefulDeleter,
                    public CollectionDeleter {
 public:
  struct Options : StoredKind {  // defaults_on_read follows from the codec
    std::shared_ptr<storage::Interface> storage;
    std::shared_ptr<storage::Interface> dry_run_storage;  // writes nothing; null: one over `storage`
    std::shared_ptr<const storage::ResourceCodec> codec;
    std::string key_root;           // "/pods"
    std::uint64_t ttl_seconds = 0;  // events
    bool garbage_collector = true;
    bool allow_privileged = false;
    const base::Clock* clock = &base::Clock::Real();
    base::Random* random = &base::Random::Real();
    bool (*feature_enabled)(std::string_view gate) = nullptr;
    // Side effects around a write: allocation of addresses and ports. Runs before validation; the returned function is
    // called with the outcome of the write.
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
  const storage::ResourceCodec& codec() const override { return *options_.codec; }
  const RESTStrategy& rest_strategy() const override { return *options_.strategy; }
  const Getter* getter() const override { return this; }
  const Lister* lister() const override { return this; }
  const Watcher* watcher() const override { return this; }
  const Creater* creater() const override { return this; }
  const Updater* updater() const override { return this; }
  const GracefulDeleter* deleter() const override { return this; }
  const CollectionDeleter* collection_deleter() const override { return this; }

  Task<ObjectPtr> Get(std::string name_space, std::string name, std::string resource_version,
                      telemetry::Caller caller = {}) const override;
  Task<storage::ObjectList> List(std::string name_space, storage::ListOptions options) const override;
  Task<std::unique_ptr<storage::WatchStream>> Watch(std::string name_space,
                                                    storage::ListOptions options) const override;
  Task<WriteResult> Create(request::Context& context, Value object, ValidateObject validate,
                           bool dry_run) const override;
  Task<WriteResult> Update(request::Context& context, std::string name, UpdatedObject updated,
                           ValidateObject validate_create, ValidateObjectUpdate validate_update,
                           UpdateParameters parameters) const override;
  Task<DeleteResult> Delete(request::Context& context, std::string name_space, std::string name, DeleteOptions options,
                            ValidateObject validate) const override;
  Task<void> DeleteCorrupt(std::string name_space, std::string name) const override;
  Task<storage::ObjectList> DeleteCollection(request::Context& context, std::string name_space, DeleteOptions options,
                                             storage::ListOptions list, ValidateObject validate,
                                             int workers) const override;

  meta::Result<std::string> KeyFor(std::string_view name_space, std::string_view name) const;
  std::string KeyRootFor(std::string_view name_space) const;

 private:
  friend class UpdateOperation;  // one update, in store_update.cc

  storage::Interface& StorageFor(bool dry_run) const { return dry_run ? *options_.dry_run_storage : *options_.storage; }
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
    bool ignore_not_found = false;  // it may have been deleted meanwhile
    bool dry_run = false;
  };
  Task<DeleteResult> Remove(request::Context& context, std::string key, std::string name, Removal removal) const;
  meta::Status InterpretError(const storage::Error& error, std::string_view verb, std::string_view name) const;

  const Options options_;
};

}  // namespace keelson::registry
