// Custom resources in discovery and OpenAPI: fragments per group, rebuilt at the first request after one of the group's
// definitions changed. Thread safety: all members from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apidocs/discovery_source.h"
#include "apiextensions/definition.h"
#include "endpoints/exchange.h"
#include "http/message.h"
#include "registry/store.h"

namespace keelson::apiextensions {

class DiscoveryDocuments final : public apidocs::DiscoverySource {
 public:
  explicit DiscoveryDocuments(std::shared_ptr<registry::Store> definitions) : definitions_(std::move(definitions)) {}

  void Update(DefinitionPtr definition);
  void Remove(const Definition& definition);

  std::shared_ptr<const apidocs::DiscoveryFragments> Discovery() const override;
  std::string OpenAPIv3(std::string group, std::string version) const override;
  void AppendOpenAPIv2(std::string& paths, std::string& definitions) const override {
    AppendOpenAPIv2To({}, paths, definitions);
  }
  void AppendOpenAPIv2To(std::string_view base, std::string& paths, std::string& definitions) const override;

  // /apis/<group>, and with a version /apis/<group>/<version>; nothing where no definition serves it.
  std::optional<http::Response> Respond(const endpoints::Exchange& exchange, std::string_view group,
                                        std::string_view version) const;

 private:
  using Group = std::map<std::string, DefinitionPtr, std::less<>>;  // by name
  std::vector<DefinitionPtr> Established(std::string_view group) const;
  bool IsShown(std::string_view group) const;  // has a fragment

  const std::shared_ptr<registry::Store> definitions_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Group, std::less<>> groups_;
  // Groups whose fragments are out of date: of groups_ and of fragments_, so as many as both have at most.
  mutable std::set<std::string, std::less<>> changed_;
  mutable std::shared_ptr<const apidocs::DiscoveryFragments> fragments_ =
      std::make_shared<const apidocs::DiscoveryFragments>();
};

}  // namespace keelson::apiextensions
