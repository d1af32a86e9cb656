#include "app/egress_config.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

std::string Problem(const std::string& text) {
  auto parsed = ParseEgressSelectorConfiguration(text);
  return parsed.ok() ? "" : parsed.error();
}

std::string One(const std::string& name, const std::string& connection) {
  return R"({"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[{"name":")" +
         name + R"(","connection":)" + connection + "}]}";
}

TEST(EgressSelectorConfiguration, Reads) {
  auto parsed = ParseEgressSelectorConfiguration(R"(
apiVersion: apiserver.k8s.io/v1alpha1
kind: EgressSelectorConfiguration
egressSelections:
- name: Cluster
  connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /run/konnectivity.sock}}}
- name: master
  connection: {proxyProtocol: Direct}
- name: etcd
  connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: "http://127.0.0.1:3128"}}}
)");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ((*parsed)[0].name, "cluster");
  EXPECT_EQ((*parsed)[0].protocol, EgressSelection::Protocol::kGRPC);
  EXPECT_EQ((*parsed)[0].uds_name, "/run/konnectivity.sock");
  EXPECT_EQ((*parsed)[1].name, "controlplane");
  EXPECT_EQ((*parsed)[2].url, "http://127.0.0.1:3128");
}

TEST(EgressSelectorConfiguration, ErrorsEqualUpstream) {
  const std::string invalid = "failed to validate egress selector configuration: ";
  struct Case {
    std::string text;
    std::string want;
  };
  const Case cases[] = {
      {One("cluster", R"({"proxyProtocol":"Direct","transport":{}})"),
       invalid + "service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect"},
      {One("cluster", R"({"proxyProtocol":"SOCKS"})"),
       invalid + "service.connection.protocol: Unsupported value: \"SOCKS\": supported values: \"Direct\", \"GRPC\", "
                 "\"HTTPConnect\""},
      {One("nodes", R"({"proxyProtocol":"Direct"})"),
       invalid + "service.connection: Unsupported value: \"nodes\": supported values: \"cluster\", \"controlplane\", "
                 "\"etcd\""},
      {One("master", R"({"proxyProtocol":"Direct"})"),
       invalid + "service.connection: Unsupported value: \"master\": supported values: \"cluster\", \"controlplane\", "
                 "\"etcd\""},
      {One("etcd", R"({"proxyProtocol":"GRPC"})"),
       invalid + "service.connection.transport: Required value: transport must be set for GRPC"},
      {One("etcd", R"({"proxyProtocol":"GRPC","transport":{}})"),
       invalid + "service.connection.uds: Required value: UDS must be set with GRPC"},
      {One("etcd", R"({"proxyProtocol":"GRPC","transport":{"uds":{}}})"),
       invalid + "service.connection.udsName: Invalid value: \"nil\": must be present for UDS connections"},
      {One("etcd", R"({"proxyProtocol":"GRPC","transport":{"tcp":{"url":"http://127.0.0.1:1"}}})"),
       invalid + "service.connection.url: Invalid value: \"http://127.0.0.1:1\": GRPC over TCP needs https://"},
      {One("etcd", R"({"proxyProtocol":"HTTPConnect"})"),
       invalid + "service.connection.transport: Required value: transport must be set for HTTPConnect"},
      {One("etcd", R"({"proxyProtocol":"HTTPConnect","transport":{}})"),
       invalid + "service.connection.tcp: Required value: One of TCP or UDS must be set"},
      {One("etcd", R"({"proxyProtocol":"HTTPConnect","transport":{"tcp":{"url":"ftp://x"}}})"),
       invalid + "service.connection.url: Invalid value: \"ftp://x\": supported connection protocols are http:// and "
                 "https://"},
      {One("etcd", R"({"proxyProtocol":"HTTPConnect","transport":{"tcp":{"url":"https://x"}}})"),
       invalid + "service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS"},
      {One("etcd",
           R"({"proxyProtocol":"HTTPConnect","transport":{"tcp":{"url":"https://x","tlsConfig":{"clientCert":"/no"}}}})"),
       invalid +
           "[service.connection.tlsConfig.clientCert: Invalid value: \"/no\": TLS client cert does not exist, "
           "service.connection.tlsConfig.clientKey: Invalid value: \"nil\": Using TLS requires requires clientKey]"},
      {One("etcd", R"({"proxyProtocol":"Direct","proxy":1})"),
       "failed to read egress selector config: strict decoding error: unknown field "
       "\"egressSelections[0].connection.proxy\""},
      {R"({"apiVersion":"v1","kind":"Pod"})",
       "failed to read egress selector config: no kind \"Pod\" is registered for version \"v1\" in scheme "
       "\"pkg/runtime/scheme.go:111\""},
  };
  for (const Case& c : cases) EXPECT_EQ(Problem(c.text), c.want);
}

TEST(EgressSelectorConfiguration, RefusesRepeatedNames) {
  EXPECT_EQ(
      Problem(R"({"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[
                      {"name":"etcd","connection":{"proxyProtocol":"Direct"}},
                      {"name":"Etcd","connection":{"proxyProtocol":"Direct"}}]})"),
      "failed to validate egress selector configuration: service.connection[1]: Duplicate value: \"etcd\"");
}

}  // namespace
}  // namespace keelson::app
