#include "peerproxy/peer_proxy.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <mutex>
#include <thread>

#include "base/url.h"
#include "http/server.h"
#include "net/testing/certificates.h"

namespace keelson::peerproxy {
namespace {

constexpr const char* kCore =
    R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
    {"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"pods","verbs":["get"]}]}]}]})";
constexpr const char* kGroups =
    R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
    {"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments","verbs":["get"]}]}]},
    {"metadata":{"name":"custom.example.com"},"versions":[{"version":"v1","resources":[{"resource":"things","verbs":["get"]}]}]}]})";

class NoBody final : public http::BodyReader {
 public:
  Awaitable<Outcome<http::SharedBytes, http::BodyError>> Read() override { co_return http::SharedBytes(); }
};

// A peer: its discovery documents, and an echo of what it was sent.
class Peer {
 public:
  Peer() {
    server_ =
        std::make_unique<http::Server>(pool_, [this](http::Request request) { return Handle(std::move(request)); });
    const auto pair = ca.Issue("server", {"kubernetes.default.svc"});
    net::TLSServerOptions tls;
    tls.certificate.cert_pem = pair.cert_pem;
    tls.certificate.key_pem = pair.key_pem;
    auto listener = net::Listener::Listen({.address = "127.0.0.1"});
    port = listener->port();
    server_->Start(*std::move(listener), *net::TLSServerContext::New(tls));
  }

  Awaitable<http::Response> Handle(http::Request request) {
    http::Response response;
    std::lock_guard lock(mutex);
    if (request.path == "/api" || request.path == "/apis") {
      fetches.push_back(request.headers);
      response.status = fetches.size() <= broken ? 500 : 200;
      response.body = http::SharedBytes::FromString(request.path == "/api" ? kCore : kGroups);
    } else {
      proxied = request.headers;
      target = request.target;
      response.status = 299;
    }
    co_return response;
  }

  net::testing::Authority ca{"peers"};
  std::uint16_t port = 0;
  std::mutex mutex;
  std::size_t broken = 0;  // so many fetches fail first
  std::vector<http::Headers> fetches;
  http::Headers proxied;
  std::string target;

 private:
  async::IOPool pool_{1};
  std::unique_ptr<http::Server> server_;
};

class PeerProxyTest : public ::testing::Test {
 protected:
  void Make() {
    PeerProxyOptions options;
    options.io = &io_;
    options.metrics = &metrics_;
    options.server_id = "apiserver-own";
    options.find_endpoint = [this](std::string id) { return FindEndpoint(std::move(id)); };
    proxy_ = std::make_unique<PeerProxy>(std::move(options));
    proxy_->SetTLS(*net::TLSClientContext::New({.ca_pem = peer_.ca.cert_pem()}));
    proxy_->SetLocal({{"", "v1", "pods"}});
    proxy_->Start();
  }
  Awaitable<Outcome<net::HostPort, std::string>> FindEndpoint(std::string id) {
    std::lock_guard lock(peer_.mutex);
    if (id != "apiserver-peer" || gone_) co_return std::string("missing port in address");
    co_return net::HostPort{"127.0.0.1", std::to_string(peer_.port)};
  }
  void SetGone() {
    std::lock_guard lock(peer_.mutex);
    gone_ = true;
  }
  static endpoints::ExchangePtr Request(const std::string& path) {
    auto exchange = std::make_shared<endpoints::Exchange>();
    exchange->http.method = "GET";
    exchange->http.path = path.substr(0, path.find('?'));
    if (path.find('?') != std::string::npos) exchange->http.raw_query = path.substr(path.find('?') + 1);
    exchange->http.body = std::make_unique<NoBody>();
    exchange->context.info =
        *request::NewRequestInfo("GET", exchange->http.path, base::Query(exchange->http.raw_query));
    exchange->context.audit_id = "audit";
    exchange->context.user = request::User{.name = "alice", .uid = "7", .groups = {"dev"}, .extra = {{"a/b", {"c"}}}};
    return exchange;
  }
  bool Proxied(const std::string& path) const { return proxy_->Find(*Request(path)).has_value(); }
  template <class Condition>
  static bool Eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return condition();
  }
  http::Response Serve(endpoints::ExchangePtr exchange) {
    auto handler = proxy_->Find(*exchange);
    EXPECT_TRUE(handler.has_value());
    return boost::asio::co_spawn(io_.Next(), (*handler)(std::move(exchange)), boost::asio::use_future).get();
  }

  Peer peer_;
  async::IOPool io_{1};
  telemetry::MetricsRegistry metrics_;
  std::unique_ptr<PeerProxy> proxy_;
  bool gone_ = false;
};

constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";

