// The interface of a resource or subresource to the handlers of `endpoints`, free of HTTP (upstream's rest.Storage and
// the interfaces beside it): decoded objects go in, encoded objects come out, errors are Statuses. The generic Store
// serves every verb; subresources with their own kind and computed resources serve a few.
// Thread safety: const members from any I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "base/arena.h"
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
// Makes the new object from the existing one (null on creation by update): patching, mutating admission and managed
// fields happen in here. Called again after a conflict.
using UpdatedObject = std::function<Task<Value>(Value existing)>;
// An UpdatedObject that awaits nothing.
UpdatedObject UpdateBy(std::function<meta::Result<Value>(Value existing)> make);

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

class Getter {
 public:
  virtual ~Getter() = default;
  virtual Task<ObjectPtr> Get(std::string name_space, std::string name, std::string resource_version,
                              telemetry::Caller caller) const = 0;
};

class Lister {
 public:
  virtual ~Lister() = default;
  virtual Task<storage::ObjectList> List(std::string name_space, storage::ListOptions options) const = 0;
};

class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual Task<std::unique_ptr<storage::WatchStream>> Watch(std::string name_space,
                                                            storage::ListOptions options) const = 0;
};

class Creater {
 public:
  virtual ~Creater() = default;
  virtual Task<WriteResult> Create(request::Context& context, Value object, ValidateObject validate,
                                   bool dry_run) const = 0;
};

// PUT, and PATCH where the REST is a Getter too (upstream's Patcher).
class Updater {
 public:
  virtual ~Updater() = default;
  virtual Task<WriteResult> Update(request::Context& context, std::string name, UpdatedObject updated,
                                   ValidateObject validate_create, ValidateObjectUpdate validate_update,
                                   UpdateParameters parameters) const = 0;
};

class GracefulDeleter {
 public:
  virtual ~GracefulDeleter() = default;
  virtual Task<DeleteResult> Delete(request::Context& context, std::string name_space, std::string name,
                                    DeleteOptions options, ValidateObject validate) const = 0;
  // Deletes an object that cannot be read, whatever it is; preconditions, finalizers, admission and what follows a
  // deletion are skipped (upstream's corruptObjectDeleter). Invalid when it can be read, or is not there.
  virtual Task<void> DeleteCorrupt(std::string name_space, std::string name) const = 0;
};

class CollectionDeleter {
 public:
  virtual ~CollectionDeleter() = default;
  // Deletes what the selectors match; the list of them as they were. `workers` at a time.
  virtual Task<storage::ObjectList> DeleteCollection(request::Context& context, std::string name_space,
                                                     DeleteOptions options, storage::ListOptions list,
                                                     ValidateObject validate, int workers) const = 0;
};

// A POST whose result is not stored: reviews, and the Status after a binding or an eviction.
class Reviewer {
 public:
  struct Options {
    ValidateObject validate;           // validating admission; may be null
    std::vector<std::string> dry_run;  // as requested
    bool is_dry_run() const { return !dry_run.empty(); }
    Task<void> Validate(Value object) const;
  };
  virtual ~Reviewer() = default;
  // From the object sent (defaulted, in the served version) to the object answered. Calls options.Validate() once,
  // where upstream's Create calls createValidation.
  virtual Task<Value> Create(request::Context& context, Value object, Options options) const = 0;
};

class REST {
 public:
  virtual ~REST() = default;
  // How its objects are encoded.
  virtual const storage::ResourceCodec& codec() const = 0;
  // An object of this REST as a Value in the arena, in the version that strategies see.
  meta::Result<Value> Decode(base::Arena& arena, const ObjectPtr& object) const;
  // Defaults, Table rows and selectable fields of its objects.
  virtual const RESTStrategy& rest_strategy() const = 0;

  // The verbs it serves; null: it does not.
  virtual const Getter* getter() const { return nullptr; }
  virtual const Lister* lister() const { return nullptr; }
  virtual const Watcher* watcher() const { return nullptr; }
  virtual const Creater* creater() const { return nullptr; }
  virtual const Updater* updater() const { return nullptr; }
  virtual const GracefulDeleter* deleter() const { return nullptr; }
  virtual const CollectionDeleter* collection_deleter() const { return nullptr; }
};

}  // namespace keelson::registry
