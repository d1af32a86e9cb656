#include "aggregator/service_table.h"
#include "base/testing/seeded_random.h"

#include <gtest/gtest.h>

#include "aggregator/availability.h"
#include "object/json_text.h"

namespace keelson::aggregator {
namespace {

class Tables {
 public:
  explicit Tables(Routing routing) : random(base::Seeded(1)), table(routing, *random) {}
  void Service(const char* name, const char* json) { table.OnService("ns", name, Parse(json)); }
  void Slice(const char* name, const char* json) { table.OnEndpointSlice("ns", name, Parse(json)); }
  std::string Resolve(const char* name, std::int32_t port) {
    auto found = table.ResolveEndpoint("ns", name, port);
    return found.ok() ? found->host + ":" + std::to_string(found->port) : found.error();
  }
  Value Parse(const char* json) { return *object::ParseJSON(arena, json); }

  base::Arena arena;
  std::unique_ptr<base::Random> random;
  ServiceTable table;
};

TEST(ServiceTable, ClusterIPs) {
  Tables tables(Routing::kClusterIP);
  tables.Service("a", R"({"spec":{"type":"ClusterIP","clusterIP":"10.0.0.5","ports":[{"name":"https","port":443}]}})");
  tables.Service("headless", R"({"spec":{"type":"ClusterIP","clusterIP":"None","ports":[{"port":443}]}})");
  tables.Service("elsewhere", R"({"spec":{"type":"ExternalName","externalName":"example.com"}})");
  struct Case {
    const char* name;
    std::int32_t port;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"a", 443, "10.0.0.5:443"},
      {"a", 444, "no service port 444 found for service \"a\""},
      {"none", 443, "service \"none\" not found"},
      {"headless", 443, "cannot route to service with ClusterIP \"None\""},
      {"elsewhere", 8443, "example.com:8443"},
  };
  for (const Case& c : kCases) EXPECT_EQ(tables.Resolve(c.name, c.port), c.want) << c.name;
}

TEST(ServiceTable, EndpointsAreReadyOnesOfThePort) {
  Tables tables(Routing::kEndpoints);
  tables.Service("a", R"({"spec":{"clusterIP":"10.0.0.5","ports":[{"name":"https","port":443}]}})");
  EXPECT_EQ(tables.Resolve("a", 443), "no endpoints available for service \"a\"");
  tables.Slice("a-1", R"({"metadata":{"labels":{"kubernetes.io/service-name":"a"}},"addressType":"IPv4",
      "ports":[{"name":"https","port":8443}],
      "endpoints":[{"addresses":["10.1.0.1"],"conditions":{"ready":false}},{"addresses":["10.1.0.2"]}]})");
  EXPECT_EQ(tables.Resolve("a", 443), "10.1.0.2:8443");
  tables.table.OnEndpointSliceDeleted("ns", "a-1");
  EXPECT_EQ(tables.Resolve("a", 443), "no endpoints available for service \"a\"");
}

TEST(Availability, ServiceChecks) {
  Tables tables(Routing::kClusterIP);
  APIService api;
  api.local = false;
  api.service_namespace = "ns";
  api.service_name = "a";
  EXPECT_EQ(CheckService(api, tables.table).message, "service/a in \"ns\" is not present");
  tables.Service("a", R"({"spec":{"clusterIP":"10.0.0.5","ports":[{"name":"web","port":80}]}})");
  EXPECT_EQ(CheckService(api, tables.table).message, "service/a in \"ns\" is not listening on port 443");
  api.port = 80;
  EXPECT_EQ(CheckService(api, tables.table).message, "cannot find endpointslices for service/a in \"ns\"");
  tables.Slice("a-1", R"({"metadata":{"labels":{"kubernetes.io/service-name":"a"}},"ports":[{"name":"web","port":8080}],
      "endpoints":[]})");
  EXPECT_EQ(CheckService(api, tables.table).message,
            "endpointslices for service/a in \"ns\" have no addresses with port name \"web\"");
  tables.Slice("a-1", R"({"metadata":{"labels":{"kubernetes.io/service-name":"a"}},"ports":[{"name":"web","port":8080}],
      "endpoints":[{"addresses":["10.1.0.1"]}]})");
  EXPECT_EQ(CheckService(api, tables.table).reason, "");
}

}  // namespace
}  // namespace keelson::aggregator
