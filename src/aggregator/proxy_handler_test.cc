#include "aggregator/proxy_handler.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "net/testing/scripted_peer.h"

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

class FixedResolver final : public webhook::ServiceResolver {
 public:
  explicit FixedResolver(std::uint16_t port) : port_(port) {}
  Outcome<webhook::ServiceEndpoint, std::string> ResolveEndpoint(const std::string&, const std::string&,
                                                                 std::int32_t) override {
    return webhook::ServiceEndpoint{"127.0.0.1", port_};
  }

 private:
  std::uint16_t port_;
};

class NoBody final : public http::BodyReader {
 public:
  Awaitable<Outcome<http::SharedBytes, http::BodyError>> Read() override { co_return http::SharedBytes(); }
};

// The response to a request for a remote APIService whose server answers with `head`.
http::Response Ask(const std::string& head, bool reject_redirects, bool upgrade) {
  const net::testing::Authority ca("aggregated");
  net::testing::ScriptedPeer peer(
      [&](net::testing::ScriptedConnection& connection) {
        connection.ReadRequest();
        connection.Write(head + "Content-Length: 0\r\n\r\n");
      },
      {.tls = true, .certificate = ca.Issue("server", {"api.default.svc"})});
  FixedResolver resolver(peer.port());
  async::IOPool io{1};
  Backends backends({.io = &io, .resolver = &resolver});
  auto service = std::make_shared<APIService>(*Service("a.io", "v1"));
  service->local = false;
  service->service_namespace = "default";
  service->service_name = "api";
  service->ca_bundle = ca.cert_pem();
  service->available.status = "True";
  auto exchange = std::make_shared<endpoints::Exchange>();
  exchange->http.method = "GET";
  exchange->http.path = "/apis/a.io/v1/things";
  exchange->http.host = "front.example.com";
  exchange->http.body = std::make_unique<NoBody>();
  exchange->context.user = request::User{.name = "alice"};
  if (upgrade) {
    exchange->http.headers.Add("Connection", "Upgrade");
    exchange->http.headers.Add("Upgrade", "SPDY/3.1");
  }
  auto answer = ProxyHandler::Forward({.backends = &backends, .reject_redirects = reject_redirects},
                                      backends.Get(service), "/apis/a.io/v1/things", exchange);
  auto response = boost::asio::co_spawn(io.Next(), std::move(answer), boost::asio::use_future).get();
  response.body = {};  // ends the connection before the peer goes
  return response;
}

// CVE-2022-3172: a redirect would send the client, with its credentials, where the aggregated server wants.
TEST(ProxyHandler, RedirectsOfBackendsAreRefused) {
  constexpr const char* kElsewhere = "https://192.0.2.1/elsewhere";
  struct Case {
    const char* name;
    const char* status;
    const char* location;
    bool reject_redirects;
    bool upgrade;
    int want;
    const char* want_location;
  };
  const Case cases[] = {
      {"300", "300 Multiple Choices", kElsewhere, true, false, 502, ""},
      {"301", "301 Moved Permanently", kElsewhere, true, false, 502, ""},
      {"302", "302 Found", kElsewhere, true, false, 502, ""},
      {"303", "303 See Other", kElsewhere, true, false, 502, ""},
      {"307", "307 Temporary Redirect", kElsewhere, true, false, 502, ""},
      {"308", "308 Permanent Redirect", kElsewhere, true, false, 502, ""},
      {"without a host", "302 Found", "/elsewhere", true, false, 502, ""},
      {"without Location", "302 Found", "", true, false, 302, ""},
      {"Location of a created object", "201 Created", "/apis/a.io/v1/things/x", true, false, 201, nullptr},
      {"upgrade", "302 Found", kElsewhere, true, true, 503, ""},
      {"upgrade with --aggregator-reject-forwarding-redirect=false", "302 Found", kElsewhere, false, true, 503, ""},
      {"--aggregator-reject-forwarding-redirect=false", "302 Found", kElsewhere, false, false, 302, kElsewhere},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::string head = std::string("HTTP/1.1 ") + c.status + "\r\n";
    if (*c.location != '\0') head += std::string("Location: ") + c.location + "\r\n";
    const http::Response response = Ask(head, c.reject_redirects, c.upgrade);
    EXPECT_EQ(response.status, c.want);
    if (c.want_location != nullptr) {
      EXPECT_EQ(response.headers.Get("Location"), c.want_location);
    }
  }
}

}  // namespace
}  // namespace keelson::aggregator
