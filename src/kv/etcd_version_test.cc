#include "kv/etcd_version.h"

#include <gtest/gtest.h>

namespace keelson::kv {
namespace {

TEST(EtcdVersion, ProgressOnRequestIsOrdered) {
  struct Case {
    const char* version;
    bool want;
  };
  constexpr Case kCases[] = {
      {"3.3.27", false},
      {"3.4.0", false},
      {"3.4.23", false},  // Debian 12's
      {"3.4.30", false},
      {"3.4.31", true},
      {"3.4.100", true},
      {"3.5.0", false},
      {"3.5.12", false},
      {"3.5.13", true},
      {"3.6.0", true},
      {"3.6.5", true},
      {"4.0.0", true},
      {"3.5.13+git", true},
      {"3.5.13-rc.0", false},
      {"3.6.0-alpha.0", false},
      {"3.6.1-rc.0", true},
      {"3.5", false},
      {"", false},
      {"three.six.five", false},
      {"3.6.", false},
      {"-3.6.5", false},
      {"99999999999.0.0", false},
  };
  for (const Case& c : kCases) EXPECT_EQ(ProgressOnRequestIsOrdered(c.version), c.want) << c.version;
}

}  // namespace
}  // namespace keelson::kv
