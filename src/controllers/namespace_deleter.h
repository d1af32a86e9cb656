// Deletes the content of one namespace (upstream's namespacedResourcesDeleter). Thread safety: the controllers'
// executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "base/arena.h"
#include "base/clock.h"
#include "controllers/client.h"
#include "controllers/discovery.h"
#include "meta/status.h"
#include "object/value.h"
#include "registry/store.h"

namespace keelson::controllers {

class NamespaceDeleter {
 public:
  struct Outcome {
    std::string error;          // "": none
    std::int64_t estimate = 0;  // seconds until the remaining objects are likely gone; 0: none, or unknown
  };
  struct Options {
    ClientPtr client;
    std::shared_ptr<registry::Store> pods;         // null: not served
    std::shared_ptr<registry::Store> definitions;  // of custom resources; null: not served
    // See ControllerContext.
    std::function<std::shared_ptr<registry::Store>(const std::string& group, const std::string& resource,
                                                   bool namespaced)>
        metadata_store;
    const base::Clock* clock = &base::Clock::Real();  // must outlive the calls
  };
  explicit NamespaceDeleter(Options options)
      : client_(options.client), pods_(options.pods), clock_(*options.clock), options_(std::move(options)) {}

  // Does nothing unless the namespace is being deleted. To be called again until there is neither error nor estimate.
  Awaitable<Outcome> Delete(std::string name) const;

 private:
  struct Content {  // of one resource
    std::int64_t estimate = 0;
    std::int64_t remaining = 0;
    std::map<std::string, std::int64_t> finalizers;
    std::string error;
  };
  struct Totals;
  using Change = bool (*)(base::Arena& arena, Value name_space);  // false: nothing to change

  Awaitable<meta::Result<Value>> Get(base::Arena& arena, std::string name) const;
  // Writes `change` to the subresource, again after a conflict. Gives the namespace as it is then.
  Awaitable<meta::Result<Value>> Write(base::Arena& arena, Value name_space, std::string subresource,
                                       Change change) const;
  Awaitable<Outcome> DeleteAllContent(base::Arena& arena, Value name_space) const;
  // Whether the namespace has no object of a custom resource. Checked first so that its schema and cache, which are
  // made at the first request, are not made for nothing.
  Awaitable<bool> IsEmptyCustomResource(const DiscoveredResource& resource, std::string name) const;
  Awaitable<void> DeleteResource(const DiscoveredResource& resource, Value name_space, Totals& totals) const;
  Awaitable<Content> DeleteContent(const DiscoveredResource& resource, std::string name, std::int64_t deleted_at) const;
  Awaitable<std::string> DeleteEachItem(const DiscoveredResource& resource, std::string name) const;
  Awaitable<std::int64_t> EstimateGrace(std::string name) const;
  Awaitable<void> UpdateConditions(base::Arena& arena, Value name_space, const Totals& totals) const;

  const ClientPtr client_;
  const std::shared_ptr<registry::Store> pods_;
  const base::Clock& clock_;
  const Options options_;
};

}  // namespace keelson::controllers
