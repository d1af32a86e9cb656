// The groups that a server chain serves, as discovery needs them.
#pragma once

#include <memory>
#include <vector>

#include "apidocs/discovery_documents.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

class ServedGroups {
 public:
  explicit ServedGroups(const server::GenericAPIServer& server);  // keeps the installed group versions alive
  const std::vector<apidocs::DiscoveryGroup>& groups() const { return groups_; }
  const apidocs::IsServed& is_served() const { return is_served_; }
  const endpoints::APIGroupVersion* Find(std::string_view group, std::string_view version) const;

 private:
  std::vector<std::shared_ptr<endpoints::APIGroupVersion>> versions_;
  std::vector<apidocs::DiscoveryGroup> groups_;
  apidocs::IsServed is_served_;
};

}  // namespace keelson::controlplane
