#include "app/file_flags.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/go_errno.h"

namespace keelson::app {
namespace {

// Go's words for why a file cannot be read; "" when it can.
std::string OpenProblem(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "open " + path + ": " + base::GoErrno(errno);
  struct stat info{};
  const bool folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  ::close(fd);
  return folder ? "read " + path + ": is a directory" : "";
}

class Problems {
 public:
  void File(const char* flag, const std::string& path) {
    if (path.empty()) return;
    if (std::string problem = OpenProblem(path); !problem.empty())
      lines.push_back("--" + std::string(flag) + ": " + problem);
  }
  void Pair(const char* cert_flag, const std::string& cert, const char* key_flag, const std::string& key) {
    File(cert_flag, cert);
    File(key_flag, key);
    if (cert.empty() == key.empty()) return;
    const auto& [given, missing] = cert.empty() ? std::pair{key_flag, cert_flag} : std::pair{cert_flag, key_flag};
    lines.push_back("--" + std::string(missing) + " is missing: --" + given + " needs it");
  }
  Strings lines;
};

void CheckEtcd(const EtcdOptions& o, Problems& problems) {
  problems.File("encryption-provider-config", o.encryption_provider_config_filepath);
  if (o.servers.empty() && o.servers_overrides.empty()) return;
  problems.File("etcd-cafile", o.ca_file);
  problems.Pair("etcd-certfile", o.cert_file, "etcd-keyfile", o.key_file);
}

void CheckAuthentication(const AuthenticationOptions& o, Problems& problems) {
  problems.File("authentication-config", o.authentication_config_file);
  problems.File("authentication-token-webhook-config-file", o.token_webhook_config_file);
  problems.File("client-ca-file", o.client_ca_file);
  problems.File("oidc-ca-file", o.oidc.ca_file);
  problems.File("requestheader-client-ca-file", o.request_header.client_ca_file);
  for (const std::string& file : o.service_accounts.key_files) problems.File("service-account-key-file", file);
  problems.File("token-auth-file", o.token_file);
}

}  // namespace

Strings FileFlagProblems(const ServerRunOptions& options) {
  Problems problems;
  CheckEtcd(options.etcd, problems);
  const SecureServingOptions& serving = options.secure_serving;
  problems.Pair("tls-cert-file", serving.cert_file, "tls-private-key-file", serving.private_key_file);
  for (const NamedCertKey& pair : serving.sni_cert_keys) {
    problems.File("tls-sni-cert-key", pair.cert_file);
    problems.File("tls-sni-cert-key", pair.key_file);
  }
  problems.File("audit-policy-file", options.audit.policy_file);
  problems.File("audit-webhook-config-file", options.audit.webhook_config_file);
  CheckAuthentication(options.authentication, problems);
  const AuthorizationOptions& authorization = options.authorization;
  problems.File("authorization-config", authorization.authorization_configuration_file);
  problems.File("authorization-policy-file", authorization.policy_file);
  problems.File("authorization-webhook-config-file", authorization.webhook_config_file);
  problems.File("egress-selector-config-file", options.egress_selector_config_file);
  problems.File("admission-control-config-file", options.admission.config_file);
  problems.File("tracing-config-file", options.tracing_config_file);
  const ExtraOptions& extra = options.extra;
  problems.File("kubelet-certificate-authority", extra.kubelet_ca_file);
  problems.Pair("kubelet-client-certificate", extra.kubelet_cert_file, "kubelet-client-key", extra.kubelet_key_file);
  problems.Pair("proxy-client-cert-file", extra.proxy_client_cert_file, "proxy-client-key-file",
                extra.proxy_client_key_file);
  problems.File("service-account-signing-key-file", extra.service_account_signing_key_file);
  const KeelsonOptions& own = options.keelson;
  problems.File("serve-etcd-api-client-ca-file", own.serve_etcd_api_client_ca_file);
  problems.Pair("serve-etcd-api-cert-file", own.serve_etcd_api_cert_file, "serve-etcd-api-key-file",
                own.serve_etcd_api_key_file);
  return std::move(problems.lines);
}

}  // namespace keelson::app