TEST_F(PeerProxyTest, RequestsForResourcesOfPeersOnly) {
  Make();
  proxy_->OnLeases({{"apiserver-peer", "holder"}, {"apiserver-own", "holder"}});
  proxy_->FinishSync();
  ASSERT_TRUE(Eventually([&] { return Proxied(kDeployments); }));
  EXPECT_TRUE(Proxied("/apis/apps/v1/namespaces/default/deployments/a/scale"));
  EXPECT_FALSE(Proxied("/api/v1/namespaces/default/pods"));
  EXPECT_FALSE(Proxied("/apis/apps/v1/replicasets"));
  EXPECT_FALSE(Proxied("/apis/apps/v1"));
  EXPECT_TRUE(Proxied("/apis/custom.example.com/v1/things"));
  proxy_->OnExclusions({{"crd/things.custom.example.com", {{"custom.example.com", "v1"}}}});
  EXPECT_FALSE(Proxied("/apis/custom.example.com/v1/things"));
  auto once = Request(kDeployments);
  once->http.headers.Add("x-kubernetes-peer-proxied", "true");
  EXPECT_FALSE(proxy_->Find(*once).has_value());
  proxy_->OnLeases({{"apiserver-peer", std::nullopt}});
  EXPECT_TRUE(Eventually([&] { return !Proxied(kDeployments); }));
}

TEST_F(PeerProxyTest, NothingIsProxiedBeforeTheFirstSync) {
  Make();
  proxy_->OnLeases({{"apiserver-peer", "holder"}});
  ASSERT_TRUE(Eventually([&] { return proxy_->Merge("").find("deployments") != std::string::npos; }));
  EXPECT_FALSE(Proxied(kDeployments));
  proxy_->FinishSync();
  EXPECT_TRUE(Proxied(kDeployments));
}

TEST_F(PeerProxyTest, IdentityAndQueryReachThePeer) {
  Make();
  proxy_->OnLeases({{"apiserver-peer", "holder"}});
  proxy_->FinishSync();
  ASSERT_TRUE(Eventually([&] { return Proxied(kDeployments); }));
  auto exchange = Request(std::string(kDeployments) + "?limit=5&fieldSelector=a%3Db");
  exchange->http.headers.Add("X-Remote-Group", "system:masters");
  EXPECT_EQ(Serve(std::move(exchange)).status, 299);
  std::lock_guard lock(peer_.mutex);
  EXPECT_EQ(peer_.target, std::string(kDeployments) + "?fieldSelector=a%3Db&limit=5");
  EXPECT_EQ(peer_.proxied.Get("X-Remote-User"), "alice");
  EXPECT_EQ(peer_.proxied.Get("X-Remote-Uid"), "7");
  EXPECT_EQ(peer_.proxied.Values("X-Remote-Group"), (std::vector<std::string_view>{"dev"}));
  EXPECT_EQ(peer_.proxied.Get("X-Remote-Extra-a%2Fb"), "c");
  EXPECT_EQ(peer_.proxied.Get("Audit-Id"), "audit");
  EXPECT_EQ(peer_.proxied.Get("x-kubernetes-peer-proxied"), "true");
  ASSERT_EQ(peer_.fetches.size(), 2u);
  EXPECT_EQ(peer_.fetches[0].Get("X-Remote-User"), "system:apiserver");
  EXPECT_EQ(peer_.fetches[0].Get("x-kubernetes-peer-proxied"), "true");
  EXPECT_TRUE(peer_.fetches[0].Get("Accept").find(";profile=nopeer,") != std::string::npos);
  EXPECT_NE(metrics_.Expose().find(
                R"(apiserver_rerouted_request_total{code="299",group="apps",resource="deployments",version="v1"} 1)"),
            std::string::npos);
}

TEST_F(PeerProxyTest, APeerWithoutAnAddressIs503) {
  Make();
  proxy_->OnLeases({{"apiserver-peer", "holder"}});
  proxy_->FinishSync();
  ASSERT_TRUE(Eventually([&] { return Proxied(kDeployments); }));
  SetGone();
  const http::Response response = Serve(Request(kDeployments));
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(std::get<http::SharedBytes>(response.body)
                .view()
                .find("Error getting ip and port info of the remote server while proxying"),
            std::string_view::npos);
}

TEST_F(PeerProxyTest, DiscoveryThatFailsIsFetchedAgain) {
  peer_.broken = 5;
  Make();
  proxy_->OnLeases({{"apiserver-peer", "holder"}});
  proxy_->FinishSync();
  EXPECT_TRUE(Eventually([&] { return Proxied(kDeployments); }));
  EXPECT_NE(metrics_.Expose().find(R"(apiserver_peer_discovery_sync_errors_total{type="fetch_discovery"} 5)"),
            std::string::npos);
}

TEST_F(PeerProxyTest, MergedDiscoveryWithoutExcludedVersions) {
  Make();
  const std::uint64_t before = proxy_->Generation();
  const std::string own = R"({"metadata":{"name":"batch"},"versions":[{"version":"v1","freshness":"Current"}]})";
  EXPECT_EQ(proxy_->Merge(own), own);
  proxy_->OnExclusions({{"crd/things.custom.example.com", {{"custom.example.com", "v1"}}}});
  proxy_->OnLeases({{"apiserver-peer", "holder"}});
  ASSERT_TRUE(Eventually([&] { return proxy_->Merge(own) != own; }));
  EXPECT_NE(proxy_->Generation(), before);
  const std::string merged = proxy_->Merge(own);
  EXPECT_TRUE(merged.find("\"apps\"") < merged.find("\"batch\"")) << merged;
  EXPECT_EQ(merged.find("custom.example.com"), std::string::npos) << merged;
}

}  // namespace
}  // namespace keelson::peerproxy
