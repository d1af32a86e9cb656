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

#include "async/awaitable.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"
#include "request/context.h"

namespace keelson::admission {

template <class T>
using Task = Awaitable<meta::Result<T>>;

enum class Operation : std::uint8_t { kCreate, kUpdate, kDelete, kConnect };
std::string_view ToString(Operation operation);  // CREATE, ...

struct Attributes {
  Operation operation = Operation::kCreate;
  meta::GroupVersionKind kind;
  meta::GroupVersionResource resource;
  std::string subresource;
  std::string name_space;
  std::string name;
  Value object;      // in the hub version, in the request's arena; null on delete
  Value old_object;  // null on create
  bool dry_run = false;

  bool Is(std::string_view group, std::string_view plural) const {
    return resource.group == group && resource.resource == plural;
  }
};

// One plugin. Admit may change attributes.object; Validate may not.
class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  virtual bool Handles(Operation operation) const = 0;
  virtual Task<void> Admit(request::Context& context, Attributes& attributes);           // default: nothing
  virtual Task<void> Validate(request::Context& context, const Attributes& attributes);  // default: nothing
};

// How plugins see other objects: what the watch caches have, or the store itself. Values are in the given arena, hub
// version.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  // 404 when there is none. `live`: ask the store, not a cache that may be behind.
  virtual Task<Value> Get(base::Arena& arena, std::string group, std::string resource, std::string name_space,
                          std::string name, bool live) = 0;
  // All of a namespace ("" for all namespaces, or a cluster-scoped resource), from the cache.
  virtual Task<std::vector<Value>> List(base::Arena& arena, std::string group, std::string resource,
                                        std::string name_space) = 0;
  // Changes the status of an object as the server itself (quota usage): `update` gets the present object and returns
  // the new one, or nothing to leave it. Conflicts are retried.
  virtual Task<void> UpdateStatus(base::Arena& arena, std::string group, std::string resource, std::string name_space,
                                  std::string name, std::function<std::optional<Value>(Value current)> update) = 0;
  // May the user do this? For plugins that ask the authorizer (certificates).
  virtual Awaitable<bool> Allowed(const request::User& user, std::string verb, std::string group, std::string resource,
                                  std::string name_space, std::string name) = 0;
};

// What one plugin took, or with an empty name the whole step.
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
  explicit Chain(std::vector<std::unique_ptr<Plugin>> plugins, Observer observer = {})
      : plugins_(std::move(plugins)), observer_(std::move(observer)) {}
  Task<void> Admit(request::Context& context, Attributes& attributes) const;
  Task<void> Validate(request::Context& context, const Attributes& attributes) const;
  std::vector<std::string> Names() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  // `call` is a plugin's Admit or Validate.
  template <class Call>
  Task<void> Each(Operation operation, bool validating, Call call) const;
  Time Start() const { return observer_ ? std::chrono::steady_clock::now() : Time(); }
  // Tells the observer; returns the present.
  Time Observe(std::string_view plugin, Operation operation, bool validating, const meta::Result<void>& result,
               Time since) const;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  Observer observer_;
};

// 403 as every plugin says it: `pods "x" is forbidden: <why>`; the name is the request's, else the object's, else
// generateName.
meta::Status NewForbidden(const Attributes& attributes, std::string_view why);

}  // namespace keelson::admission
