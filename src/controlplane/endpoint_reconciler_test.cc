#include "controlplane/endpoint_reconciler.h"

#include <gtest/gtest.h>

#include "controlplane/server_presence.h"

namespace keelson::controlplane {
namespace {

using Addresses = std::vector<std::string>;

TEST(EndpointReconciler, CountedAddresses) {
  struct Case {
    Addresses present;
    std::size_t count;
    Addresses want;
  };
  const Case cases[] = {
      {{}, 1, {"10.0.0.2"}},
      {{"10.0.0.2"}, 1, {"10.0.0.2"}},
      {{"10.0.0.1"}, 1, {"10.0.0.2"}},
      {{"10.0.0.1"}, 2, {"10.0.0.1", "10.0.0.2"}},
      {{"10.0.0.3", "10.0.0.1"}, 3, {"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
      {{"10.0.0.1", "10.0.0.3"}, 2, {"10.0.0.1", "10.0.0.2"}},
      {{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, 2, {"10.0.0.1", "10.0.0.2"}},
  };
  for (const Case& c : cases) EXPECT_EQ(CountedAddresses(c.present, "10.0.0.2", c.count), c.want);
}

TEST(ServerPresence, IdentityIsTheHashOfTheHostNameAndTheComponent) {
  EXPECT_EQ(ServerIdentity("example-host"), "apiserver-xslhalef67ld3xrelzsoqnkaua");
}

TEST(ServerPresence, InvalidAuthoritiesAreDropped) { EXPECT_EQ(JoinAuthorities("nothing", ""), ""); }

}  // namespace
}  // namespace keelson::controlplane
