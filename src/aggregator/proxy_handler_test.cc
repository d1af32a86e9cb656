#include "aggregator/proxy_handler.h"

#include <gtest/gtest.h>

namespace keelson::aggregator {
namespace {

APIServicePtr Service(const std::string& group, const std::string& version) {
  auto service = std::make_shared<APIService>();
  service->group = group;
  service->version = version;
  service->name = version + "." + group;
  return service;
}

// A change of one group's APIServices leaves the documents of the others as they are.
TEST(ProxyHandler, GroupsComeChangeAndGo) {
  Backends backends({});
  ProxyHandler handler({.backends = &backends, .built_in_groups = {"apps"}});
  const auto served = [&](const std::string& path) {
    auto exchange = std::make_shared<endpoints::Exchange>();
    exchange->http.path = path;
    return handler.Find(*exchange).has_value();
  };
  EXPECT_FALSE(served("/apis/a.io"));
  handler.Publish(
      {{"a.io", {Service("a.io", "v1")}}, {"b.io", {Service("b.io", "v1")}}, {"apps", {Service("apps", "v1")}}},
      nullptr);
  EXPECT_TRUE(served("/apis/a.io"));
  EXPECT_TRUE(served("/apis/b.io"));
  EXPECT_FALSE(served("/apis/apps")) << "served by the server's own chain";
  EXPECT_FALSE(served("/apis/a.io/v1")) << "local";
  handler.Publish({{"b.io", {}}, {"c.io", {Service("c.io", "v1")}}}, nullptr);
  EXPECT_TRUE(served("/apis/a.io"));
  EXPECT_FALSE(served("/apis/b.io"));
  EXPECT_TRUE(served("/apis/c.io/"));
}

}  // namespace
}  // namespace keelson::aggregator
