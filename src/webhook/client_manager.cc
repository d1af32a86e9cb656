#include "webhook/client_manager.h"

#include <boost/asio/ip/address.hpp>

#include "base/go_url.h"
#include "base/strings.h"
#include "net/address.h"

namespace keelson::webhook {
namespace {

bool IsLocalHost(const std::string& host) {
  if (base::EqualsIgnoreCase(host, "localhost")) return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

using Config = Outcome<RESTConfig, std::string>;

}  // namespace

Config ClientManager::ConfigForService(const ServiceReference& service) {
  const std::int32_t port = service.port == 0 ? 443 : service.port;
  const std::string server_name = service.name + "." + service.name_space + ".svc";
  const std::string host = server_name + ":" + std::to_string(port);
  if (options_.loopback && host == "kubernetes.default.svc:443") {
    RESTConfig config = *options_.loopback;
    config.api_path = service.path;
    return config;
  }
  RESTConfig config;
  if (options_.authentication != nullptr) {
    KS_TRY(config, options_.authentication->ClientConfigFor(host));
  }
  // HTTP/1.1: one HTTP/2 connection would send everything to one backend of the service.
  config.http1_only = true;
  config.host = "https://" + host;
  config.api_path = service.path;
  if (config.server_name.empty()) config.server_name = server_name;
  config.dialer = options_.cluster_dialer;
  config.user_agent = options_.user_agent;
  if (options_.service_resolver != nullptr) {
    config.resolve = [resolver = options_.service_resolver, name_space = service.name_space, name = service.name,
                      port]() -> Outcome<net::DialTarget, std::string> {
      auto endpoint = resolver->ResolveEndpoint(name_space, name, port);
      if (!endpoint.ok()) return endpoint.error();
      return net::DialTarget{.host = endpoint->host, .port = endpoint->port};
    };
  }
  return config;
}

Config ClientManager::ConfigForURL(const std::string& text) {
  if (text.empty()) return std::string("webhook configuration must have either service or URL");
  auto url = base::ParseURL(text);
  if (!url.ok()) return "Unparsable URL: " + url.error();
  const std::string host_port = url->Port().empty() ? url->host + ":443" : url->host;
  if (options_.loopback && host_port == "kubernetes.default.svc:443") {
    RESTConfig config = *options_.loopback;
    config.api_path = url->path;
    return config;
  }
  RESTConfig config;
  if (options_.authentication != nullptr) {
    KS_TRY(config, options_.authentication->ClientConfigFor(host_port));
  }
  config.host = url->scheme + "://" + url->host;
  config.api_path = url->path;
  config.http1_only = !IsLocalHost(url->Hostname());
  config.dialer = options_.control_plane_dialer;
  config.user_agent = options_.user_agent;
  return config;
}

Config ClientManager::ConfigFor(const ClientConfig& config) {
  KS_TRY(RESTConfig made, config.service ? ConfigForService(*config.service) : ConfigForURL(config.url));
  if (!config.ca_bundle.empty()) {
    if (!made.ca_pem.empty()) made.ca_pem += '\n';
    made.ca_pem += config.ca_bundle;
  }
  return made;
}

Outcome<std::shared_ptr<RESTClient>, std::string> ClientManager::HookClient(const ClientConfig& config) {
  std::string key = config.url + '\n' + config.ca_bundle;
  if (config.service) {
    const ServiceReference& service = *config.service;
    key += '\n' + service.name_space + '/' + service.name + ':' + std::to_string(service.port) + '\n' + service.path;
  }
  {
    std::lock_guard lock(mutex_);
    if (const auto found = clients_.find(key); found != clients_.end()) {
      by_use_.splice(by_use_.begin(), by_use_, found->second.used);
      return found->second.client;
    }
  }
  KS_TRY(RESTConfig made, ConfigFor(config));
  KS_TRY(auto client, RESTClient::New(options_.transport, std::move(made)));
  std::shared_ptr<RESTClient> dropped;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  if (const auto found = clients_.find(key); found != clients_.end()) return found->second.client;
  by_use_.push_front(key);
  clients_.emplace(std::move(key), Entry{client, by_use_.begin()});
  if (clients_.size() > kClientsMax) {
    const auto oldest = clients_.find(by_use_.back());
    dropped = std::move(oldest->second.client);
    clients_.erase(oldest);
    by_use_.pop_back();
  }
  return client;
}

}  // namespace keelson::webhook
