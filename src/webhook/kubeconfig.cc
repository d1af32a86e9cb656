#include "webhook/kubeconfig.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>

#include "base/arena.h"
#include "base/read_file.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "http/proxy.h"
#include "meta/type_errors.h"
#include "webhook/file_text.h"

namespace keelson::webhook {
namespace {

constexpr std::string_view kEmptyConfig =
    "no configuration has been provided, try setting KUBERNETES_MASTER environment variable";

std::string Text(const Value& value) { return std::string(value.as_string()); }

std::string AbsolutePath(const std::string& path, const std::string& directory) {
  if (path.empty() || path.starts_with('/') || directory.empty()) return path;
  return (std::filesystem::path(directory) / path).lexically_normal().string();
}

// One base64 field; false with Go's error when it is not base64.
bool Data(const Value& value, std::string& out, std::string& error) {
  const std::string_view text = value.as_string();
  if (text.empty()) return true;
  auto decoded = base::Base64Decode(text);
  if (!decoded) {
    constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n";
    const auto at = text.find_first_not_of(kAlphabet);
    error = "illegal base64 data at input byte " + std::to_string(at == std::string_view::npos ? text.size() : at);
    return false;
  }
  out = *std::move(decoded);
  return true;
}

bool ReadCluster(const Value& value, const std::string& directory, KubeconfigCluster& out, std::string& error) {
  out.server = Text(value["server"]);
  out.tls_server_name = Text(value["tls-server-name"]);
  out.insecure_skip_tls_verify = value["insecure-skip-tls-verify"].as_bool();
  out.certificate_authority = AbsolutePath(Text(value["certificate-authority"]), directory);
  out.proxy_url = Text(value["proxy-url"]);
  out.disable_compression = value["disable-compression"].as_bool();
  return Data(value["certificate-authority-data"], out.certificate_authority_data, error);
}

bool ReadUser(const Value& value, const std::string& directory, KubeconfigUser& out, std::string& error) {
  out.client_certificate = AbsolutePath(Text(value["client-certificate"]), directory);
  out.client_key = AbsolutePath(Text(value["client-key"]), directory);
  out.token = Text(value["token"]);
  out.token_file = AbsolutePath(Text(value["tokenFile"]), directory);
  out.username = Text(value["username"]);
  out.password = Text(value["password"]);
  out.impersonate.user = Text(value["as"]);
  out.impersonate.uid = Text(value["as-uid"]);
  for (const Value& group : value["as-groups"].items()) out.impersonate.groups.push_back(Text(group));
  for (const auto& member : value["as-user-extra"].members()) {
    std::vector<std::string> values;
    for (const Value& item : member.value.items()) values.push_back(Text(item));
    out.impersonate.extra.emplace_back(std::string(member.key), std::move(values));
  }
  out.has_auth_provider = value["auth-provider"].is_map();
  if (const Value exec = value["exec"]; exec.is_map()) {
    out.has_exec = true;
    out.exec.command = Text(exec["command"]);
    out.exec.api_version = Text(exec["apiVersion"]);
    out.exec.interactive_mode = Text(exec["interactiveMode"]);
    for (const Value& variable : exec["env"].items())
      out.exec.env.emplace_back(Text(variable["name"]), Text(variable["value"]));
  }
  return Data(value["client-certificate-data"], out.client_certificate_data, error) &&
         Data(value["client-key-data"], out.client_key_data, error);
}

// `open /x: no such file or directory`, or "" when the file can be opened.
std::string OpenError(const std::string& path) {
  auto text = base::ReadFile(path);
  return text.ok() ? std::string() : text.error();
}

bool IsEmpty(const KubeconfigCluster& cluster) {
  return cluster.server.empty() && cluster.tls_server_name.empty() && !cluster.insecure_skip_tls_verify &&
         cluster.certificate_authority.empty() && cluster.certificate_authority_data.empty() &&
         cluster.proxy_url.empty() && !cluster.disable_compression;
}

void ValidateUser(const std::string& name, const KubeconfigUser& user, std::vector<std::string>& errors) {
  std::vector<std::string> methods;
  if (!user.token.empty()) methods.push_back("token");
  if (!user.username.empty() || !user.password.empty()) methods.push_back("basicAuth");
  if (!user.client_certificate.empty() || !user.client_certificate_data.empty()) {
    if (!user.client_certificate.empty() && !user.client_certificate_data.empty()) {
      errors.push_back("client-cert-data and client-cert are both specified for " + name +
                       ". client-cert-data will override.");
    }
    if (!user.client_key.empty() && !user.client_key_data.empty()) {
      errors.push_back("client-key-data and client-key are both specified for " + name +
                       "; client-key-data will override");
    }
    if (user.client_key.empty() && user.client_key_data.empty()) {
      errors.push_back("client-key-data or client-key must be specified for " + name +
                       " to use the clientCert authentication method.");
    }
    for (const auto& [path, what] :
         {std::pair(&user.client_certificate, "client-cert"), std::pair(&user.client_key, "client-key")}) {
      if (path->empty()) continue;
      if (const std::string error = OpenError(*path); !error.empty())
        errors.push_back("unable to read " + std::string(what) + " " + *path + " for " + name + " due to " + error);
    }
  }
  if (user.has_exec) {
    const std::string suffix = " must be specified for " + name + " to use exec authentication plugin";
    if (user.has_auth_provider)
      errors.push_back("authProvider cannot be provided in combination with an exec plugin for " + name);
    if (user.exec.command.empty()) errors.push_back("command" + suffix);
    if (user.exec.api_version.empty()) errors.push_back("apiVersion" + suffix);
    for (const auto& [key, value] : user.exec.env) {
      if (key.empty()) errors.push_back("env variable name" + suffix);
    }
    const std::string& mode = user.exec.interactive_mode;
    if (mode.empty()) {
      errors.push_back("interactiveMode" + suffix);
    } else if (mode != "Never" && mode != "IfAvailable" && mode != "Always") {
      errors.push_back("invalid interactiveMode for " + name + ": " + base::GoQuote(mode));
    }
  }
  if (methods.size() > 1) {
    errors.push_back("more than one authentication method found for " + name + "; found [" + base::Join(methods, " ") +
                     "], only one is allowed");
  }
  const auto& impersonate = user.impersonate;
  if ((!impersonate.uid.empty() || !impersonate.groups.empty() || !impersonate.extra.empty()) &&
      impersonate.user.empty()) {
    errors.push_back("requesting uid, groups or user-extra for " + name + " without impersonating a user");
  }
}

// True when nothing is configured at all: upstream says so in other words.
bool ValidateCluster(const std::string& name, const KubeconfigCluster& cluster, std::vector<std::string>& errors) {
  if (IsEmpty(cluster)) {
    errors.push_back("cluster has no server defined");
    return true;
  }
  if (cluster.server.empty()) {
    errors.push_back(name.empty() ? std::string("default cluster has no server defined")
                                  : "no server found for cluster " + base::GoQuote(name));
  }
  if (!cluster.proxy_url.empty()) {
    if (const auto proxy = http::ParseProxy(cluster.proxy_url); !proxy.ok()) {
      errors.push_back("invalid 'proxy-url' " + base::GoQuote(cluster.proxy_url) + " for cluster " +
                       base::GoQuote(name) + ": " + proxy.error());
    }
  }
  if (!cluster.certificate_authority.empty() && !cluster.certificate_authority_data.empty()) {
    errors.push_back("certificate-authority-data and certificate-authority are both specified for " + name +
                     ". certificate-authority-data will override.");
  }
  if (!cluster.certificate_authority.empty()) {
    if (const std::string error = OpenError(cluster.certificate_authority); !error.empty()) {
      errors.push_back("unable to read certificate-authority " + cluster.certificate_authority + " for " + name +
                       " due to " + error);
    }
  }
  return false;
}

std::string Aggregate(const std::vector<std::string>& errors) {
  return errors.size() == 1 ? errors[0] : "[" + base::Join(errors, ", ") + "]";
}

// Puts a user's credentials into `config`; the error is upstream's.
std::string UseCredentials(const KubeconfigUser& user, RESTConfig& config) {
  config.bearer_token = user.token;
  config.bearer_token_file = user.token_file;
  if (user.token.empty() && !user.token_file.empty()) {
    auto text = base::ReadFile(user.token_file);
    if (!text.ok()) return text.error();
    config.bearer_token = *std::move(text);
  }
  if (!user.impersonate.user.empty()) config.impersonate = user.impersonate;
  if (!user.client_certificate.empty() || !user.client_certificate_data.empty()) {
    config.client_certificate_file = user.client_certificate;
    config.client_certificate_pem = user.client_certificate_data;
    config.client_key_file = user.client_key;
    config.client_key_pem = user.client_key_data;
  }
  config.username = user.username;
  config.password = user.password;
  if (user.has_exec) return "exec authentication plugins are not supported by this server";
  if (user.has_auth_provider) return "auth provider not supported";
  return {};
}

}  // namespace

Outcome<Kubeconfig, std::string> ParseKubeconfig(std::string_view text, const std::string& directory) {
  Kubeconfig config;
  if (text.empty()) return config;
  base::Arena arena;
  auto decoded = codec::DecodeYAML(arena, text);
  if (!decoded.ok()) return decoded.error().message;
  const Value& root = decoded->value;
  if (!root.is_map()) {
    return std::string(
        "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { "
        "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }");
  }
  const std::string version = root["apiVersion"].is_string() ? Text(root["apiVersion"]) : "v1";
  const std::string kind = root["kind"].is_string() ? Text(root["kind"]) : "Config";
  if (version != "v1" || kind != "Config") {
    return meta::NotRegisteredError(kind, version);
  }
  config.current_context = Text(root["current-context"]);
  std::string error;
  for (const Value& item : root["clusters"].items()) {
    KubeconfigCluster cluster;
    if (!ReadCluster(item["cluster"], directory, cluster, error)) return error;
    config.clusters.emplace(Text(item["name"]), std::move(cluster));
  }
  for (const Value& item : root["users"].items()) {
    KubeconfigUser user;
    if (!ReadUser(item["user"], directory, user, error)) return error;
    config.users.emplace(Text(item["name"]), std::move(user));
  }
  for (const Value& item : root["contexts"].items()) {
    const Value context = item["context"];
    config.contexts.emplace(Text(item["name"]), KubeconfigContext{Text(context["cluster"]), Text(context["user"]),
                                                                  Text(context["namespace"])});
  }
  return config;
}

Outcome<Kubeconfig, std::string> LoadKubeconfigFile(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT) return "stat " + path + ": no such file or directory";
  const std::string prefix = "error loading config file \"" + path + "\": ";
  auto text = base::ReadFile(path);
  if (!text.ok()) return prefix + text.error();
  const auto directory = std::filesystem::absolute(path).parent_path().string();
  auto config = ParseKubeconfig(*text, directory);
  if (!config.ok()) return prefix + config.error();
  return config;
}

