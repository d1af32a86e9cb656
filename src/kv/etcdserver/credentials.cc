#include "kv/etcdserver/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace keelson::kv::etcdserver {
namespace {

constexpr unsigned kRereadSeconds = 10;

Error Invalid(const std::string& text) {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return {.code = ErrorCode::kInvalidArgument, .message = reason == nullptr ? text : text + ": " + reason};
}

// gRPC would tell of unusable files in its log only, and then refuse every client.
Result<void> CheckFiles(const Options& options) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  ERR_clear_error();
  if (!context) return Invalid("TLS is not to be had");
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.cert_file.c_str()) != 1)
    return Invalid("cannot read a certificate from " + options.cert_file);
  // Also compares it with the certificate.
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return Invalid("cannot use " + options.key_file + " as the key of " + options.cert_file);
  if (SSL_CTX_load_verify_locations(context.get(), options.ca_file.c_str(), nullptr) != 1)
    return Invalid("cannot read the clients' authorities from " + options.ca_file);
  return {};
}

}  // namespace

bool WantsTLS(const Options& options) {
  return !options.cert_file.empty() || !options.key_file.empty() || !options.ca_file.empty();
}

Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const Options& options) {
  if (!WantsTLS(options)) return std::shared_ptr<grpc::ServerCredentials>();
  if (options.cert_file.empty() || options.key_file.empty() || options.ca_file.empty()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "TLS of the etcd API needs a certificate, its key and a CA for its clients"};
  }
  KS_RETURN_IF_ERROR(CheckFiles(options));
  const auto files = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      options.key_file, options.cert_file, options.ca_file, kRereadSeconds);
  grpc::experimental::TlsServerCredentialsOptions tls(files);
  tls.watch_root_certs();
  tls.watch_identity_key_cert_pairs();
  tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(tls);
}

Result<HostPort> SplitAddress(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size())
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "cannot serve the etcd API on " + address + ": it has no port"};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return HostPort{.host = std::move(host), .port = address.substr(colon + 1)};
}

Error NotLoopback(const std::string& address) {
  return {.code = ErrorCode::kInvalidArgument,
          .message =
              "the etcd API gives out everything that is stored, to anybody who connects: it is served on a "
              "loopback address or with mutual TLS only, not on " +
              address};
}

}  // namespace keelson::kv::etcdserver
