#include "kv/etcdserver/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/pem.h>
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

// gRPC would report unusable files in its log only, and then refuse every client.
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

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;

void FreeChain(STACK_OF(X509) * chain) { sk_X509_pop_free(chain, X509_free); }

// Whether the first certificate of the PEM text comes from an authority of the file. True if that is unknown.
bool ComesFrom(std::string_view pem, const std::string& ca_file) {
  const std::unique_ptr<X509_STORE, Freed<X509_STORE_free>> authorities(X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
  const std::unique_ptr<BIO, Freed<BIO_free>> text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<STACK_OF(X509), Freed<FreeChain>> between(sk_X509_new_null());
  bool comes = true;
  if (authorities && check && text && between &&
      X509_STORE_load_locations(authorities.get(), ca_file.c_str(), nullptr) == 1) {
    const CertificatePtr first(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
    while (X509* next = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) sk_X509_push(between.get(), next);
    if (first && X509_STORE_CTX_init(check.get(), authorities.get(), first.get(), between.get()) == 1) {
      // An authority of the file is one, whoever signed it; an expired certificate is refused elsewhere.
      X509_STORE_CTX_set_flags(check.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME);
      comes = X509_verify_cert(check.get()) == 1;
    }
  }
  ERR_clear_error();
  return comes;
}

// The authorities are read at each handshake: either file may change.
class RefusedAuthorities final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit RefusedAuthorities(std::string ca_file) : ca_file_(std::move(ca_file)) {}
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const auto chain = request->peer_cert_full_chain();
    const auto alone = request->peer_cert();
    const auto& pem = chain.empty() ? alone : chain;
    if (ComesFrom({pem.data(), pem.size()}, ca_file_))
      *status = {grpc::StatusCode::UNAUTHENTICATED, "certificates of the API's client authority are not accepted here"};
    return true;  // decided
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string ca_file_;
};

}  // namespace

bool WantsTLS(const Options& options) {
  return !options.cert_file.empty() || !options.key_file.empty() || !options.ca_file.empty();
}

Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const Options& options) {
  if (!WantsTLS(options)) return std::shared_ptr<grpc::ServerCredentials>();
  if (!UnixPath(options.address).empty()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "the etcd API has no TLS on the socket " + options.address};
  }
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
  if (!options.refused_ca_file.empty()) {
    tls.set_certificate_verifier(
        grpc::experimental::ExternalCertificateVerifier::Create<RefusedAuthorities>(options.refused_ca_file));
  }
  return grpc::experimental::TlsServerCredentials(tls);
}

std::string_view UnixPath(std::string_view address) {
  return address.starts_with("unix:") ? address.substr(5) : std::string_view();
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
