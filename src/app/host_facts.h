// Facts of the host that option defaults depend on, passed in so that tests can set them.
#pragma once

#include <string>

namespace keelson::app {

struct HostFacts {
  std::string hostname;
  // The first global address of the interface that has the default route; "" when there is none.
  std::string default_ipv4, default_ipv6;
};

HostFacts ReadHostFacts();

}  // namespace keelson::app
