// The discovery documents of all servers in one: ours, custom resources', remote servers' (upstream's discovery
// aggregation). Remote documents are fetched in the background, on changes and every minute; a server that does not
// answer keeps its last document, marked Stale.
// Thread safety: all members from any thread; Stop() blocks until no fetch runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aggregator/api_service.h"
#include "aggregator/backend.h"
#include "apidocs/discovery_source.h"
#include "async/gate.h"

namespace keelson::aggregator {

class DiscoveryAggregator final : public apidocs::DiscoveryMerger {
 public:
  DiscoveryAggregator(async::IOPool& io, Backends& backends);
  ~DiscoveryAggregator() override;

  void Publish(APIServices services);
  // The same where only APIServices of this server changed.
  void PublishLocal(APIServices services);
  void Refresh();  // fetches the documents of all remote servers again
  void Stop();

  std::uint64_t Generation() const override;
  Merged Merge(const std::vector<apidocs::DiscoveryFragmentPtr>& built_in,
               const std::vector<apidocs::DiscoveryFragmentPtr>& custom) const override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Group versions of an APIGroupDiscoveryList: "<group>/<version>" → resources. Resources without a responseKind get an
// empty one: clients of v0.26.0 to v0.26.3 do not expect null.
std::map<std::string, std::string> VersionsOf(std::string_view document);
// APIResourceList → the resources of an APIVersionDiscovery, as JSON; "" when it is none.
std::string ResourcesFromLegacy(std::string_view api_resource_list);

}  // namespace keelson::aggregator
