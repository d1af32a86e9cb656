// Admission: plugins that look at a write before it is stored (upstream's admission.Interface).
// Thread safety: all members from any I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/attributes.h"
#include "async/awaitable.h"
#include "base/clock.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"
#include "request/context.h"

namespace keelson::admission {

// One plugin. Admit may change or replace attributes.object; Validate may not.
class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  virtual bool Handles(Operation operation) const = 0;
  // False while what it decides by (informers) has not been read. The chain waits up to Chain::kReadyWait for it.
  virtual bool Ready() const { return true; }
  virtual Task<void> Admit(request::Context& context, Attributes& attributes);           // default: nothing
  virtual Task<void> Validate(request::Context& context, const Attributes& attributes);  // default: nothing
};

// How plugins see other objects: what the watch caches have, or the store itself. Values are in the given arena, hub
// version.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  // 404 if it does not exist. `live`: read from the store, not from a cache that may be behind.
  virtual Task<Value> Get(base::Arena& arena, std::string group, std::string resource, std::string name_space,
                          std::string name, bool live) = 0;
  // All of a namespace ("" for all namespaces, or a cluster-scoped resource), from the cache.
  virtual Task<std::vector<Value>> List(base::Arena& arena, std::string group, std::string resource,
                                        std::string name_space) = 0;
  // Changes the status of an object as the server itself (quota usage): `update` gets the present object and returns
  // the new one, or nothing to leave it. Conflicts are retried.
  virtual Task<void> UpdateStatus(base::Arena& arena, std::string group, std::string resource, std::string name_space,
                                  std::string name, std::function<std::optional<Value>(Value current)> update) = 0;
  // Whether the user is authorized. For plugins that check permissions (certificates).
  virtual Awaitable<bool> Allowed(const request::User& user, std::string verb, std::string group, std::string resource,
                                  std::string name_space, std::string name) = 0;
};

// Follows the objects of resources, for plugins that keep a compiled form of them. Follow() before the server starts.
class Informers {
 public:
  struct Change {
    bool deleted = false;
    Value object;  // hub version, in an arena that lasts for the call
  };
  // Changes that came together, one call at a time. The first calls bring every object there is.
  using OnChanges = std::function<void(std::span<const Change> changes)>;
  using HasSynced = std::function<bool()>;  // true once all present objects were reported; from any thread

  virtual ~Informers() = default;
  virtual HasSynced Follow(std::string group, std::string resource, OnChanges on_changes) = 0;
};

// Duration of one plugin's call, or with an empty name of the whole admission step.
struct Observation {
  std::string_view plugin;
  Operation operation;
  bool validating = false;
  bool rejected = false;
  std::chrono::nanoseconds took{0};
};
using Observer = std::function<void(const Observation&)>;  // from any I/O thread

// Plugins in order; the first refusal ends it.
class Chain {
 public:
  static constexpr std::chrono::seconds kReadyWait{10};

  explicit Chain(std::vector<std::unique_ptr<Plugin>> plugins, Observer observer = {})
      : plugins_(std::move(plugins)), observer_(std::move(observer)) {}
  // Runs a second round if a plugin requested it (attributes.reinvocation).
  Task<void> Admit(request::Context& context, Attributes& attributes) const;
  Task<void> Validate(request::Context& context, const Attributes& attributes) const;
  std::vector<std::string> Names() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  Task<void> AdmitOnce(request::Context& context, Attributes& attributes) const;
  // 403 when it is not ready in time.
  static Task<void> AwaitReady(const Plugin& plugin, const Attributes& attributes);
  Time Start() const { return observer_ ? std::chrono::steady_clock::now() : Time(); }
  // Reports to the observer; returns the current time.
  Time Observe(std::string_view plugin, Operation operation, bool validating, const meta::Result<void>& result,
               Time since) const;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  Observer observer_;
};

}  // namespace keelson::admission