Outcome<Kubeconfig, std::string> LoadKubeconfigFiles(std::string_view paths) {
  Kubeconfig merged;
  for (const std::string_view path : base::Split(paths, ':')) {
    std::error_code unreadable;
    if (path.empty() || !std::filesystem::exists(path, unreadable)) continue;
    KS_TRY(Kubeconfig config, LoadKubeconfigFile(std::string(path)));
    merged.clusters.merge(config.clusters);
    merged.users.merge(config.users);
    merged.contexts.merge(config.contexts);
    if (merged.current_context.empty()) merged.current_context = std::move(config.current_context);
  }
  return merged;
}

Outcome<RESTConfig, std::string> RESTConfigFrom(const Kubeconfig& config) {
  std::vector<std::string> errors;
  KubeconfigContext context;
  if (!config.current_context.empty()) {
    const auto found = config.contexts.find(config.current_context);
    if (found == config.contexts.end()) {
      errors.push_back("context was not found for specified context: " + config.current_context);
    } else {
      context = found->second;
    }
  }
  KubeconfigUser user;
  if (const auto found = config.users.find(context.user); found != config.users.end()) user = found->second;
  KubeconfigCluster cluster;
  if (const auto found = config.clusters.find(context.cluster); found != config.clusters.end()) cluster = found->second;
  ValidateUser(context.user, user, errors);
  const bool empty = ValidateCluster(context.cluster, cluster, errors);
  if (empty && errors.size() == 1) return "invalid configuration: " + std::string(kEmptyConfig);
  if (!errors.empty()) return "invalid configuration: " + Aggregate(errors);
  RESTConfig out;
  out.host = cluster.server;
  out.proxy_url = cluster.proxy_url;
  if (!user.impersonate.user.empty()) out.impersonate = user.impersonate;
  // Credentials and server identity only where the target is secure.
  if (base::ToLower(cluster.server).starts_with("https://")) {
    if (std::string error = UseCredentials(user, out); !error.empty()) return error;
    out.ca_file = cluster.certificate_authority;
    out.ca_pem = cluster.certificate_authority_data;
    out.insecure_skip_verify = cluster.insecure_skip_tls_verify;
    out.server_name = cluster.tls_server_name;
  }
  return out;
}

