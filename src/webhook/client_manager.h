// RESTClients for webhooks' clientConfig: a URL or a service reference, with its CA bundle (upstream's ClientManager).
// Thread safety: all members from any thread. Ownership: resolver and authentication must outlive it.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "webhook/rest_client.h"
#include "webhook/service_resolver.h"

namespace keelson::webhook {

struct ServiceReference {
  std::string name_space;
  std::string name;
  std::string path;
  std::int32_t port = 0;  // 0: 443
};

struct ClientConfig {  // upstream's webhook.ClientConfig
  std::string name;    // of the webhook, for errors
  std::string url;
  std::optional<ServiceReference> service;  // instead of the URL
  std::string ca_bundle;                    // PEM; empty: the system's roots
};

// Credentials for a target `host:port` (upstream's AuthenticationInfoResolver). See kubeconfig.h for the one over
// files.
class AuthenticationInfoResolver {
 public:
  virtual ~AuthenticationInfoResolver() = default;
  virtual Outcome<RESTConfig, std::string> ClientConfigFor(const std::string& host_port) = 0;
};

struct ClientManagerOptions {
  std::shared_ptr<http::Transport> transport;            // never null
  ServiceResolver* service_resolver = nullptr;           // null: the default one, by DNS names
  AuthenticationInfoResolver* authentication = nullptr;  // null: anonymous
  net::DialerPtr cluster_dialer;                         // service references (egress "cluster")
  net::DialerPtr control_plane_dialer;                   // URLs (egress "controlplane")
  std::string user_agent = "kube-apiserver-admission";
  // For https://kubernetes.default.svc:443: this server itself.
  std::optional<RESTConfig> loopback;
};

class ClientManager {
 public:
  static constexpr std::size_t kClientsMax = 200;  // upstream's defaultCacheSize

  explicit ClientManager(ClientManagerOptions options) : options_(std::move(options)) {}

  // The error is the text behind `failed calling webhook "x": `.
  Outcome<std::shared_ptr<RESTClient>, std::string> HookClient(const ClientConfig& config);

 private:
  struct Entry {
    std::shared_ptr<RESTClient> client;
    std::list<std::string>::iterator used;
  };
  Outcome<RESTConfig, std::string> ConfigFor(const ClientConfig& config);
  Outcome<RESTConfig, std::string> ConfigForService(const ServiceReference& service);
  Outcome<RESTConfig, std::string> ConfigForURL(const std::string& url);

  ClientManagerOptions options_;
  std::mutex mutex_;
  std::map<std::string, Entry> clients_;  // by url, service and CA bundle
  std::list<std::string> by_use_;         // the latest first
};

}  // namespace keelson::webhook
