// One write as admission sees it, and the versions in which its objects can be had.
#pragma once

#include <any>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "base/arena.h"
#include "meta/group_version.h"
#include "meta/status.h"
#include "object/value.h"

namespace keelson::admission {

template <class T>
using Task = Awaitable<meta::Result<T>>;

enum class Operation : std::uint8_t { kCreate, kUpdate, kDelete, kConnect };
std::string_view ToString(Operation operation);  // CREATE, ...

// Versioned views of the objects of one resource or subresource (upstream's ObjectInterfaces). Objects are the ones of
// Attributes (hub version) or documents: untyped JSON of one version, every field as Go writes it.
// Thread safety: const members from any thread.
class ObjectInterfaces {
 public:
  struct Resource {
    meta::GroupVersionResource resource;
    meta::GroupVersionKind kind;
  };

  virtual ~ObjectInterfaces() = default;
  // Every resource that serves the same objects, the requested one included, in installation order.
  virtual std::vector<Resource> EquivalentResources() const = 0;
  // JSON of `object` in the version of `kind`, one of EquivalentResources().
  virtual Task<std::string> EncodeJSON(base::Arena& arena, Value object, meta::GroupVersionKind kind) const = 0;
  virtual Task<Value> ToDocument(base::Arena& arena, Value object, meta::GroupVersionKind kind) const = 0;
  // Unknown fields are dropped and defaults applied.
  virtual Task<Value> FromDocument(base::Arena& arena, Value document, meta::GroupVersionKind kind) const = 0;
};

// State of the second round of the mutating chain (upstream's ReinvocationContext).
class Reinvocation {
 public:
  bool is_reinvoke() const { return is_reinvoke_; }
  bool should_reinvoke() const { return should_reinvoke_; }
  void RequestReinvoke() { should_reinvoke_ = true; }
  void BeginReinvoke() { is_reinvoke_ = true; }
  // State that a plugin keeps from the first round of mutation to the second.
  template <class T>
  T& State(std::string_view plugin) {
    std::any& state = states_[std::string(plugin)];
    if (!state.has_value()) state.emplace<T>();
    return *std::any_cast<T>(&state);
  }

 private:
  bool is_reinvoke_ = false;
  bool should_reinvoke_ = false;
  std::map<std::string, std::any, std::less<>> states_;
};

struct Attributes {
  Operation operation = Operation::kCreate;
  meta::GroupVersionKind kind;          // as requested
  meta::GroupVersionResource resource;  // as requested
  std::string subresource;
  std::string name_space;
  std::string name;
  Value object;      // hub version, in the request's arena; null on delete. Admit may put another one here
  Value old_object;  // as stored, hub version; null on create
  Value options;     // CreateOptions, UpdateOptions or DeleteOptions of meta.k8s.io/v1; null on connect
  bool dry_run = false;
  const ObjectInterfaces* interfaces = nullptr;  // outlives the call; never null on a served request
  Reinvocation* reinvocation = nullptr;          // set by Chain::Admit for its plugins

  bool Is(std::string_view group, std::string_view plural) const {
    return resource.group == group && resource.resource == plural;
  }
};

// 403 as every plugin says it: `pods "x" is forbidden: <why>`; the name is the request's, else the object's, else
// generateName.
meta::Status NewForbidden(const Attributes& attributes, std::string_view why);

}  // namespace keelson::admission
