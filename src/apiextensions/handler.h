// Requests for custom resources (upstream's crdHandler). Definitions are an immutable tree behind an atomic reference:
// finding one takes no lock. Storage, codecs and handlers of a definition are made at its first request.
// Thread safety: Handle() and readers from any thread; Update() and Remove() by one writer at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiextensions/definition.h"
#include "apiextensions/serving.h"
#include "base/atomic_ref.h"
#include "base/btree.h"
#include "endpoints/dynamic_resource.h"
#include "endpoints/exchange.h"
#include "http/message.h"

namespace keelson::apiextensions {

// A definition and what serves it. The latter is carried over when only status or metadata of the definition change.
struct TableEntry : base::RefCounted {
  DefinitionPtr definition;
  struct Lazy;
  std::shared_ptr<Lazy> lazy;
};
using TableEntryPtr = base::Ref<const TableEntry>;
struct TableEntryName {
  std::string_view operator()(const TableEntryPtr& entry) const { return entry->definition->name; }
};
using DefinitionTree = base::BTree<TableEntryPtr, TableEntryName>;

class Handler {
 public:
  // `definitions` is the Store of customresourcedefinitions.
  Handler(ServingConfig config, std::shared_ptr<registry::Store> definitions);
  ~Handler();

  // Nothing when no definition serves the request: the next server of the chain answers.
  Awaitable<std::optional<http::Response>> Handle(endpoints::ExchangePtr exchange) const;

  void Update(DefinitionPtr definition);
  void Remove(std::string_view name);
  void SetSynced();  // all definitions are known
  bool synced() const;

  DefinitionPtr Find(std::string_view name) const;
  std::vector<DefinitionPtr> All() const;  // by name
  // The serving state of a CustomResourceDefinition, made on first use and dropped under CompiledBudget while unused.
  // Null if the definition does not exist; the error says why its schemas are unusable.
  Outcome<ServingUse, std::string> ServingOf(std::string_view name) const;

  // Serves /apis/<group> and /apis/<group>/<version>.
  using Discovery = std::function<std::optional<http::Response>(const endpoints::Exchange& exchange,
                                                                std::string_view group, std::string_view version)>;
  void SetDiscovery(Discovery discovery);  // before serving

 private:
  struct Impl;
  // `held` keeps what serves the resource.
  endpoints::Resolution Resolve(endpoints::Exchange& exchange, ServingUse& held) const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::apiextensions
