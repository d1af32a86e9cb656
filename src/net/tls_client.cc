#include "net/tls_client.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "net/address.h"
#include "net/tls_internal.h"
#include "net/tls_names.h"

namespace keelson::net {

namespace {
constexpr unsigned char kProtocols[] = "\x02h2\x08http/1.1";
}

struct TLSClientContext::Impl {
  SSLContextPtr context;
  bool verify = true;
};

TLSClientContext::TLSClientContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TLSClientContext::~TLSClientContext() = default;

Result<std::shared_ptr<TLSClientContext>> TLSClientContext::New(const TLSClientOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->context.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* context = impl->context.get();
  KS_TRY(const int min_version, TLSVersion(options.min_version));
  KS_TRY(const std::string ciphers, CipherList(options.cipher_suites));
  KS_TRY(const std::string groups, GroupList({}));
  KS_RETURN_IF_ERROR(ConfigureContext(context, min_version, ciphers, groups));
  impl->verify = !options.insecure_skip_verify;
  if (impl->verify) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(context, VerifyServer, nullptr);
    if (options.ca_pem.empty()) {
      SSL_CTX_set_default_verify_paths(context);
    } else {
      auto authorities = ParseCertificates(options.ca_pem);
      if (authorities.empty()) return Error{"unable to load root certificates: unable to parse bytes as PEM block"};
      X509_STORE* store = SSL_CTX_get_cert_store(context);
      for (const X509Ptr& ca : authorities) X509_STORE_add_cert(store, ca.get());
      // Any certificate of the bundle is an anchor, also an intermediate one, as in Go.
      X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
      ERR_clear_error();
    }
  }
  if (!options.client_cert_pem.empty()) {
    KS_RETURN_IF_ERROR(UseCertificate(context, options.client_cert_pem, options.client_key_pem, "client certificate"));
  }
  SSL_CTX_set_alpn_protos(context, options.http2 ? kProtocols : kProtocols + 3, options.http2 ? 12 : 9);
  return std::shared_ptr<TLSClientContext>(new TLSClientContext(std::move(impl)));
}

std::unique_ptr<Transport> TLSClientContext::Connect(int fd, const std::string& server_name, bool http1_only) const {
  SSLPtr ssl(SSL_new(impl_->context.get()));
  if (http1_only) SSL_set_alpn_protos(ssl.get(), kProtocols + 3, 9);
  const bool address = IsIPAddress(server_name);
  if (!address && !server_name.empty()) SSL_set_tlsext_host_name(ssl.get(), server_name.c_str());
  if (impl_->verify) AttachVerification(ssl.get(), server_name);
  return NewTLSTransport(fd, std::move(ssl), false, nullptr);
}

}  // namespace keelson::net
