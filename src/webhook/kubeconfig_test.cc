#include "webhook/kubeconfig.h"

#include <gtest/gtest.h>

#include <fstream>

namespace keelson::webhook {
namespace {

constexpr std::string_view kFile = R"(
apiVersion: v1
kind: Config
current-context: hook
clusters:
- name: c
  cluster: {server: "https://hook.example/authorize", tls-server-name: name, certificate-authority-data: Y2E=}
users:
- name: u
  user: {token: secret, as: jane, as-groups: [g], as-user-extra: {k: [v]}}
- name: "*.example"
  user: {username: a, password: b}
- name: "exact.example:8443"
  user: {token: t}
contexts:
- name: hook
  context: {cluster: c, user: u}
)";

TEST(Kubeconfig, CurrentContext) {
  auto config = ParseKubeconfig(kFile, "/etc/k");
  ASSERT_TRUE(config.ok()) << config.error();
  auto rest = RESTConfigFrom(*config);
  ASSERT_TRUE(rest.ok()) << rest.error();
  EXPECT_EQ(rest->host, "https://hook.example/authorize");
  EXPECT_EQ(rest->ca_pem, "ca");
  EXPECT_EQ(rest->server_name, "name");
  EXPECT_EQ(rest->bearer_token, "secret");
  EXPECT_EQ(rest->impersonate.user, "jane");
}

TEST(Kubeconfig, PathsAreRelativeToTheFile) {
  auto config =
      ParseKubeconfig("users: [{name: u, user: {client-certificate: a/../c.pem, tokenFile: /abs}}]", "/etc/k");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->users["u"].client_certificate, "/etc/k/c.pem");
  EXPECT_EQ(config->users["u"].token_file, "/abs");
}

TEST(Kubeconfig, FirstOfSeveralFilesWins) {
  const std::string folder = ::testing::TempDir();
  const std::string first = folder + "kubeconfig-first";
  const std::string second = folder + "kubeconfig-second";
  std::ofstream(first) << "users: [{name: u, user: {token: first}}]\ncurrent-context: two\n";
  std::ofstream(second)
      << "users: [{name: u, user: {token: second}}, {name: v, user: {token: v}}]\ncurrent-context: one\n"
         "contexts: [{name: two, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {server: 'https://second.example'}}]\n";
  const auto config = LoadKubeconfigFiles(folder + "absent::" + first + ":" + second);
  ASSERT_TRUE(config.ok()) << config.error();
  EXPECT_EQ(config->users.size(), 2u);
  const auto rest = RESTConfigFrom(*config);
  ASSERT_TRUE(rest.ok()) << rest.error();
  EXPECT_EQ(rest->host, "https://second.example");
  EXPECT_EQ(rest->bearer_token, "first");
}

TEST(Kubeconfig, ErrorsEqualClientGo) {
  struct Case {
    const char* text;
    const char* error;
  };
  constexpr Case kCases[] = {
      {"",
       "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment "
       "variable"},
      {"current-context: x",
       "invalid configuration: [context was not found for specified context: x, cluster has no server defined]"},
      {"{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: "
       "{proxy-url: 'http://p'}}]}",
       "invalid configuration: no server found for cluster \"c\""},
      {"{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: "
       "{server: 'https://a', certificate-authority: /nonexistent}}], users: [{name: u, user: {token: a, username: "
       "b}}]}",
       "invalid configuration: [more than one authentication method found for u; found [token basicAuth], only one is "
       "allowed, unable to read certificate-authority /nonexistent for c due to open /nonexistent: no such file or "
       "directory]"},
      {"{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: "
       "{server: 'https://a'}}], users: [{name: u, user: {tokenFile: /nonexistent}}]}",
       "open /nonexistent: no such file or directory"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    auto config = ParseKubeconfig(c.text, "");
    ASSERT_TRUE(config.ok()) << config.error();
    auto rest = RESTConfigFrom(*config);
    ASSERT_FALSE(rest.ok());
    EXPECT_EQ(rest.error(), c.error);
  }
  EXPECT_EQ(LoadKubeconfigFile("/nonexistent").error(), "stat /nonexistent: no such file or directory");
  EXPECT_EQ(ParseKubeconfig("clusters: [{name: c, cluster: {certificate-authority-data: '!'}}]", "").error(),
            "illegal base64 data at input byte 0");
}

TEST(Kubeconfig, UsersByTarget) {
  auto config = ParseKubeconfig(kFile, "");
  ASSERT_TRUE(config.ok());
  KubeconfigAuthentication authentication(*config);
  EXPECT_EQ(authentication.ClientConfigFor("exact.example:8443")->bearer_token, "t");
  EXPECT_EQ(authentication.ClientConfigFor("other.example:443")->username, "a");
  EXPECT_EQ(authentication.ClientConfigFor("elsewhere:443")->bearer_token, "secret");
}

}  // namespace
}  // namespace keelson::webhook
