// OpenAPI documents of remote servers merged with ours: v2 into one document, v3 by key, each key served by its owner.
// Fetched in the background, on changes and every minute; what was fetched last stays while a server does not answer.
// Thread safety: all members from any thread; Stop() blocks until no fetch runs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "aggregator/api_service.h"
#include "aggregator/backend.h"
#include "aggregator/proxy_handler.h"
#include "apidocs/discovery_source.h"

namespace keelson::aggregator {

class OpenAPIAggregator final : public apidocs::DiscoverySource {
 public:
  // `custom` (may be null): custom resources' documents, which pass through.
  OpenAPIAggregator(async::IOPool& io, Backends& backends, std::shared_ptr<const apidocs::DiscoverySource> custom);
  ~OpenAPIAggregator() override;

  void Publish(APIServices services);
  void Refresh();
  void Stop();
  // The handler of /openapi/v3/<key> where a remote server owns the key.
  std::optional<endpoints::Handler> Find(const endpoints::Exchange& exchange, const ProxyHandlerOptions& options) const;

  std::shared_ptr<const apidocs::DiscoveryFragments> Discovery() const override;
  std::string OpenAPIv3(std::string group, std::string version) const override;
  void AppendOpenAPIv2(std::string& paths, std::string& definitions) const override;
  void AppendOpenAPIv2To(std::string_view base, std::string& paths, std::string& definitions) const override;
  std::vector<std::pair<std::string, std::string>> OpenAPIv3URLs() const override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::aggregator