Outcome<RESTConfig, std::string> LoadKubeconfig(const std::string& path, net::DialerPtr dialer) {
  KS_TRY(const Kubeconfig config, LoadKubeconfigFile(path));
  KS_TRY(RESTConfig out, RESTConfigFrom(config));
  out.dialer = std::move(dialer);
  return out;
}

Outcome<std::unique_ptr<KubeconfigAuthentication>, std::string> KubeconfigAuthentication::Load(
    const std::string& path) {
  Kubeconfig config;
  if (!path.empty()) {
    KS_TRY(config, LoadKubeconfigFile(path));
  }
  return std::make_unique<KubeconfigAuthentication>(std::move(config));
}

const KubeconfigUser* KubeconfigAuthentication::Match(std::string_view target) const {
  if (const auto exact = config_.users.find(std::string(target)); exact != config_.users.end()) return &exact->second;
  for (auto dot = target.find('.'); dot != std::string_view::npos; dot = target.find('.', dot + 1)) {
    const auto found = config_.users.find("*" + std::string(target.substr(dot)));
    if (found != config_.users.end()) return &found->second;
  }
  return nullptr;
}

const KubeconfigUser* KubeconfigAuthentication::UserFor(const std::string& host_port) const {
  if (const auto* user = Match(host_port); user != nullptr) return user;
  if (host_port.ends_with(":443")) {
    std::string host = host_port.substr(0, host_port.size() - 4);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (const auto* user = Match(host); user != nullptr) return user;
  }
  if (const auto star = config_.users.find("*"); star != config_.users.end()) return &star->second;
  const auto context = config_.contexts.find(config_.current_context);
  if (context == config_.contexts.end() || context->second.user.empty()) return nullptr;
  const auto user = config_.users.find(context->second.user);
  return user == config_.users.end() ? nullptr : &user->second;
}

Outcome<RESTConfig, std::string> KubeconfigAuthentication::ClientConfigFor(const std::string& host_port) {
  RESTConfig config;
  config.user_agent = "kube-apiserver-admission";
  if (const auto* user = UserFor(host_port); user != nullptr) {
    if (std::string error = UseCredentials(*user, config); !error.empty()) return error;
  }
  return config;
}

}  // namespace keelson::webhook
