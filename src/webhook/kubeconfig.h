// Kubeconfig files as upstream reads them for webhooks (client-go's clientcmd): clusters, users, contexts; paths
// relative to the file; data inline. Exec plugins and auth providers are refused by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/outcome.h"
#include "webhook/client_manager.h"
#include "webhook/rest_client.h"

namespace keelson::webhook {

struct KubeconfigCluster {
  std::string server;
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  std::string certificate_authority;  // a path
  std::string certificate_authority_data;
  std::string proxy_url;
  bool disable_compression = false;
};

struct KubeconfigUser {
  std::string client_certificate;  // a path
  std::string client_certificate_data;
  std::string client_key;  // a path
  std::string client_key_data;
  std::string token;
  std::string token_file;
  std::string username;
  std::string password;
  RESTConfig::Impersonation impersonate;
  bool has_auth_provider = false;
  bool has_exec = false;
  struct Exec {
    std::string command;
    std::string api_version;
    std::string interactive_mode;
    std::vector<std::pair<std::string, std::string>> env;
  } exec;
};

struct KubeconfigContext {
  std::string cluster;
  std::string user;
  std::string name_space;
};

struct Kubeconfig {
  std::map<std::string, KubeconfigCluster> clusters;
  std::map<std::string, KubeconfigUser> users;
  std::map<std::string, KubeconfigContext> contexts;
  std::string current_context;
};

// Paths are made absolute against `directory`.
Outcome<Kubeconfig, std::string> ParseKubeconfig(std::string_view text, const std::string& directory);
// upstream's texts: `stat /x: no such file or directory`, `error loading config file "/x": ...`. Blocks on the disk.
Outcome<Kubeconfig, std::string> LoadKubeconfigFile(const std::string& path);
// $KUBECONFIG: files separated by ':', merged; the first file with an entry wins, missing files are skipped. Blocks on
// the disk.
Outcome<Kubeconfig, std::string> LoadKubeconfigFiles(std::string_view paths);

// The target of the current context (upstream's webhook.LoadKubeconfig): server, CA, credentials, 30 s timeout. Blocks
// on the disk.
Outcome<RESTConfig, std::string> RESTConfigFrom(const Kubeconfig& config);
Outcome<RESTConfig, std::string> LoadKubeconfig(const std::string& path, net::DialerPtr dialer = nullptr);

// Users by target, for admission webhooks (the kubeConfigFile of WebhookAdmissionConfiguration): `host:port`, `host`,
// `*.suffix`, `*`, or the current context's user.
class KubeconfigAuthentication final : public AuthenticationInfoResolver {
 public:
  explicit KubeconfigAuthentication(Kubeconfig config) : config_(std::move(config)) {}
  // An empty path: no credentials for any host.
  static Outcome<std::unique_ptr<KubeconfigAuthentication>, std::string> Load(const std::string& path);
  Outcome<RESTConfig, std::string> ClientConfigFor(const std::string& host_port) override;

 private:
  const KubeconfigUser* UserFor(const std::string& host_port) const;
  const KubeconfigUser* Match(std::string_view target) const;
  Kubeconfig config_;
};

}  // namespace keelson::webhook
